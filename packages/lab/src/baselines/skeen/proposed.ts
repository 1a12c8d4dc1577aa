/**
 * The messages for which this group has proposed a timestamp, in the order of the proposals: the first undecided one is at the
 * front.
 *
 * Invariant: a message leaves before it is delivered. A delivered message precedes the first undecided one, and its proposal is
 * no greater than its final timestamp, so it is closer to the front.
 */
import type { Pending } from './pending.js';

export class Proposed {
  private readonly ring: Pending[];
  private readonly mask: number;
  private head = 0;
  private tail = 0;

  /** @param capacity  the most messages that can be pending */
  constructor(capacity: number) {
    const size = 2 ** Math.ceil(Math.log2(capacity + 1));
    this.ring = new Array(size);
    this.mask = size - 1;
  }

  add(pending: Pending): void {
    this.ring[this.tail] = pending;
    this.tail = (this.tail + 1) & this.mask;
    if (this.tail === this.head) throw new Error('more messages are pending than there are slots');
  }

  firstUndecided(): Pending | undefined {
    while (this.head !== this.tail) {
      const first = this.ring[this.head];
      if (!first.isDecided) return first;
      this.head = (this.head + 1) & this.mask;
    }
    return undefined;
  }
}
