/** A growable list of 32-bit integers, at four bytes per element. */
export class IntList {
  length = 0;
  private items: Int32Array;

  constructor(capacity = 16) {
    this.items = new Int32Array(capacity);
  }

  push(value: number): void {
    if (this.length === this.items.length) {
      const grown = new Int32Array(this.items.length * 2);
      grown.set(this.items);
      this.items = grown;
    }
    this.items[this.length++] = value;
  }

  get(index: number): number {
    return this.items[index];
  }

  set(index: number, value: number): void {
    this.items[index] = value;
  }

  /** Removes the elements from `length` on. */
  truncate(length: number): void {
    this.length = length;
  }

  /** The elements so far, not copied. The view is valid until the next `push`. */
  view(): Int32Array {
    return this.items.subarray(0, this.length);
  }
}
