/** Copies between rings in the same way as TRAM's memory: two words at a time, from right to left, so that the head comes last. */
import {
  commonRun,
  copyPart,
  type Places,
  placeOf,
} from 'tram-multicast/internal/memory/record.js';

/** Up to this many words a loop over pairs is faster than the engine's copy. */
const PAIRS_WORDS_MAX = 120;
/** Does the processor keep stores in order? Others need an atomic store. */
const KEEPS_ORDER = process.arch === 'x64' || process.arch === 'ia32';

export class Copier {
  private readonly pairs: BigInt64Array;

  constructor(readonly words: Int32Array) {
    this.pairs = new BigInt64Array(words.buffer, words.byteOffset, words.length >> 1);
  }

  /** All positions and `count` are even. The rings may wrap. */
  copy(from: Places, fromPosition: number, to: Places, toPosition: number, count: number): void {
    const run = commonRun(from, fromPosition, to, toPosition, count);
    if (run < count)
      this.copy(from, (fromPosition + run) | 0, to, (toPosition + run) | 0, count - run);
    this.copyRun(placeOf(from, fromPosition), placeOf(to, toPosition), run);
  }

  /** Stores the head of a record: a reader that finds it finds all words that were stored before. */
  publish(at: number, value: number): void {
    if (KEEPS_ORDER) this.words[at] = value;
    else Atomics.store(this.words, at, value);
  }

  private copyRun(from: number, to: number, count: number): void {
    const { words } = this;
    if (count > PAIRS_WORDS_MAX) copyPart(words, from + 2, words, to + 2, count - 2);
    else copyPairs(this.pairs, (from >> 1) + 1, (to >> 1) + 1, (count >> 1) - 1);
    words[to + 1] = words[from + 1];
    this.publish(to, words[from]);
  }
}

/** Four pairs at a time: a loop over single ones takes longer. */
function copyPairs(pairs: BigInt64Array, from: number, to: number, count: number): void {
  let i = count - 4;
  for (; i >= 0; i -= 4) {
    pairs[to + i + 3] = pairs[from + i + 3];
    pairs[to + i + 2] = pairs[from + i + 2];
    pairs[to + i + 1] = pairs[from + i + 1];
    pairs[to + i] = pairs[from + i];
  }
  for (i += 3; i >= 0; i--) pairs[to + i] = pairs[from + i];
}
