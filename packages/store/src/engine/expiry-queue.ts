/**
 * The keys that expire, first those that expire first, then by their bytes. A binary heap. Each entry knows its place, so that one whose
 * time changes moves at once, and nothing outdated piles up.
 *
 * Random picks go by place, so the places are a part of the state: snapshots have them.
 */

import type { Bytes } from '../resp/reply.js';
import type { Entry } from './entry.js';

export class ExpiryQueue {
  readonly #keys: Bytes[] = [];
  readonly #entries: Entry[] = [];

  get size(): number {
    return this.#keys.length;
  }

  /** Infinity if there is none. */
  get firstMs(): number {
    return this.#entries.length === 0 ? Infinity : this.#entries[0].expiresAtMs;
  }

  get firstKey(): Bytes {
    return this.#keys[0];
  }

  keyAt(place: number): Bytes {
    return this.#keys[place];
  }

  /** In the order of their places. */
  keys(): readonly Bytes[] {
    return this.#keys;
  }

  /** Adds an entry, or moves it to the place that its time demands now. */
  put(key: Bytes, entry: Entry): void {
    if (entry.queueIndex < 0) this.append(key, entry);
    this.#rise(entry.queueIndex);
    this.#sink(entry.queueIndex);
  }

  /** @param entry  may be in the queue or not */
  remove(entry: Entry): void {
    const index = entry.queueIndex;
    if (index < 0) return;
    entry.queueIndex = -1;
    const lastKey = this.#keys.pop()!;
    const last = this.#entries.pop()!;
    if (last === entry) return;
    this.#place(index, lastKey, last);
    this.#rise(index);
    this.#sink(last.queueIndex);
  }

  /** The new entry of a key takes the place of its old one. Both have the same time. */
  replace(old: Entry, entry: Entry): void {
    entry.queueIndex = old.queueIndex;
    old.queueIndex = -1;
    if (entry.queueIndex >= 0) this.#entries[entry.queueIndex] = entry;
  }

  clear(): void {
    this.#keys.length = 0;
    this.#entries.length = 0;
  }

  /** Adds what another queue has at its next place. */
  append(key: Bytes, entry: Entry): void {
    this.#keys.push(key);
    this.#entries.push(entry);
    entry.queueIndex = this.#keys.length - 1;
  }

  #isBefore(a: number, b: number): boolean {
    const aMs = this.#entries[a].expiresAtMs;
    const bMs = this.#entries[b].expiresAtMs;
    return aMs < bMs || (aMs === bMs && this.#keys[a] < this.#keys[b]);
  }

  #rise(from: number): void {
    for (let i = from; i > 0; ) {
      const parent = (i - 1) >>> 1;
      if (!this.#isBefore(i, parent)) return;
      this.#swap(i, parent);
      i = parent;
    }
  }

  #sink(from: number): void {
    for (let i = from; ; ) {
      const left = 2 * i + 1;
      if (left >= this.#keys.length) return;
      const right = left + 1;
      const child = right < this.#keys.length && this.#isBefore(right, left) ? right : left;
      if (!this.#isBefore(child, i)) return;
      this.#swap(i, child);
      i = child;
    }
  }

  #swap(a: number, b: number): void {
    const key = this.#keys[a];
    const entry = this.#entries[a];
    this.#place(a, this.#keys[b], this.#entries[b]);
    this.#place(b, key, entry);
  }

  #place(index: number, key: Bytes, entry: Entry): void {
    this.#keys[index] = key;
    this.#entries[index] = entry;
    entry.queueIndex = index;
  }
}
