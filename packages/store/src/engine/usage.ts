/**
 * How recently or how often each key was used: one number for each position of the keyspace. It decides which keys are evicted, so it is
 * a part of the state: it depends on ordered time and on the commands alone, and snapshots have it.
 *
 * *Staleness* is what both ways of counting come to: of two keys, the one that is more stale is evicted first.
 */

import { Random } from './random.js';

/** The unit of idle time. */
const UNIT_MS = 8;
/** Idle times are counted modulo 2^31 units: 198 days. */
const UNITS_MASK = 0x7fffffff;
const IDLE_UNITS_MAX = UNITS_MASK >> 1;

const MINUTE_MS = 60_000;
const MINUTES_MASK = 0xffff;
const FREQUENCY_MAX = 255;
/** Of a new key: it needs some time to become known. */
const FREQUENCY_INITIAL = 5;

/** The state of a keyspace, as snapshots have it. */
export interface UsageState {
  /** By position. */
  readonly words: Int32Array;
  readonly random: number;
  readonly countsFrequency: boolean;
}

export class Usage {
  /** What the words are: the unit of the last use; or the minute of the last use times 256, plus the frequency at that time. */
  #words: Int32Array = new Int32Array(64);
  #unit = 0;
  #minute = 0;
  #countsFrequency = false;
  /** The greater, the more uses it takes for the next frequency. */
  #logFactor = 0;
  /** A frequency falls by one after so many minutes; 0: never. */
  #decayMinutes = 0;
  /** The position that the present command has used last; -1: none. No snapshot has it: whatever uses keys calls `begin` before. */
  #usedLast = -1;
  readonly random = new Random(0);

  /** Whether staleness is about how often a key is used, not how recently. */
  get countsFrequency(): boolean {
    return this.#countsFrequency;
  }

  /** Time never goes back: if it did, keys would look as if they had not been used for very long. */
  advance(nowMs: number): void {
    this.#unit = (nowMs / UNIT_MS) & UNITS_MASK;
    this.#minute = (nowMs / MINUTE_MS) & MINUTES_MASK;
  }

  /** If keys are counted in the other way now, all of the `size` keys begin as if they were new. */
  count(
    how: 'recency' | 'frequency',
    size: number,
    { logFactor, decayMinutes }: { readonly logFactor: number; readonly decayMinutes: number },
  ): void {
    const countsFrequency = how === 'frequency';
    this.#logFactor = logFactor;
    this.#decayMinutes = decayMinutes;
    if (countsFrequency === this.#countsFrequency) return;
    this.#countsFrequency = countsFrequency;
    this.#words.fill(this.#newWord(), 0, size);
  }

  /** There is a key at this position, which is the last one. */
  added(position: number): void {
    if (position === this.#words.length) {
      const words = new Int32Array(2 * position);
      words.set(this.#words);
      this.#words = words;
    }
    this.#words[position] = this.#newWord();
    this.#usedLast = position;
  }

  /** The key is gone, and the one at the last position takes its place. */
  removed(position: number, last: number): void {
    this.#words[position] = this.#words[last];
  }

  /** A command begins. It counts as one use of a key, also if it looks at the key several times. */
  begin(): void {
    this.#usedLast = -1;
  }

  used(position: number): void {
    if (!this.#countsFrequency) this.#words[position] = this.#unit;
    else if (position !== this.#usedLast) {
      this.#words[position] = this.#usedOftener(position);
      this.#usedLast = position;
    }
  }

  staleness(position: number): number {
    if (this.#countsFrequency) return FREQUENCY_MAX - this.#frequency(position);
    return (this.#unit - this.#words[position]) & UNITS_MASK;
  }

  setStaleness(position: number, staleness: number): void {
    this.#words[position] = this.#countsFrequency
      ? this.#frequencyWord(FREQUENCY_MAX - Math.min(staleness, FREQUENCY_MAX))
      : (this.#unit - Math.min(staleness, IDLE_UNITS_MAX)) & UNITS_MASK;
  }

  state(size: number): UsageState {
    const words = this.#words.slice(0, size);
    const random = this.random.state >>> 0;
    return { words, random, countsFrequency: this.#countsFrequency };
  }

  restore({ words, random, countsFrequency }: UsageState): void {
    this.#words = new Int32Array(Math.max(64, words.length));
    this.#words.set(words);
    this.random.state = random;
    this.#countsFrequency = countsFrequency;
  }

  #newWord(): number {
    return this.#countsFrequency ? this.#frequencyWord(FREQUENCY_INITIAL) : this.#unit;
  }

  #frequencyWord(frequency: number): number {
    return (this.#minute << 8) | frequency;
  }

  #frequency(position: number): number {
    const word = this.#words[position];
    const frequency = word & FREQUENCY_MAX;
    if (this.#decayMinutes === 0) return frequency;
    const minutes = (this.#minute - (word >>> 8)) & MINUTES_MASK;
    return Math.max(0, frequency - Math.floor(minutes / this.#decayMinutes));
  }

  /** As in Redis, the frequency is about the logarithm of the number of uses. */
  #usedOftener(position: number): number {
    const frequency = this.#frequency(position);
    const above = Math.max(0, frequency - FREQUENCY_INITIAL);
    const grows =
      frequency < FREQUENCY_MAX && this.random.next() * (above * this.#logFactor + 1) < 1;
    return this.#frequencyWord(grows ? frequency + 1 : frequency);
  }
}

/** For OBJECT IDLETIME. */
export function idleSeconds(staleness: number): number {
  return Math.floor((staleness * UNIT_MS) / 1000);
}

/** For RESTORE. */
export function stalenessOfIdle(seconds: number): number {
  return Math.floor((seconds * 1000) / UNIT_MS);
}

/** For OBJECT FREQ. */
export function frequencyOf(staleness: number): number {
  return FREQUENCY_MAX - staleness;
}

/** For RESTORE. */
export function stalenessOfFrequency(frequency: number): number {
  return FREQUENCY_MAX - frequency;
}
