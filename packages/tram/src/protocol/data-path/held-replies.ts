/**
 * The replies that a leader holds, in the order of their release: a list of reply slots, each at most
 * once. replies.ts adds and releases them. The list is linked through two arrays, so it allocates nothing.
 *
 * Invariant: the replies are in the order of the entries that produced them.
 */
export class HeldReplies {
  /** Per slot, its neighbours; itself if it is not held. The last place is the head of the list. */
  private readonly next: Int32Array;
  private readonly previous: Int32Array;
  private readonly head: number;

  constructor(slots: number) {
    this.head = slots;
    this.next = new Int32Array(slots + 1);
    this.previous = new Int32Array(slots + 1);
    this.clear();
  }

  clear(): void {
    for (let slot = 0; slot <= this.head; slot++) {
      this.next[slot] = slot;
      this.previous[slot] = slot;
    }
  }

  /** The slot to be released first, or -1. */
  get first(): number {
    const first = this.next[this.head];
    return first === this.head ? -1 : first;
  }

  /** Hold a slot, as the one to be released last. */
  add(slot: number): void {
    this.remove(slot);
    const last = this.previous[this.head];
    this.next[last] = slot;
    this.previous[slot] = last;
    this.next[slot] = this.head;
    this.previous[this.head] = slot;
  }

  remove(slot: number): void {
    const next = this.next[slot];
    const previous = this.previous[slot];
    this.next[previous] = next;
    this.previous[next] = previous;
    this.next[slot] = slot;
    this.previous[slot] = slot;
  }
}
