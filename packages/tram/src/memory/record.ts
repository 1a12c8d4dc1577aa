/**
 * Records: how several words travel together through memory that tears them.
 *
 *      +0       +1      +2       +3       +4            +words-1
 *   ┌────────┬───────┬────────┬────────┬───────────────┬───────┐
 *   │ words  │ epoch │ number │ check  │ body …        │ tail  │
 *   └────────┴───────┴────────┴────────┴───────────────┴───────┘
 *
 * Both ends carry (epoch, number): the head in two words, the tail folded into one. `check` covers everything but itself
 * and the tail. Both words also depend on the ring's salt. So none of these is taken for a record: half a record, in
 * whatever order its words land; one left over from the ring's last lap or from an earlier leadership; a payload that
 * looks like a record. A reader that finds both ends while the rest may still be landing copies the record first and
 * checks the copy.
 *
 * A window is where one writer puts its records in another participant's region. A *ring* wraps: positions only grow (modulo
 * 2³²) and `position & mask` is the place, so a record may continue at the ring's start and no padding is needed. A
 * *slot* holds one record at a fixed place (its mask is all ones), overwritten by the next.
 */

import type { Memory, ParticipantId } from './contract.js';
import { hashFour, hashWords, NO_WORDS, tailOf } from './hash.js';
import { commonRun, distance, placeOf, type Salt, untilWrap, type Window, word } from './places.js';

export * from './hash.js';
export * from './places.js';

/** Words of the head, and of head and tail: constants of this module, which others import by their longer names. */
const HEAD = 4;
const FRAME = HEAD + 1;
export const HEAD_WORDS = HEAD;
export const FRAME_WORDS = FRAME;

const EPOCH = 1;
const NUMBER = 2;
const CHECK = 3;

/** A loop copies a few words fastest, the engine's own copy many. */
const LOOP_WORDS_MAX = 64;

/** A record's check, from the hash of its body. */
function checkOf(hash: number, salt: Salt, words: number, epoch: number, number: number): number {
  return hashFour(hash, salt.check, words, epoch, number);
}

/** Frame the body that lies at `position + HEAD`: head, check and, last, the tail. Returns the record's words. */
export function seal(
  window: Window,
  position: number,
  bodyWords: number,
  epoch: number,
  number: number,
): number {
  const hash = hashWords(window, position + HEAD, bodyWords, NO_WORDS);
  return sealHashed(window, position, bodyWords, epoch, number, hash);
}

/** The same for a body whose hash is known. */
export function sealHashed(
  window: Window,
  position: number,
  bodyWords: number,
  epoch: number,
  number: number,
  hash: number,
): number {
  const { words: memory, at, mask } = window;
  const words = bodyWords + FRAME;
  memory[at + (position & mask)] = words;
  memory[at + ((position + EPOCH) & mask)] = epoch;
  memory[at + ((position + NUMBER) & mask)] = number;
  memory[at + ((position + CHECK) & mask)] = checkOf(hash, window.salt, words, epoch, number | 0);
  memory[at + ((position + words - 1) & mask)] = tailOf(window.salt, epoch, number | 0);
  return words;
}

/** Write the head of a record in a slot, without the check: it names the record that will be sealed here. */
export function name(
  slots: Int32Array,
  at: number,
  bodyWords: number,
  epoch: number,
  number: number,
): void {
  slots[at] = bodyWords + FRAME;
  slots[at + EPOCH] = epoch;
  slots[at + NUMBER] = number;
}

/** Complete the record in a slot that was named, now that its body is there. Returns the record's words. */
export function sealNamed(slot: Window, position: number): number {
  const { words: memory, salt } = slot;
  const at = slot.at + position;
  const words = memory[at];
  const epoch = memory[at + EPOCH];
  const number = memory[at + NUMBER];
  const hash = hashWords(slot, position + HEAD, words - FRAME, NO_WORDS);
  memory[at + CHECK] = checkOf(hash, salt, words, epoch, number);
  memory[at + words - 1] = tailOf(salt, epoch, number);
  return words;
}

/** Words of the whole record (epoch, number) at `position`, or 0 if it is not, or not entirely, there. */
export function wordsOf(
  window: Window,
  position: number,
  epoch: number,
  number: number,
  wordsMax: number,
): number {
  const words = framedWords(window, position, epoch, number, wordsMax);
  if (words === 0) return 0;
  const hash = hashWords(window, position + HEAD, words - FRAME, NO_WORDS);
  return isChecked(window, position, words, epoch, number, hash) ? words : 0;
}

/** Words of the record (epoch, number) at `position` if both its ends are there, whatever is between them; else 0. */
export function framedWords(
  window: Window,
  position: number,
  epoch: number,
  number: number,
  wordsMax: number,
): number {
  const { words: memory, at, mask } = window;
  if (memory[at + ((position + NUMBER) & mask)] !== (number | 0)) return 0;
  if (memory[at + ((position + EPOCH) & mask)] !== epoch) return 0;
  const words = memory[at + (position & mask)];
  if (words < FRAME || words > wordsMax) return 0;
  const tail = memory[at + ((position + words - 1) & mask)];
  return tail === tailOf(window.salt, epoch, number | 0) ? words : 0;
}

/** The same for a record that does not wrap, and lies at this place in `memory`. */
export function framedPart(
  memory: Int32Array,
  at: number,
  salt: Salt,
  epoch: number,
  number: number,
  wordsMax: number,
): number {
  if (memory[at + NUMBER] !== (number | 0)) return 0;
  if (memory[at + EPOCH] !== epoch) return 0;
  const words = memory[at];
  if (words < FRAME || words > wordsMax) return 0;
  return memory[at + words - 1] === tailOf(salt, epoch, number | 0) ? words : 0;
}

/**
 * Does a body with this hash, found between the ends of the record (epoch, number), agree with its check? The ends are
 * not looked at again: they may belong to another record by now.
 */
export function isChecked(
  window: Window,
  position: number,
  words: number,
  epoch: number,
  number: number,
  hash: number,
): boolean {
  const check = checkOf(hash, window.salt, words, epoch, number | 0);
  return word(window, position + CHECK) === check;
}

export function epochAt(window: Window, position: number): number {
  return word(window, position + EPOCH);
}

export function numberAt(window: Window, position: number): number {
  return word(window, position + NUMBER);
}

/** Copy `count` words between windows, either of which may wrap. Each word is copied as a whole. */
export function copyWords(
  from: Window,
  fromPosition: number,
  to: Window,
  toPosition: number,
  count: number,
): void {
  for (let done = 0; done < count; ) {
    const sourceAt = placeOf(from, fromPosition + done);
    const targetAt = placeOf(to, toPosition + done);
    const run = commonRun(from, fromPosition + done, to, toPosition + done, count - done);
    copyPart(from.words, sourceAt, to.words, targetAt, run);
    done += run;
  }
}

/**
 * Copy words that do not wrap, each as a whole, in any order. The engine copies shared memory eight bytes at a time, but
 * byte by byte what does not begin and end at a multiple of eight bytes in both places. So it gets only pairs of words.
 * Both arrays begin at such a multiple.
 */
export function copyPart(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  count: number,
): void {
  if (count <= LOOP_WORDS_MAX || ((fromAt ^ toAt) & 1) === 1) {
    let i = 0;
    for (; i + 4 <= count; i += 4) {
      to[toAt + i] = from[fromAt + i];
      to[toAt + i + 1] = from[fromAt + i + 1];
      to[toAt + i + 2] = from[fromAt + i + 2];
      to[toAt + i + 3] = from[fromAt + i + 3];
    }
    for (; i < count; i++) to[toAt + i] = from[fromAt + i];
    return;
  }
  const first = fromAt & 1;
  const end = first + ((count - first) & ~1);
  if (first === 1) to[toAt] = from[fromAt];
  if (from === to) to.copyWithin(toAt + first, fromAt + first, fromAt + end);
  else to.set(from.subarray(fromAt + first, fromAt + end), toAt + first);
  if (end < count) to[toAt + end] = from[fromAt + end];
}

/**
 * Post what a ring holds between two positions to the same places of a peer's ring at `to`: one write,
 * or two where it wraps. The last one carries `tag`, one before it `tagBefore`.
 */
export function postRange(
  memory: Memory,
  peer: ParticipantId,
  to: number,
  ring: Window,
  start: number,
  end: number,
  guard: number,
  tagBefore: number,
  tag: number,
): void {
  const { words, at } = ring;
  const count = distance(end, start);
  if (count === 0) return;
  const from = placeOf(ring, start);
  const first = Math.min(count, untilWrap(ring, start));
  memory.write(peer, to + from - at, words, from, first, guard, first < count ? tagBefore : tag);
  if (first < count) memory.write(peer, to, words, at, count - first, guard, tag);
}

/** The same by `writeAtOnce`, unless the range wraps. True if it is known at once that all of it is `ok`. */
export function postRangeAtOnce(
  memory: Memory,
  peer: ParticipantId,
  to: number,
  ring: Window,
  start: number,
  end: number,
  guard: number,
  tagBefore: number,
  tag: number,
): boolean {
  const count = distance(end, start);
  if (count > untilWrap(ring, start)) {
    postRange(memory, peer, to, ring, start, end, guard, tagBefore, tag);
    return false;
  }
  const place = start & ring.mask;
  return memory.writeAtOnce(peer, to + place, ring.words, ring.at + place, count, guard, tag);
}

/** Post a read of what a peer's ring at `from` holds between two positions, to the same places of `ring`. */
export function readRange(
  memory: Memory,
  peer: ParticipantId,
  from: number,
  ring: Window,
  start: number,
  end: number,
  tag: number,
): void {
  const { words, at } = ring;
  const count = distance(end, start);
  if (count === 0) return;
  const to = placeOf(ring, start);
  const first = Math.min(count, untilWrap(ring, start));
  memory.read(peer, from + to - at, first, words, to, tag);
  if (first < count) memory.read(peer, from, count - first, words, at, tag);
}

/** Bytes into the words of a ring, little-endian, the last word filled up with zeros. */
export function packBytes(bytes: Uint8Array, to: Window, position: number): void {
  const { words, at, mask } = to;
  const whole = bytes.length >> 2;
  let i = 0;
  for (; i + 4 <= whole; i += 4) {
    const b = i * 4;
    words[at + ((position + i) & mask)] = wordIn(bytes, b);
    words[at + ((position + i + 1) & mask)] = wordIn(bytes, b + 4);
    words[at + ((position + i + 2) & mask)] = wordIn(bytes, b + 8);
    words[at + ((position + i + 3) & mask)] = wordIn(bytes, b + 12);
  }
  for (; i < whole; i++) words[at + ((position + i) & mask)] = wordIn(bytes, i * 4);
  if (bytes.length % 4 === 0) return;
  let last = 0;
  for (let b = whole * 4; b < bytes.length; b++) last |= bytes[b] << ((b & 3) * 8);
  words[at + ((position + whole) & mask)] = last;
}

function wordIn(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}
