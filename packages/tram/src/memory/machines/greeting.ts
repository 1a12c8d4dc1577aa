/**
 * The first words that a dialer writes over a new connection: the key to its own arena. It does not tell the key before,
 * because only then has the listener proved that it knows the secret. The greeting goes into the listener's arena, at
 * `HOST.greeting` of the dialer's line. `dialer.ts` writes it, `admission.ts` waits for it.
 */
import type { RemoteRegion } from '../fabric/registration.js';
import { CHALLENGE_MAC_AT } from './handshake.js';

export interface Greeting {
  readonly region: RemoteRegion;
  /** From one host to another: bits of `HAS_RUN` (`known-hosts.ts`). */
  readonly hasRun: number;
  /** From one host to another: the era in which the sender has run its replicas; 0 if it has not. */
  readonly era: number;
}

const WORD = {
  keyLow: 0,
  keyHigh: 1,
  baseLow: 2,
  baseHigh: 3,
  hasRun: 4,
  era: 5,
  /** The last word: once it is there, so are the others. */
  token: 6,
  count: 7,
} as const;

const WORD_VALUES = 2 ** 32;

/**
 * The token of a connection. Both sides know it, and it differs for every connection, so the greeting that an earlier
 * connection has left is not taken for a new one. Never 0.
 *
 * @param proven  what the dialer has proved: `Proven.said`, or its whole answer
 */
export function greetingToken(proven: Uint8Array): number {
  return new DataView(proven.buffer, proven.byteOffset).getInt32(CHALLENGE_MAC_AT) | 1;
}

export function greetingWords({ region, hasRun, era }: Greeting, token: number): Int32Array {
  const words = new Int32Array(WORD.count);
  words[WORD.keyLow] = region.keyLow;
  words[WORD.keyHigh] = region.keyHigh;
  words[WORD.baseLow] = region.base % WORD_VALUES;
  words[WORD.baseHigh] = Math.floor(region.base / WORD_VALUES);
  words[WORD.hasRun] = hasRun;
  words[WORD.era] = era;
  words[WORD.token] = token;
  return words;
}

/** @returns undefined if the greeting with this token has not arrived yet */
export function greetingAt(words: Int32Array, at: number, token: number): Greeting | undefined {
  if (words[at + WORD.token] !== token) return undefined;
  const unsigned = (word: number): number => words[at + word] >>> 0;
  return {
    region: {
      keyLow: unsigned(WORD.keyLow),
      keyHigh: unsigned(WORD.keyHigh),
      base: unsigned(WORD.baseLow) + unsigned(WORD.baseHigh) * WORD_VALUES,
    },
    hasRun: words[at + WORD.hasRun],
    era: words[at + WORD.era],
  };
}
