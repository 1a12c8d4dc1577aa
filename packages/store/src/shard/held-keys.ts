/**
 * The keys of transactions that know what these keys have: until such a transaction ends, nothing else changes them, and they are not
 * evicted either.
 */

import type { Bytes } from '../resp/reply.js';
import type { Transaction } from './in-line.js';

export class HeldKeys {
  readonly #keys = new Set<Bytes>();
  /** How many of the transactions hold the whole shard. */
  #whole = 0;

  /** Whether all keys are held. */
  get areAll(): boolean {
    return this.#whole > 0;
  }

  has(key: Bytes): boolean {
    return this.#keys.has(key);
  }

  add({ keys, isWhole }: Transaction): void {
    for (const { key } of keys) this.#keys.add(key);
    if (isWhole) this.#whole++;
  }

  /** No other transaction holds these keys. */
  delete({ keys, isWhole }: Transaction): void {
    for (const { key } of keys) this.#keys.delete(key);
    if (isWhole) this.#whole--;
  }
}
