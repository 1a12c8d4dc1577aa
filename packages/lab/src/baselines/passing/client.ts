/**
 * A client of a message-passing system: multicasts messages and counts replies. The subclasses decide where a message enters
 * the system (`skeen/client.ts`, `byzcast/client.ts`).
 *
 * Invariant: a slot is reused only after every destination of its last message has replied.
 */
import { Kind, Message } from './message.js';
import type { Network, Participant, Sizes } from './network.js';
import { sizeOf } from './sets.js';

export interface CallListener {
  /** Every destination has delivered the message. Called while a reply is received; may multicast. */
  answered(client: number, slot: number): void;
}

export abstract class Client implements Participant {
  /** The slot and the number of the last message. */
  lastSlot = -1;
  lastNumber = -1;
  private readonly message = new Message();
  /** The first `freeCount` entries are the free slots. */
  private readonly free: Int32Array;
  private freeCount: number;
  private readonly numberIn: Int32Array;
  /** By slot, the number of destinations that have not replied yet. */
  private readonly missingIn: Int32Array;

  constructor(
    private readonly client: number,
    sizes: Sizes,
    private readonly listener: CallListener,
  ) {
    this.free = Int32Array.from({ length: sizes.slots }, (_, i) => sizes.slots - 1 - i);
    this.freeCount = sizes.slots;
    this.numberIn = new Int32Array(sizes.slots);
    this.missingIn = new Int32Array(sizes.slots);
  }

  /** Messages in flight. */
  get outstanding(): number {
    return this.free.length - this.freeCount;
  }

  /** @returns false if there is no free slot */
  multicast(low: number, high: number, payload: Int32Array, payloadBytes: number): boolean {
    if (this.freeCount === 0) return false;
    const slot = this.free[--this.freeCount];
    this.lastSlot = slot;
    this.lastNumber++;
    this.numberIn[slot] = this.lastNumber;
    this.missingIn[slot] = sizeOf(low, high);
    const message = this.message.about(this.client, slot, this.lastNumber);
    message.low = low;
    message.high = high;
    message.payload = payload;
    message.payloadBytes = payloadBytes;
    this.enter(message);
    return true;
  }

  receive(from: number, reply: Message): void {
    const { slot } = reply;
    if (
      reply.kind !== Kind.reply ||
      reply.number !== this.numberIn[slot] ||
      this.missingIn[slot] === 0
    ) {
      throw new Error(`client ${this.client} has no message ${reply.number} that ${from} delivers`);
    }
    if (--this.missingIn[slot] > 0) return;
    this.free[this.freeCount++] = slot;
    this.listener.answered(this.client, slot);
  }

  /** Sends the message to the groups at which it enters the system. */
  protected abstract enter(message: Message): void;
}

/** Sends the replies of a group to clients. */
export class Replies {
  private readonly message = new Message();

  constructor(
    private readonly network: Network,
    private readonly groups: number,
  ) {
    this.message.kind = Kind.reply;
  }

  send(client: number, slot: number, number: number): void {
    this.network.send(this.groups + client, this.message.about(client, slot, number));
  }
}
