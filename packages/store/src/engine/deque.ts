/**
 * A sequence of byte strings in a ring buffer: elements are added and removed at both ends, and reached by index, in constant time. Whatever is
 * inserted or removed elsewhere moves the elements of the shorter side.
 */

import type { Bytes } from '../resp/reply.js';

const CAPACITY_MIN = 4;

export class Deque {
  /** Its length is a power of two. Places without an element are undefined, so that nothing is kept alive. */
  #ring: (Bytes | undefined)[] = new Array(CAPACITY_MIN).fill(undefined);
  #head = 0;
  #length = 0;
  #bytes = 0;

  /** How many bytes all elements have. */
  get bytes(): number {
    return this.#bytes;
  }

  get length(): number {
    return this.#length;
  }

  /** @param index  0 <= index < length, as in all methods */
  at(index: number): Bytes {
    return this.#ring[this.#place(index)]!;
  }

  set(index: number, element: Bytes): void {
    this.#bytes += element.length - this.at(index).length;
    this.#put(index, element);
  }

  pushLeft(element: Bytes): void {
    if (this.#length === this.#ring.length) this.#resize(this.#length * 2);
    this.#head = (this.#head - 1) & (this.#ring.length - 1);
    this.#ring[this.#head] = element;
    this.#bytes += element.length;
    this.#length++;
  }

  pushRight(element: Bytes): void {
    if (this.#length === this.#ring.length) this.#resize(this.#length * 2);
    this.#put(this.#length, element);
    this.#bytes += element.length;
    this.#length++;
  }

  /** @returns undefined if there is none */
  popLeft(): Bytes | undefined {
    if (this.#length === 0) return undefined;
    const element = this.at(0);
    this.#bytes -= element.length;
    this.#ring[this.#head] = undefined;
    this.#head = this.#place(1);
    this.#length--;
    this.#shrink();
    return element;
  }

  /** @returns undefined if there is none */
  popRight(): Bytes | undefined {
    if (this.#length === 0) return undefined;
    const element = this.at(this.#length - 1);
    this.#bytes -= element.length;
    this.#length--;
    this.#put(this.#length, undefined);
    this.#shrink();
    return element;
  }

  /** The element gets this index. @param index  0 <= index <= length */
  insert(index: number, element: Bytes): void {
    if (index < this.#length / 2) {
      this.pushLeft(element);
      for (let i = 0; i < index; i++) this.#put(i, this.at(i + 1));
    } else {
      this.pushRight(element);
      for (let i = this.#length - 1; i > index; i--) this.#put(i, this.at(i - 1));
    }
    this.#put(index, element);
  }

  /** Keeps the elements from `from` to before `to`. */
  trim(from: number, to: number): void {
    for (let i = 0; i < from; i++) this.#clear(i);
    for (let i = to; i < this.#length; i++) this.#clear(i);
    this.#head = this.#place(from);
    this.#length = to - from;
    this.#shrink();
  }

  /**
   * Removes elements that are equal to this one.
   * @param limit  how many at most
   * @param fromRight  whether the last ones go first
   * @returns how many were removed
   */
  remove(element: Bytes, limit: number, fromRight: boolean): number {
    const length = this.#length;
    let removed = 0;
    for (let i = 0; i < length; i++) {
      const from = fromRight ? length - 1 - i : i;
      const other = this.at(from);
      if (other === element && removed < limit) removed++;
      else if (removed > 0) this.#put(fromRight ? from + removed : from - removed, other);
    }
    if (removed === 0) return 0;
    // The places that are left over have elements that moved: for the count of bytes, they hold the removed ones.
    for (let i = 0; i < removed; i++) this.#put(fromRight ? i : length - 1 - i, element);
    this.trim(fromRight ? removed : 0, fromRight ? length : length - removed);
    return removed;
  }

  /** The elements from `from` to before `to`. */
  slice(from: number, to: number): Bytes[] {
    const start = this.#place(from);
    const end = start + to - from;
    const capacity = this.#ring.length;
    const first = this.#ring.slice(start, Math.min(end, capacity));
    return (end <= capacity ? first : first.concat(this.#ring.slice(0, end - capacity))) as Bytes[];
  }

  #put(index: number, element: Bytes | undefined): void {
    this.#ring[this.#place(index)] = element;
  }

  #clear(index: number): void {
    this.#bytes -= this.at(index).length;
    this.#put(index, undefined);
  }

  #place(index: number): number {
    return (this.#head + index) & (this.#ring.length - 1);
  }

  #shrink(): void {
    let capacity = this.#ring.length;
    while (capacity > CAPACITY_MIN && this.#length <= capacity / 4) capacity /= 2;
    if (capacity < this.#ring.length) this.#resize(capacity);
  }

  #resize(capacity: number): void {
    const elements: (Bytes | undefined)[] = this.slice(0, this.#length);
    for (let i = this.#length; i < capacity; i++) elements.push(undefined);
    this.#ring = elements;
    this.#head = 0;
  }
}
