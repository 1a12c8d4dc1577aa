/**
 * Places in a buffer, taken one after the other and given back in the same order. A place does not wrap: what does
 * not fit before the buffer's end goes to its start.
 *
 * Positions grow for ever, so that a mark means the same whenever it is given back.
 */
export class Space {
  private taken = 0;
  private freed = 0;

  /** @param first  the words before it are not for taking */
  constructor(
    private readonly first: number,
    private readonly words: number,
  ) {}

  /** Where there are so many words now, or -1. */
  take(count: number): number {
    const { words } = this;
    if (count > words) throw new RangeError(`${count} words do not fit into a buffer of ${words}`);
    // An empty buffer starts from its start: what is used often stays in the cache.
    if (this.freed === this.taken) this.taken = this.freed = Math.ceil(this.taken / words) * words;
    let start = this.taken % words;
    let end = this.taken + count;
    if (start + count > words) {
      end += words - start;
      start = 0;
    }
    if (end - this.freed > words) return -1;
    this.taken = end;
    return this.first + start;
  }

  /** For `free`, later: everything that is taken now. */
  get mark(): number {
    return this.taken;
  }

  /** Give back all that was taken before the mark was made. */
  free(mark: number): void {
    // The mark of one who took nothing may be older than what is free already.
    if (mark > this.freed) this.freed = mark;
  }
}
