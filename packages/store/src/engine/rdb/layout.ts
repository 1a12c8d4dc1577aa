/**
 * What the value of each type consists of in an RDB file. A file does not say how long a value is: a reader that needs its bytes, or the key that
 * follows, has to go through all its parts.
 */

import { INTEGER_HEADS, LZF_EXPANSION_MAX, LZF_HEAD, lengthAt, lengthBytes } from './lengths.js';

/** A number stands for that many bytes. A score is text with a length of one byte, as versions of Redis before 4 write it. */
type Part = 'text' | 'length' | 'score' | number | Repeated;

/** A length, and as often as it says these parts. */
interface Repeated {
  readonly parts: readonly Part[];
}

function each(...parts: readonly Part[]): Repeated {
  return { parts };
}

const ID = 16;
const TIME = 8;
const DOUBLE = 8;

/** @param version  that of the form: 1 is of Redis 5, 2 of Redis 7.0, 3 of Redis 7.2 */
function stream(version: 1 | 2 | 3): readonly Part[] {
  const counts = version === 1 ? [] : (['length', 'length', 'length', 'length', 'length'] as const);
  const entriesRead = version === 1 ? [] : (['length'] as const);
  const activeTime = version === 3 ? [TIME] : [];
  const pending = each(ID, TIME, 'length');
  const consumers = each('text', TIME, ...activeTime, each(ID));
  const groups = each('text', 'length', 'length', ...entriesRead, pending, consumers);
  return [each('text', 'text'), 'length', 'length', 'length', ...counts, groups];
}

const LAYOUTS: Readonly<Record<number, readonly Part[] | undefined>> = {
  0: ['text'],
  1: [each('text')],
  2: [each('text')],
  3: [each('text', 'score')],
  4: [each('text', 'text')],
  5: [each('text', DOUBLE)],
  9: ['text'],
  10: ['text'],
  11: ['text'],
  12: ['text'],
  13: ['text'],
  14: [each('text')],
  15: stream(1),
  16: ['text'],
  17: ['text'],
  18: [each('length', 'text')],
  19: stream(2),
  20: ['text'],
  21: stream(3),
};

export function hasLayout(type: number): boolean {
  return LAYOUTS[type] !== undefined;
}

/** Parts that are to be gone through `left` times, and how far it has come with them. */
interface Frame {
  readonly parts: readonly Part[];
  left: number;
  next: number;
}

/** Finds the end of a value whose bytes come one piece after the other. It keeps none of them. */
export class ValueScanner {
  /** How far it has come in the bytes that it was given last. */
  at = 0;
  readonly #frames: Frame[] = [];
  /** How many bytes are still to come of a part that has begun. */
  #rest = 0;

  /** @param type  that has a layout */
  begin(type: number): void {
    this.#rest = 0;
    this.#frames.length = 0;
    this.#frames.push({ parts: LAYOUTS[type]!, left: 1, next: 0 });
  }

  /**
   * @param from  where the value begins, or where it goes on
   * @param end  of what is there of `bytes`
   * @param endMax  where the value has to end at the latest
   * @returns whether it has found the end, which is `at`; otherwise, it has to go on from `at` when there are more bytes
   * @throws RangeError if the bytes make no value
   */
  scan(bytes: Buffer, from: number, end: number, endMax: number): boolean {
    this.at = from;
    while (this.#frames.length > 0) {
      const skipped = Math.min(this.#rest, end - this.at);
      this.at += skipped;
      this.#rest -= skipped;
      if (this.#rest > 0) return false;
      const frame = this.#frames[this.#frames.length - 1];
      if (frame.next === frame.parts.length) {
        frame.left--;
        frame.next = 0;
      }
      if (frame.left === 0) this.#frames.pop();
      else if (!this.#begin(frame.parts[frame.next], bytes, end, endMax)) return false;
      else frame.next++;
    }
    return true;
  }

  /** @returns false if its first bytes, which tell the length, are not all there */
  #begin(part: Part, bytes: Buffer, end: number, endMax: number): boolean {
    const { at } = this;
    const head = headBytes(part, bytes, at, end);
    if (head === undefined) return false;
    this.#rest = head + contentBytes(part, bytes, at);
    let least = this.#rest;
    if (typeof part === 'object') {
      const left = lengthAt(bytes, at);
      this.#frames.push({ parts: part.parts, left, next: 0 });
      least += left;
    }
    if (at + least > endMax) throw new RangeError('a length goes beyond the end');
    return true;
  }
}

/** Of a part: how many bytes there are before its content. @returns undefined if they are not all there */
function headBytes(part: Part, bytes: Buffer, at: number, end: number): number | undefined {
  if (typeof part === 'number') return 0;
  if (part === 'text') return textHeadBytes(bytes, at, end);
  if (at >= end) return undefined;
  if (part === 'score') return 1;
  const length = lengthBytes(bytes[at]);
  if (length === 0) throw new RangeError('there is no length where one has to be');
  return at + length > end ? undefined : length;
}

/** How many bytes the content of a part has, without those of repeated parts. Its head has to be there. */
function contentBytes(part: Part, bytes: Buffer, at: number): number {
  if (typeof part === 'number') return part;
  if (part === 'text') return textBytes(bytes, at);
  // 253 and more are scores that are no numbers.
  return part === 'score' && bytes[at] < 253 ? bytes[at] : 0;
}

/** Of a text: how many bytes there are before its content. @returns undefined if they are not all there */
export function textHeadBytes(bytes: Buffer, at: number, end: number): number | undefined {
  if (at >= end) return undefined;
  const head = bytes[at];
  if (INTEGER_HEADS.includes(head)) return 1;
  if (head !== LZF_HEAD) {
    const length = lengthBytes(head);
    if (length === 0) throw new RangeError('there is no text where one has to be');
    return at + length > end ? undefined : length;
  }
  let length = 1;
  for (let lengths = 0; lengths < 2; lengths++) {
    if (at + length >= end) return undefined;
    const more = lengthBytes(bytes[at + length]);
    if (more === 0) throw new RangeError('a compressed text has no length');
    length += more;
  }
  return at + length > end ? undefined : length;
}

/** How many bytes the content of a text has, as it is written. Its head has to be there. */
export function textBytes(bytes: Buffer, at: number): number {
  const head = bytes[at];
  const integer = INTEGER_HEADS.indexOf(head);
  if (integer >= 0) return 1 << integer;
  if (head !== LZF_HEAD) return lengthAt(bytes, at);
  const compressed = lengthAt(bytes, at + 1);
  const length = lengthAt(bytes, at + 1 + lengthBytes(bytes[at + 1]));
  if (length > compressed * LZF_EXPANSION_MAX) {
    throw new RangeError('a compressed text is longer than it can be');
  }
  return compressed;
}
