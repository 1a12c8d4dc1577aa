/**
 * A map whose keys are in the order of their bytes, in sorted blocks: what is added at the end and removed at the beginning costs little,
 * and so does what is found, added or removed elsewhere.
 */

import type { Bytes } from '../resp/reply.js';

/** How many keys a block has at most. */
const BLOCK_MAX = 128;

interface Block<V> {
  readonly keys: Bytes[];
  readonly values: V[];
}

/** @returns false to stop */
type Visit<V> = (key: Bytes, value: V) => boolean;

export class SortedMap<V> {
  /** None is empty. */
  readonly #blocks: Block<V>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get blocks(): number {
    return this.#blocks.length;
  }

  get first(): readonly [key: Bytes, value: V] | undefined {
    const block = this.#blocks[0];
    return block && [block.keys[0], block.values[0]];
  }

  get last(): readonly [key: Bytes, value: V] | undefined {
    const block = this.#blocks.at(-1);
    return block && [block.keys.at(-1)!, block.values.at(-1)!];
  }

  has(key: Bytes): boolean {
    const keys = this.#blocks[this.#blockOf(key)]?.keys ?? [];
    return keys[lowerBound(keys, key)] === key;
  }

  get(key: Bytes): V | undefined {
    const block = this.#blocks[this.#blockOf(key)];
    if (block === undefined) return undefined;
    const offset = lowerBound(block.keys, key);
    return block.keys[offset] === key ? block.values[offset] : undefined;
  }

  /** @returns whether the key is new */
  set(key: Bytes, value: V): boolean {
    if (this.#blocks.length === 0) this.#blocks.push({ keys: [], values: [] });
    const index = Math.min(this.#blockOf(key), this.#blocks.length - 1);
    const block = this.#blocks[index];
    const offset = lowerBound(block.keys, key);
    if (block.keys[offset] === key) {
      block.values[offset] = value;
      return false;
    }
    this.#size++;
    if (block.keys.length < BLOCK_MAX) insert(block, offset, key, value);
    else this.#split(index, offset, key, value);
    return true;
  }

  delete(key: Bytes): boolean {
    const index = this.#blockOf(key);
    const block = this.#blocks[index];
    if (block === undefined) return false;
    const offset = lowerBound(block.keys, key);
    if (block.keys[offset] !== key) return false;
    block.keys.splice(offset, 1);
    block.values.splice(offset, 1);
    if (block.keys.length === 0) this.#blocks.splice(index, 1);
    this.#size--;
    return true;
  }

  /** Visits keys from `from` to `to`, both included. The map must not be changed meanwhile. */
  visit(from: Bytes, to: Bytes, visit: Visit<V>): void {
    let index = this.#blockOf(from);
    if (index === this.#blocks.length) return;
    let offset = lowerBound(this.#blocks[index].keys, from);
    for (; index < this.#blocks.length; index++, offset = 0) {
      const { keys, values } = this.#blocks[index];
      for (; offset < keys.length; offset++) {
        if (keys[offset] > to || !visit(keys[offset], values[offset])) return;
      }
    }
  }

  /** As `visit`, from `to` down to `from`. */
  visitDown(from: Bytes, to: Bytes, visit: Visit<V>): void {
    for (let index = Math.min(this.#blockOf(to), this.#blocks.length - 1); index >= 0; index--) {
      const { keys, values } = this.#blocks[index];
      for (let offset = keys.length - 1; offset >= 0; offset--) {
        if (keys[offset] > to) continue;
        if (keys[offset] < from || !visit(keys[offset], values[offset])) return;
      }
    }
  }

  #split(index: number, offset: number, key: Bytes, value: V): void {
    const block = this.#blocks[index];
    // Keys that always come last leave full blocks behind.
    const isLast = offset === BLOCK_MAX && index === this.#blocks.length - 1;
    const half = isLast ? BLOCK_MAX : BLOCK_MAX / 2;
    const next = { keys: block.keys.splice(half), values: block.values.splice(half) };
    this.#blocks.splice(index + 1, 0, next);
    if (offset > half || isLast) insert(next, offset - half, key, value);
    else insert(block, offset, key, value);
  }

  /** The first block whose last key does not come before this one; the number of blocks if there is none. */
  #blockOf(key: Bytes): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#blocks[middle].keys.at(-1)! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function insert<V>({ keys, values }: Block<V>, offset: number, key: Bytes, value: V): void {
  keys.splice(offset, 0, key);
  values.splice(offset, 0, value);
}

/** The position at which the key is, or belongs. */
function lowerBound(keys: readonly Bytes[], key: Bytes): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
