/**
 * Values as words, for mailboxes: a JSON text, and behind it the words of all arrays in the value. In the text, an array is
 * replaced by its place. Lists of arrays, and entries of a journal, are many: they are replaced as a whole.
 *
 *   bytes of the text │ text │ arrays
 */
import { wordsFor } from '../../memory/words.js';
import { readWide, writeWide } from '../../protocol/wide.js';

const TEXT_AT = 1;

/** An entry of a journal, as recovery asks for it. */
interface Entry {
  readonly index: number;
  readonly body: Int32Array;
}

/** What stands in the text for words: their place behind the text, and how many arrays or entries they are. */
interface Place {
  readonly $: 'array' | 'arrays' | 'entries';
  readonly at: number;
  readonly count: number;
}

/** @param value  of objects, lists, texts, numbers, booleans and `Int32Array` */
export function encodeMessage(value: unknown): Int32Array {
  const arrays: Int32Array[] = [];
  let size = 0;
  const append = (array: Int32Array): void => {
    arrays.push(array);
    size += array.length;
  };
  const place = ($: Place['$'], count: number, parts: readonly Int32Array[]): Place => {
    const at = size;
    for (const part of parts) append(part);
    return { $, at, count };
  };
  const replaced = (inner: unknown): unknown => {
    if (inner instanceof Int32Array) return place('array', inner.length, [inner]);
    if (isListOf(inner, isArray))
      return place('arrays', inner.length, [lengthsOf(inner), ...inner]);
    if (isListOf(inner, isEntry)) {
      const bodies = inner.map(({ body }) => body);
      return place('entries', inner.length, [indicesOf(inner), lengthsOf(bodies), ...bodies]);
    }
    return inner;
  };
  const text = new TextEncoder().encode(JSON.stringify(value, (_, inner) => replaced(inner)));
  const words = new Int32Array(TEXT_AT + wordsFor(text.length) + size);
  words[0] = text.length;
  new Uint8Array(words.buffer).set(text, TEXT_AT * 4);
  let at = TEXT_AT + wordsFor(text.length);
  for (const array of arrays) {
    words.set(array, at);
    at += array.length;
  }
  return words;
}

/** Arrays in the result are views of the words. */
export function decodeMessage(words: Int32Array): unknown {
  const bytes = new Uint8Array(words.buffer, words.byteOffset + TEXT_AT * 4, words[0]);
  const arrays = words.subarray(TEXT_AT + wordsFor(words[0]));
  return JSON.parse(new TextDecoder().decode(bytes), (_, inner: unknown) =>
    isPlace(inner) ? arraysAt(arrays, inner) : inner,
  );
}

function arraysAt(words: Int32Array, { $, at, count }: Place): unknown {
  if ($ === 'array') return words.subarray(at, at + count);
  if ($ === 'arrays') return split(words, at, count);
  const bodies = split(words, at + 2 * count, count);
  return bodies.map((body, i) => ({ index: readWide(words, at + 2 * i), body }));
}

/** @param at  where the lengths are, which the arrays follow */
function split(words: Int32Array, at: number, count: number): Int32Array[] {
  let next = at + count;
  return Array.from({ length: count }, (_, i) => {
    const from = next;
    next += words[at + i];
    return words.subarray(from, next);
  });
}

function lengthsOf(arrays: readonly Int32Array[]): Int32Array {
  return Int32Array.from(arrays, ({ length }) => length);
}

function indicesOf(entries: readonly Entry[]): Int32Array {
  const indices = new Int32Array(2 * entries.length);
  for (const [i, { index }] of entries.entries()) writeWide(indices, 2 * i, index);
  return indices;
}

function isListOf<T>(value: unknown, is: (element: unknown) => element is T): value is T[] {
  return Array.isArray(value) && value.length > 0 && value.every(is);
}

function isArray(value: unknown): value is Int32Array {
  return value instanceof Int32Array;
}

function isEntry(value: unknown): value is Entry {
  const { index, body } = (value ?? {}) as Partial<Entry>;
  return typeof index === 'number' && isArray(body);
}

function isPlace(value: unknown): value is Place {
  return typeof value === 'object' && value !== null && '$' in value;
}
