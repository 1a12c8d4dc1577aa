/**
 * The ring into which one client writes its messages at this replica; the replica has no other copy of them. The leader takes
 * them in their order. A follower takes each after its leader has, so it does not poll the ring itself. Messages are delivered
 * in another order; the space of the oldest one is free once it is delivered.
 *
 * Invariant: a message stays where it is until every replica of the group has delivered it.
 */
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import type { Edges } from './edges.js';
import { MESSAGE } from './layout.js';

export class Inbox {
  /** The message that was taken last. */
  slot = 0;
  sequence = 0;
  destinationsLow = 0;
  destinationsHigh = 0;
  position = 0;
  /** Its ordinal number among the messages of the client. */
  ordinal = 0;

  private readonly words: Int32Array;
  private readonly written: number;
  private readonly at: number;
  private readonly mask: number;
  private nextPosition: number;
  private nextOrdinal: number;
  /** By taken message whose space is not free: its end, and whether it is delivered. */
  private ends: Int32Array;
  private isDelivered: Uint8Array;
  private window: number;
  private oldest: number;
  private readonly told = new Int32Array(1);

  constructor(
    private readonly edges: Edges,
    private readonly client: number,
  ) {
    const { layout, memory } = edges;
    const { firstIndex, callsMax } = layout.sizes;
    this.words = memory.own;
    this.written = layout.written(client);
    this.at = layout.inbox(client);
    this.mask = layout.inboxWords - 1;
    this.nextPosition = firstIndex | 0;
    this.nextOrdinal = firstIndex | 0;
    this.oldest = firstIndex | 0;
    this.told[0] = firstIndex | 0;
    let window = 1;
    while (window < callsMax) window *= 2;
    this.window = window;
    this.ends = new Int32Array(window);
    this.isDelivered = new Uint8Array(window);
  }

  hasNext(): boolean {
    return this.words[this.written] !== this.nextOrdinal;
  }

  /** Destinations of the next message. */
  nextLow(): number {
    return this.words[this.at + ((this.nextPosition + MESSAGE.destinationsLow) & this.mask)];
  }

  nextHigh(): number {
    return this.words[this.at + ((this.nextPosition + MESSAGE.destinationsHigh) & this.mask)];
  }

  /** The caller has checked `hasNext` and called `readFence`. */
  take(): void {
    const { words, at, mask, nextPosition: position } = this;
    this.slot = words[at + ((position + MESSAGE.slot) & mask)];
    this.sequence = words[at + ((position + MESSAGE.sequence) & mask)];
    this.destinationsLow = words[at + ((position + MESSAGE.destinationsLow) & mask)];
    this.destinationsHigh = words[at + ((position + MESSAGE.destinationsHigh) & mask)];
    this.position = position;
    this.ordinal = this.nextOrdinal;
    this.nextPosition = (position + words[at + ((position + MESSAGE.words) & mask)]) | 0;
    if (((this.nextOrdinal - this.oldest) | 0) === this.window) this.grow();
    const place = this.ordinal & (this.window - 1);
    this.ends[place] = this.nextPosition;
    this.isDelivered[place] = 0;
    this.nextOrdinal = (this.nextOrdinal + 1) | 0;
  }

  delivered(ordinal: number): void {
    const { isDelivered, window } = this;
    isDelivered[ordinal & (window - 1)] = 1;
    if (ordinal !== this.oldest) return;
    let oldest = ordinal;
    let place = 0;
    do {
      place = oldest & (window - 1);
      oldest = (oldest + 1) | 0;
    } while (oldest !== this.nextOrdinal && isDelivered[oldest & (window - 1)] === 1);
    this.oldest = oldest;
    this.tellFreed(this.ends[place]);
  }

  /** The window may have to hold as many messages as fit into the ring; usually it is far smaller. */
  private grow(): void {
    const { ends, isDelivered, window, oldest } = this;
    this.ends = new Int32Array(2 * window);
    this.isDelivered = new Uint8Array(2 * window);
    for (let i = 0; i < window; i++) {
      const from = (oldest + i) & (window - 1);
      const to = (oldest + i) & (2 * window - 1);
      this.ends[to] = ends[from];
      this.isDelivered[to] = isDelivered[from];
    }
    this.window = 2 * window;
  }

  /** Reports freed space only when it is a quarter of the ring. */
  private tellFreed(position: number): void {
    const { told, mask } = this;
    if (((position - told[0]) | 0) * 4 <= mask) return;
    told[0] = position;
    const { memory, layout } = this.edges;
    const peer = layout.clientParticipant(this.client);
    memory.write(peer, layout.freed(memory.self), told, 0, 1, OPEN, 0);
    memory.wake(peer, true);
  }
}
