/**
 * The first thing that goes over a connection: whoever was let in tells how its own memory can be written. It does not
 * tell it before, because only now does it know whom it has called. It writes it into the other one's arena, at
 * `HOST.greeting` of its own place there. Called by `network.ts`.
 */
import type { RemoteRegion } from '../fabric/registration.js';
import { UNFORESEEN_AT } from './handshake.js';

export interface Greeting {
  readonly region: RemoteRegion;
  /** From one host to another: some of `ACQUAINTANCE` (`acquaintances.ts`). */
  readonly acquaintance: number;
}

const WORD = {
  keyLow: 0,
  keyHigh: 1,
  baseLow: 2,
  baseHigh: 3,
  acquaintance: 4,
  /** Last, since it tells that the rest is there. */
  password: 5,
  count: 6,
} as const;

const WORD_VALUES = 2 ** 32;

/**
 * Both sides know it, and it is another with every connection: what an earlier one has left is no greeting. Never 0.
 *
 * @param said  by the one that was let in, with its proof
 */
export function passwordIn(said: Uint8Array): number {
  return new DataView(said.buffer, said.byteOffset).getInt32(UNFORESEEN_AT) | 1;
}

export function greetingWords({ region, acquaintance }: Greeting, password: number): Int32Array {
  const words = new Int32Array(WORD.count);
  words[WORD.keyLow] = region.keyLow;
  words[WORD.keyHigh] = region.keyHigh;
  words[WORD.baseLow] = region.base % WORD_VALUES;
  words[WORD.baseHigh] = Math.floor(region.base / WORD_VALUES);
  words[WORD.acquaintance] = acquaintance;
  words[WORD.password] = password;
  return words;
}

/** Nothing if there is none as yet. */
export function greetingAt(words: Int32Array, at: number, password: number): Greeting | undefined {
  if (words[at + WORD.password] !== password) return undefined;
  const unsigned = (word: number): number => words[at + word]! >>> 0;
  return {
    region: {
      keyLow: unsigned(WORD.keyLow),
      keyHigh: unsigned(WORD.keyHigh),
      base: unsigned(WORD.baseLow) + unsigned(WORD.baseHigh) * WORD_VALUES,
    },
    acquaintance: words[at + WORD.acquaintance]!,
  };
}
