/**
 * A map that can also be reached by position: for a random element, and for scans. The last element takes the place of one
 * that is deleted.
 *
 * A scan goes from high positions to low ones, and its cursor is the lowest position that it has visited. An element that moves goes
 * to a lower position, so a scan never passes by an element that is there from its beginning to its end. It may see one twice,
 * as in Redis.
 */

import type { Bytes } from '../resp/reply.js';
import { PositionTable } from './position-table.js';

/** From keys to positions: a `Map`, or a `PositionTable`. */
interface Positions {
  get(key: Bytes): number | undefined;
  set(key: Bytes, position: number): unknown;
  delete(key: Bytes): unknown;
  clear(): void;
  /** Only a `PositionTable` can do it. */
  guess?(keys: readonly Bytes[], positions: Int32Array): void;
}

export class IndexedMap<V> {
  readonly #keys: Bytes[] = [];
  readonly #positions: Positions;
  readonly #values: V[] = [];
  #keyBytes = 0;

  /** @param isLarge  whether it probably has so many elements that caches do not hold them */
  constructor(isLarge = false) {
    this.#positions = isLarge ? new PositionTable(this.#keys) : new Map<Bytes, number>();
  }

  get size(): number {
    return this.#keys.length;
  }

  /** How many bytes all keys have. */
  get keyBytes(): number {
    return this.#keyBytes;
  }

  has(key: Bytes): boolean {
    return this.#positions.get(key) !== undefined;
  }

  get(key: Bytes): V | undefined {
    const position = this.#positions.get(key);
    return position === undefined ? undefined : this.#values[position];
  }

  /** @returns undefined if the key is not there */
  positionOf(key: Bytes): number | undefined {
    return this.#positions.get(key);
  }

  /**
   * Brings what lookups of these keys read into the caches of the processor, if the map is large.
   * @param positions  gets the probable positions; -1: none
   * @returns a number that depends on all that was read: V8 would leave out reads without a use
   */
  prefetch(keys: readonly Bytes[], positions: Int32Array): number {
    positions.fill(-1, 0, keys.length);
    this.#positions.guess?.(keys, positions);
    let sum = 0;
    for (let i = 0; i < keys.length; i++) {
      if (positions[i] >= 0) sum += this.#keys[positions[i]].length;
    }
    return sum;
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
    const last = this.#keys.length - 1;
    if (position < last) this.#positions.set(this.#keys[last], position);
    const lastKey = this.#keys.pop()!;
    const lastValue = this.#values.pop()!;
    if (position < last) {
      this.#keys[position] = lastKey;
      this.#values[position] = lastValue;
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
