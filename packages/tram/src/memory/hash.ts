/** The hash over words from which the checks of records follow (record.ts). It can go on where it was left. */

import { commonRun, placeOf, type Salt, untilWrap, type Window } from './places.js';

/** Every bit of a word reaches all others after a few steps, and one step undoes no other. */
const mix = (hash: number, value: number): number =>
  Math.imul(((hash << 7) | (hash >>> 25)) ^ value, 0x9e3779b1);

const mixFour = (hash: number, a: number, b: number, c: number, d: number): number =>
  mix(mix(mix(mix(hash, a), b), c), d);

/** Continue `hash` over four words. */
export const hashFour = mixFour;

/** The hash of no words. */
export const NO_WORDS = 1;

// Loops over words take four in each round: V8 checks the arrays in every round, which costs more than a word.
const hashPart = (words: Int32Array, at: number, count: number, hash: number): number => {
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    const here = at + i;
    hash = mixFour(hash, words[here], words[here + 1], words[here + 2], words[here + 3]);
  }
  for (; i < count; i++) hash = mix(hash, words[at + i]);
  return hash;
};

/** Continue `hash` over `count` words from `position` on. */
export function hashWords(window: Window, position: number, count: number, hash: number): number {
  const { words, at } = window;
  const first = Math.min(count, untilWrap(window, position));
  hash = hashPart(words, placeOf(window, position), first, hash);
  return first === count ? hash : hashPart(words, at, count - first, hash);
}

/**
 * Copy `count` words between windows, either of which may wrap. Returns the hash of what was copied: each word is loaded
 * once, because it may change meanwhile.
 */
export function copyHashed(
  from: Window,
  fromPosition: number,
  to: Window,
  toPosition: number,
  count: number,
): number {
  const source = from.words;
  const target = to.words;
  let hash = NO_WORDS;
  for (let done = 0; done < count; ) {
    const sourceAt = placeOf(from, fromPosition + done);
    const targetAt = placeOf(to, toPosition + done);
    const run = commonRun(from, fromPosition + done, to, toPosition + done, count - done);
    let i = 0;
    for (; i + 4 <= run; i += 4) {
      const here = sourceAt + i;
      const there = targetAt + i;
      const a = source[here];
      const b = source[here + 1];
      const c = source[here + 2];
      const d = source[here + 3];
      target[there] = a;
      target[there + 1] = b;
      target[there + 2] = c;
      target[there + 3] = d;
      hash = mixFour(hash, a, b, c, d);
    }
    for (; i < run; i++) {
      const value = source[sourceAt + i];
      target[targetAt + i] = value;
      hash = mix(hash, value);
    }
    done += run;
  }
  return hash;
}

/** The word at a record's end (record.ts). */
export function tailOf({ tail }: Salt, epoch: number, number: number): number {
  return mix(mix(tail, epoch), number);
}
