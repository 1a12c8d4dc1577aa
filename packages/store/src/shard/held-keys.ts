/**
 * The keys that coordinated transactions hold: their gateways know the values. Until such a transaction ends, nothing else changes
 * its keys, and they are not evicted.
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

  /** Removes the keys of a transaction. No other transaction holds them. */
  delete({ keys, isWhole }: Transaction): void {
    for (const { key } of keys) this.#keys.delete(key);
    if (isWhole) this.#whole--;
  }
}
