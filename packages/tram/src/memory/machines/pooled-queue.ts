/**
 * A first-in, first-out queue of mutable records that the queue itself owns and reuses. It allocates only when it grows,
 * so it is free of garbage after warm-up.
 *
 * A record has an index that counts from the first record ever added, so an index stays valid until its record is
 * dropped. Records at `firstIndex ≤ index < endIndex` are in the queue.
 */
export class PooledQueue<T> {
  private records: T[];
  private mask: number;
  private first = 0;
  private end = 0;

  /** @param size  how many records it holds before it grows: a power of two */
  constructor(
    private readonly create: () => T,
    size = 64,
  ) {
    this.records = Array.from({ length: size }, create);
    this.mask = size - 1;
  }

  get isEmpty(): boolean {
    return this.first === this.end;
  }

  get firstIndex(): number {
    return this.first;
  }

  get endIndex(): number {
    return this.end;
  }

  /** Append a record. The caller sets all its fields: they have the values of its last use. */
  add(): T {
    if (this.end - this.first > this.mask) this.grow();
    return this.records[this.end++ & this.mask];
  }

  /** @param index  from `firstIndex` to below `endIndex` */
  at(index: number): T {
    return this.records[index & this.mask];
  }

  /** Drop all records before `index`. @param index  from `firstIndex` to `endIndex` */
  dropBefore(index: number): void {
    this.first = index;
  }

  clear(): void {
    this.first = this.end;
  }

  private grow(): void {
    const size = this.records.length * 2;
    const larger = Array.from({ length: size }, this.create);
    for (let index = this.first; index < this.end; index++) {
      larger[index & (size - 1)] = this.at(index);
    }
    this.records = larger;
    this.mask = size - 1;
  }
}
