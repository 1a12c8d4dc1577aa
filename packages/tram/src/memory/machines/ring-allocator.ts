/**
 * Allocates pieces of a buffer in ring order: pieces are freed in the order of their allocation. A piece is contiguous:
 * if it does not fit before the end of the buffer, it starts at the beginning. All pieces start at even words, as
 * `copyPart` needs it to be fast.
 *
 * Positions count all words ever allocated, including those skipped at the end of the buffer, so a mark stays valid:
 * `freed ≤ allocated ≤ freed + words`.
 */
export const NO_ROOM = -1;

export class RingAllocator {
  private allocated = 0;
  private freed = 0;

  /** @param first  where in the buffer the ring starts: even  @param words  even */
  constructor(
    private readonly first: number,
    private readonly words: number,
  ) {}

  /**
   * @returns where in the buffer the piece starts, or `NO_ROOM` until more is freed
   * @throws RangeError if the piece is larger than the buffer
   */
  allocate(count: number): number {
    const { words } = this;
    const pairs = count + (count & 1);
    if (count > words) throw new RangeError(`${count} words do not fit into a buffer of ${words}`);
    if (this.freed === this.allocated) this.rewind();
    let start = this.allocated % words;
    let end = this.allocated + pairs;
    if (start + pairs > words) {
      end += words - start;
      start = 0;
    }
    if (end - this.freed > words) return NO_ROOM;
    this.allocated = end;
    return this.first + start;
  }

  /** Marks everything that is allocated now, for `freeTo`. */
  get mark(): number {
    return this.allocated;
  }

  /** Free everything that was allocated before the mark was taken. An older mark than the last one frees nothing. */
  freeTo(mark: number): void {
    if (mark > this.freed) this.freed = mark;
  }

  /** An empty ring starts again at its first word: what is used often stays in the cache. */
  private rewind(): void {
    this.allocated = Math.ceil(this.allocated / this.words) * this.words;
    this.freed = this.allocated;
  }
}
