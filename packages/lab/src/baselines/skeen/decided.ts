/** The messages with a final timestamp that are not delivered yet: a binary heap, the least timestamp on top. */
import { isBefore, type Pending } from './pending.js';

export class Decided {
  private readonly heap: Pending[] = [];

  get first(): Pending | undefined {
    return this.heap[0];
  }

  add(pending: Pending): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(pending);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isFirst(pending, heap[above])) break;
      heap[at] = heap[above];
      at = above;
    }
    heap[at] = pending;
  }

  removeFirst(): void {
    const { heap } = this;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return;
    let at = 0;
    for (let below = 1; below < length; below = 2 * at + 1) {
      if (below + 1 < length && isFirst(heap[below + 1], heap[below])) below++;
      if (!isFirst(heap[below], last)) break;
      heap[at] = heap[below];
      at = below;
    }
    heap[at] = last;
  }
}

function isFirst(one: Pending, other: Pending): boolean {
  return isBefore(one, one.timestamp, other, other.timestamp);
}
