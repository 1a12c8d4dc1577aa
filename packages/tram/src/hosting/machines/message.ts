/**
 * Values as words, for mailboxes: a JSON text, in which typed arrays are replaced by where they are, and behind it the
 * words of these arrays.
 *
 *   words of the text │ bytes of the text │ text │ arrays
 */
import { wordsFor } from '../../memory/words.js';

const TEXT_AT = 2;
/** Keys that mark an array in the text: its place behind the text, in words, and its length. */
const INT32 = '$int32';
const BYTES = '$bytes';

/** @param value  of objects, lists, texts, numbers, booleans, `Int32Array` and `Uint8Array` */
export function encodeMessage(value: unknown): Int32Array {
  const arrays: (Int32Array | Uint8Array)[] = [];
  let at = 0;
  const place = (array: Int32Array | Uint8Array): Record<string, unknown> => {
    const found = { [array instanceof Int32Array ? INT32 : BYTES]: [at, array.length] };
    arrays.push(array);
    at += wordsFor(array.byteLength);
    return found;
  };
  const text = new TextEncoder().encode(
    JSON.stringify(value, (_, inner: unknown) =>
      inner instanceof Int32Array || inner instanceof Uint8Array ? place(inner) : inner,
    ),
  );
  const arraysAt = TEXT_AT + wordsFor(text.length);
  const words = new Int32Array(arraysAt + at);
  const bytes = new Uint8Array(words.buffer);
  words[0] = wordsFor(text.length);
  words[1] = text.length;
  bytes.set(text, TEXT_AT * 4);
  let next = arraysAt;
  for (const array of arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), next * 4);
    next += wordsFor(array.byteLength);
  }
  return words;
}

/** Arrays in the result are views of the words. */
export function decodeMessage(words: Int32Array): unknown {
  const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  const arraysAt = TEXT_AT + words[0];
  const text = new TextDecoder().decode(bytes.subarray(TEXT_AT * 4, TEXT_AT * 4 + words[1]));
  return JSON.parse(text, (_, inner: unknown) => {
    const [int32, view] = [placeIn(inner, INT32), placeIn(inner, BYTES)];
    if (int32 !== undefined) {
      const from = arraysAt + int32.at;
      return words.subarray(from, from + int32.length);
    }
    if (view === undefined) return inner;
    const from = (arraysAt + view.at) * 4;
    return bytes.subarray(from, from + view.length);
  });
}

function placeIn(value: unknown, key: string): { at: number; length: number } | undefined {
  if (typeof value !== 'object' || value === null || !(key in value)) return undefined;
  const [at, length] = (value as Record<string, [number, number]>)[key];
  return { at, length };
}
