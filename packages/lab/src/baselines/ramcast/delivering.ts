/** Delivers messages from the inboxes into which clients wrote them. Used by leader and followers alike. */
import type { Application, Delivery, Edges } from './edges.js';
import type { Inbox } from './inbox.js';
import { MESSAGE } from './layout.js';
import type { Ordering } from './ordering.js';

/** The message at a position of a client's inbox, as the application sees it: fields are read on access. */
class InboxMessage implements Delivery {
  client = 0;
  position = 0;
  private readonly words: Int32Array;
  private readonly bytes: Uint8Array;
  private readonly mask: number;
  /** Buffer for a payload that wraps around its ring. */
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

  private get at(): number {
    return this.edges.layout.inbox(this.client);
  }

  private field(field: number): number {
    return this.words[this.at + ((this.position + field) & this.mask)];
  }

  get sequence(): number {
    return this.field(MESSAGE.sequence);
  }

  get destinationsLow(): number {
    return this.field(MESSAGE.destinationsLow);
  }

  get destinationsHigh(): number {
    return this.field(MESSAGE.destinationsHigh);
  }

  get payload(): Uint8Array {
    const { bytes, at, mask, position, straight } = this;
    const length = this.field(MESSAGE.payloadBytes);
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
  /** Delivered messages, modulo 2³². */
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
    this.count = edges.layout.sizes.firstIndex | 0;
    this.delivery = new InboxMessage(edges, group);
    this.callsMax = edges.layout.sizes.callsMax;
  }

  /** @returns the reply */
  deliver(message: number): Uint8Array | undefined {
    const { ordering, delivery } = this;
    const client = Math.floor(ordering.slotOf(message) / this.callsMax);
    delivery.client = client;
    delivery.position = ordering.positionOf(message);
    const reply = this.application.deliver(delivery);
    this.count = (this.count + 1) | 0;
    this.inboxes[client].delivered(ordering.ordinalOf(message));
    ordering.release(message);
    return reply;
  }
}
