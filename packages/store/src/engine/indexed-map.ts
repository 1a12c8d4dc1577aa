/**
 * A map that can also be reached by position: for a random element, and for scans. The last element takes the place of one
 * that is deleted.
 *
 * A scan goes from high positions to low ones, and its cursor is the lowest position that it has visited. An element that moves goes
 * to a lower position, so a scan never passes by an element that is there from its beginning to its end. It may see one twice,
 * as in Redis.
 */

import type { Bytes } from '../resp/reply.js';

export class IndexedMap<V> {
  readonly #positions = new Map<Bytes, number>();
  readonly #keys: Bytes[] = [];
  readonly #values: V[] = [];
  #keyBytes = 0;

  get size(): number {
    return this.#keys.length;
  }

  /** How many bytes all keys have. */
  get keyBytes(): number {
    return this.#keyBytes;
  }

  has(key: Bytes): boolean {
    return this.#positions.has(key);
  }

  get(key: Bytes): V | undefined {
    const position = this.#positions.get(key);
    return position === undefined ? undefined : this.#values[position];
  }

  /** @returns undefined if the key is not there */
  positionOf(key: Bytes): number | undefined {
    return this.#positions.get(key);
  }

  /** @returns whether the key is new */
  set(key: Bytes, value: V): boolean {
    const position = this.#positions.get(key);
    if (position !== undefined) {
      this.#values[position] = value;
      return false;
    }
    this.#add(key, value);
    return true;
  }

  /** @returns the value that the key had */
  replace(key: Bytes, value: V): V | undefined {
    const position = this.#positions.get(key);
    if (position === undefined) {
      this.#add(key, value);
      return undefined;
    }
    const old = this.#values[position];
    this.#values[position] = value;
    return old;
  }

  delete(key: Bytes): boolean {
    const position = this.#positions.get(key);
    if (position === undefined) return false;
    this.#positions.delete(key);
    this.#keyBytes -= key.length;
    const lastKey = this.#keys.pop()!;
    const lastValue = this.#values.pop()!;
    if (position < this.#keys.length) {
      this.#keys[position] = lastKey;
      this.#values[position] = lastValue;
      this.#positions.set(lastKey, position);
    }
    return true;
  }

  clear(): void {
    this.#positions.clear();
    this.#keys.length = 0;
    this.#values.length = 0;
    this.#keyBytes = 0;
  }

  keyAt(position: number): Bytes {
    return this.#keys[position];
  }

  valueAt(position: number): V {
    return this.#values[position];
  }

  setAt(position: number, value: V): void {
    this.#values[position] = value;
  }

  keys(): readonly Bytes[] {
    return this.#keys;
  }

  values(): readonly V[] {
    return this.#values;
  }

  /**
   * Visits about `count` elements. @param cursor 0 begins
   * @returns the cursor to go on with; 0 at the end
   */
  scan(cursor: number, count: number, visit: (key: Bytes, value: V) => void): number {
    const from = cursor === 0 ? this.size : Math.min(cursor, this.size);
    const to = Math.max(0, from - count);
    for (let position = from - 1; position >= to; position--) {
      visit(this.#keys[position], this.#values[position]);
    }
    return to;
  }
  #add(key: Bytes, value: V): void {
    this.#positions.set(key, this.#keys.length);
    this.#keys.push(key);
    this.#values.push(value);
    this.#keyBytes += key.length;
  }
}
