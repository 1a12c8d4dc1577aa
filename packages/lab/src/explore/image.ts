/**
 * The image of a participant: every field and every word that its objects can reach, as they were after its last step.
 * A comparison with the objects tells what a step has changed. The changes go into the journal, and the fingerprint of
 * the image follows them. Nothing is known about the protocol's classes: what is reachable is found by walking.
 *
 * Objects that are there when the image is made are *fixed*. All their fields are compared after every step, by code that
 * is generated for their shape. Objects that the participant creates later are few and small. They are walked anew after
 * every step, and so are arrays that are empty when the image is made: those may grow.
 *
 * Two states with the same fingerprint are taken for the same. So whatever is left out of the fingerprint has to be
 * justified: see `unobserved.ts`.
 */
import { Fingerprint, placeIn, wordOf } from './fingerprint.js';
import type { Journal } from './journal.js';
import { isUnobserved, type Reasons } from './unobserved.js';

type Fields = Record<string | number, unknown>;
type Words = Int32Array | Uint8Array;
type OnChange = (slot: number, value: unknown) => void;
/** Calls `onChange` for every field of `object` that differs from `values`, from `first` on. */
type Scan = (object: Fields, values: unknown[], first: number, onChange: OnChange) => void;

interface Fixed {
  readonly object: Fields;
  readonly first: number;
  readonly scan: Scan;
}

/** A buffer of the participant that is not in its region: all its words, and what they were. */
interface FixedWords {
  readonly place: number;
  readonly isObserved: boolean;
  readonly words: Words;
  readonly before: Words;
}

/** Objects created after the image: each field that they had, in the order of a walk. */
class Created {
  readonly objects: Fields[] = [];
  readonly keys: (string | number)[] = [];
  readonly values: unknown[] = [];
  readonly print = new Fingerprint();

  note(object: Fields, key: string | number): void {
    this.objects.push(object);
    this.keys.push(key);
    this.values.push(object[key]);
  }
}

const NO_IMAGE = 'maps and sets have no image';

/** Objects outside the participant: what it was given, and what is undone in another way. */
export interface Surroundings {
  readonly objects: ReadonlySet<object>;
  /** The participant's region. */
  readonly region: ArrayBufferLike;
  /** Left out of the fingerprint, besides what always is. */
  readonly unobserved: Reasons;
}

const scans = new Map<string, Scan>();

/** Fields are read by name here, not by key: that is ten times as fast. */
function scanOf(keys: readonly string[]): Scan {
  const shape = keys.join();
  let scan = scans.get(shape);
  if (scan === undefined) {
    const lines = keys.map(
      (key, i) => `if (o.${key} !== values[first + ${i}]) onChange(first + ${i}, o.${key});`,
    );
    scan = new Function('o', 'values', 'first', 'onChange', lines.join('\n')) as Scan;
    scans.set(shape, scan);
  }
  return scan;
}

function scanArray(
  array: Fields,
  values: unknown[],
  first: number,
  onChange: (slot: number, value: unknown) => void,
): void {
  const { length } = array as unknown as unknown[];
  if (values[first] !== length) throw new Error('an array has changed its length');
  for (let i = 0; i < length; i++) {
    if (array[i] !== values[first + 1 + i]) onChange(first + 1 + i, array[i]);
  }
}

export class Image {
  /** For each slot, that is, each field of a fixed object: where it is, its name for the fingerprint, its value. */
  private readonly owners: Fields[] = [];
  private readonly keys: (string | number)[] = [];
  private readonly places: number[] = [];
  private readonly isObserved: boolean[] = [];
  private readonly values: unknown[] = [];
  private readonly fixed: Fixed[] = [];
  private readonly fixedPlaces = new Map<object, number>();
  private readonly fixedWords: FixedWords[] = [];
  private readonly wordsByBuffer = new Map<ArrayBufferLike, FixedWords>();
  /** Slots that hold, or have held, an object that is not fixed; in ascending order. */
  private readonly creators: number[] = [];
  private created = new Created();
  private readonly onChange: OnChange;
  /** Of this image. */
  private readonly print = new Fingerprint();

  constructor(
    root: object,
    place: number,
    private readonly surroundings: Surroundings,
    private readonly journal: Journal,
    /** Of the whole state: kept up to date. */
    private readonly total: Fingerprint,
  ) {
    const { print } = this;
    this.onChange = (slot, value) => this.changed(slot, value);
    // What can be reached both ways is observed: so what is not observed comes last.
    const unobserved: [object, number][] = [];
    this.fix(root, place, true, unobserved);
    for (const [object, at] of unobserved) this.fix(object, at, false, []);
    for (let slot = 0; slot < this.values.length; slot++) {
      const value = this.values[slot];
      if (this.isObserved[slot] && this.isPlain(value))
        print.add(this.places[slot], this.plain(value));
    }
    for (const { place: at, words, isObserved } of this.fixedWords) {
      for (let i = 0; isObserved && i < words.length; i++) print.addWord(placeIn(at, i), words[i]);
    }
    if (this.creators.length > 0) this.updateCreated();
    total.include(print);
  }

  // --- making it -----------------------------------------------------------------------------

  private fix(
    object: object,
    place: number,
    isObserved: boolean,
    unobserved: [object, number][],
  ): void {
    if (this.surroundings.objects.has(object) || this.fixedPlaces.has(object)) return;
    if (ArrayBuffer.isView(object)) {
      this.fixWords(object, place, isObserved);
      return;
    }
    if (object instanceof Map || object instanceof Set) throw new Error(NO_IMAGE);
    this.fixedPlaces.set(object, place);
    const fields = object as Fields;
    const first = this.values.length;
    const isArray = Array.isArray(object);
    const keys = isArray ? ['length', ...object.keys()] : Object.keys(object);
    for (const key of keys) {
      this.owners.push(fields);
      this.keys.push(key);
      this.places.push(placeIn(place, typeof key === 'number' ? key : wordOf(key)));
      this.isObserved.push(isObserved && !isUnobserved(object, key, this.surroundings.unobserved));
      this.values.push(fields[key]);
    }
    const scan = isArray ? scanArray : scanOf(keys as string[]);
    this.fixed.push({ object: fields, first, scan });
    // A field that is added later would be overlooked.
    if (!isArray) Object.preventExtensions(object);
    for (let slot = first; slot < first + keys.length; slot++) {
      const value = this.values[slot];
      if (!isObject(value)) continue;
      if (isEmptyArray(value)) this.creators.push(slot);
      else if (this.isObserved[slot] || !isObserved) {
        this.fix(value, this.places[slot], isObserved, unobserved);
      } else {
        unobserved.push([value, this.places[slot]]);
      }
    }
  }

  private fixWords(view: ArrayBufferView, place: number, isObserved: boolean): void {
    const { buffer } = view;
    if (buffer === this.surroundings.region || this.wordsByBuffer.has(buffer)) return;
    const words = buffer.byteLength % 4 === 0 ? new Int32Array(buffer) : new Uint8Array(buffer);
    const fixed = { place, isObserved, words, before: words.slice() };
    this.fixedWords.push(fixed);
    this.wordsByBuffer.set(buffer, fixed);
  }

  // --- what a step has changed ---------------------------------------------------------------

  /** The participant may have changed anything that is its own. */
  update(): void {
    const { values, onChange, fixed, fixedWords } = this;
    this.begin();
    for (let i = 0; i < fixed.length; i++) {
      const { object, first, scan } = fixed[i];
      scan(object, values, first, onChange);
    }
    for (let i = 0; i < fixedWords.length; i++) {
      this.updateWords(fixedWords[i], 0, fixedWords[i].words.length);
    }
    if (this.creators.length > 0) this.updateCreated();
    this.total.include(this.print);
  }

  /** Words of a buffer of the participant have been written for it. */
  updateBuffer(buffer: ArrayBufferLike, from: number, count: number): void {
    const words = this.wordsByBuffer.get(buffer);
    if (words === undefined) throw new Error('a read goes into a buffer that has no image');
    this.begin();
    this.updateWords(words, from, from + count);
    this.total.include(this.print);
  }

  /** The participant has ended: its objects are no part of the state any more. */
  remove(): void {
    this.total.exclude(this.print);
  }

  /** Every field and every word as the objects have them now, whether the fingerprint has them or not. */
  describe(): string {
    const fields = this.owners.map((owner, slot) => {
      const value = owner[this.keys[slot]];
      return isObject(value) ? (this.fixedPlaces.get(value) ?? 'object') : String(value);
    });
    const created = this.created.objects.map((object, i) => String(object[this.created.keys[i]]));
    const words = this.fixedWords.map(({ words: all }) => all.join());
    return JSON.stringify([fields, created, words, this.print.low, this.print.high]);
  }

  private begin(): void {
    const { journal, print, total } = this;
    total.exclude(print);
    journal.note(print, 'low', print.low);
    journal.note(print, 'high', print.high);
  }

  private updateWords(fixed: FixedWords, from: number, end: number): void {
    const { words, before, place, isObserved } = fixed;
    for (let i = from; i < end; i++) {
      if (words[i] === before[i]) continue;
      this.journal.note(words, i, before[i]);
      this.journal.note(before, i, before[i]);
      if (isObserved) {
        const at = placeIn(place, i);
        this.print.removeWord(at, before[i]);
        this.print.addWord(at, words[i]);
      }
      before[i] = words[i];
    }
  }

  private changed(slot: number, value: unknown): void {
    const { journal, values, print, places } = this;
    const before = values[slot];
    journal.note(this.owners[slot], this.keys[slot], before);
    journal.note(values, slot, before);
    values[slot] = value;
    if (this.isObserved[slot]) {
      if (this.isPlain(before)) print.remove(places[slot], this.plain(before));
      if (this.isPlain(value)) print.add(places[slot], this.plain(value));
    }
    if (this.isCreated(value) && !this.creators.includes(slot)) {
      this.creators.push(slot);
      this.creators.sort((a, b) => a - b);
    }
  }

  /** Is the value in the fingerprint by itself, without a walk? */
  private isPlain(value: unknown): boolean {
    return typeof value !== 'function' && !this.isCreated(value);
  }

  private isCreated(value: unknown): value is object {
    if (!isObject(value) || this.surroundings.objects.has(value)) return false;
    if (this.fixedPlaces.has(value)) return false;
    if (!ArrayBuffer.isView(value)) return true;
    return value.buffer !== this.surroundings.region && !this.wordsByBuffer.has(value.buffer);
  }

  /** A reference to a fixed object stands for its place. */
  private plain(value: unknown): unknown {
    return isObject(value) ? (this.fixedPlaces.get(value) ?? 0) : value;
  }

  private updateCreated(): void {
    const { journal, print } = this;
    const { objects, keys, values } = this.created;
    for (let i = 0; i < objects.length; i++) {
      if (objects[i][keys[i]] !== values[i]) journal.note(objects[i], keys[i], values[i]);
    }
    const created = new Created();
    const seen = new Map<object, number>();
    for (const slot of this.creators) {
      const value = this.values[slot];
      if (this.isCreated(value)) this.walk(value, slot, this.places[slot], created, seen);
    }
    print.exclude(this.created.print);
    print.include(created.print);
    journal.note(this, 'created', this.created);
    this.created = created;
  }

  private walk(
    object: object,
    slot: number,
    place: number,
    created: Created,
    seen: Map<object, number>,
  ): void {
    const isObserved = this.isObserved[slot];
    if (object instanceof Map || object instanceof Set) throw new Error(NO_IMAGE);
    seen.set(object, place);
    const fields = object as Fields;
    const keys = ArrayBuffer.isView(object) ? (fields as unknown as Int32Array).keys() : undefined;
    if (isObserved) created.print.add(place, Array.isArray(object) ? object.length : 'object');
    if (Array.isArray(object)) created.note(fields, 'length');
    for (const key of keys ?? Object.keys(object)) {
      const value = fields[key];
      created.note(fields, key);
      const at = placeIn(place, typeof key === 'number' ? key : wordOf(key));
      if (this.isCreated(value)) {
        const known = seen.get(value);
        if (known === undefined) this.walk(value, slot, at, created, seen);
        else if (isObserved) created.print.addWord(at, known);
      } else if (isObserved && typeof value !== 'function') {
        created.print.add(at, this.plain(value));
      }
    }
  }
}

function isEmptyArray(value: object): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
