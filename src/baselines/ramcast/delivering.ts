/** Delivering messages from where their clients wrote them. The leader and the followers do the same here. */
import type { Application, Delivery, Edges } from './edges.js';
import type { Inbox } from './inbox.js';
import { MESSAGE } from './layout.js';
import type { Ordering } from './ordering.js';

/** The message at a position of a client's inbox, as the application sees it. */
class InboxMessage implements Delivery {
  client = 0;
  sequence = 0;
  destinationsLow = 0;
  destinationsHigh = 0;
  private position = 0;
  private at = 0;
  private readonly words: Int32Array;
  private readonly bytes: Uint8Array;
  private readonly mask: number;
  /** Where a payload is put together that wraps around its ring. */
  private readonly straight: Uint8Array;

  constructor(
    private readonly edges: Edges,
    readonly group: number,
  ) {
    const { memory, layout } = edges;
    this.words = memory.own;
    this.bytes = new Uint8Array(memory.own.buffer, memory.own.byteOffset, memory.own.byteLength);
    this.mask = layout.inboxWords - 1;
    this.straight = new Uint8Array(layout.sizes.payloadBytesMax);
  }

  read(client: number, position: number): void {
    const { words, mask } = this;
    const at = this.edges.layout.inbox(client);
    this.client = client;
    this.at = at;
    this.position = position;
    this.sequence = words[at + ((position + MESSAGE.sequence) & mask)]!;
    this.destinationsLow = words[at + ((position + MESSAGE.destinationsLow) & mask)]!;
    this.destinationsHigh = words[at + ((position + MESSAGE.destinationsHigh) & mask)]!;
  }

  get payload(): Uint8Array {
    const { words, bytes, at, mask, position, straight } = this;
    const length = words[at + ((position + MESSAGE.payloadBytes) & mask)]!;
    const place = (position + MESSAGE.payload) & mask;
    const start = (at + place) * 4;
    const untilWrap = (mask + 1 - place) * 4;
    if (length <= untilWrap) return bytes.subarray(start, start + length);
    straight.set(bytes.subarray(start, start + untilWrap));
    straight.set(bytes.subarray(at * 4, at * 4 + length - untilWrap), untilWrap);
    return straight.subarray(0, length);
  }
}

export class Delivering {
  /** How many were delivered. */
  count: number;
  private readonly delivery: InboxMessage;
  private readonly callsMax: number;

  constructor(
    edges: Edges,
    group: number,
    private readonly application: Application,
    private readonly ordering: Ordering,
    private readonly inboxes: readonly Inbox[],
  ) {
    this.count = edges.layout.sizes.origin | 0;
    this.delivery = new InboxMessage(edges, group);
    this.callsMax = edges.layout.sizes.callsMax;
  }

  /** Returns the reply. */
  deliver(message: number): Uint8Array | undefined {
    const { ordering, delivery } = this;
    const client = Math.floor(ordering.slotOf(message) / this.callsMax);
    delivery.read(client, ordering.positionOf(message));
    const reply = this.application.deliver(delivery);
    this.count = (this.count + 1) | 0;
    this.inboxes[client]!.delivered(ordering.ordinalOf(message));
    ordering.release(message);
    return reply;
  }
}
