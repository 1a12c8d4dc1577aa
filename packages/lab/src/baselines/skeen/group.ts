/**
 * A destination in Skeen's protocol (as described by Birman and Joseph, 1987): one process, no failures.
 *
 *   client ── multicast ──▶ every destination
 *                           each takes the next value of its clock as its proposal
 *             destination ── proposal ──▶ every other destination
 *                           the greatest proposal is the message's final timestamp
 *             destination ── reply ──▶ client, when it delivers in the order of final timestamps
 *
 * It takes three message delays and is genuine: only sender and destinations take part.
 *
 * A message with a final timestamp is delivered when no other message can precede it. The final timestamp of an undecided
 * message is not below this group's proposal for it. A message that has not arrived yet gets a proposal above this group's
 * clock, and no final timestamp known here exceeds the clock.
 */
import { Replies } from '../passing/client.js';
import { Kind, Message } from '../passing/message.js';
import type { Network, Observer, Participant, Sizes } from '../passing/network.js';
import { memberAfter, sizeOf } from '../passing/sets.js';
import { Decided } from './decided.js';
import { isBefore, Pending } from './pending.js';
import { Proposed } from './proposed.js';

export class SkeenGroup implements Participant {
  private clock = 0;
  /** By client and slot. */
  private readonly pending: Pending[];
  private readonly proposed: Proposed;
  private readonly decided = new Decided();
  private readonly proposal = new Message();
  private readonly delivery = new Message();
  private readonly replies: Replies;

  constructor(
    private readonly group: number,
    private readonly sizes: Sizes,
    private readonly network: Network,
    private readonly observer: Observer,
  ) {
    const { clients, slots } = sizes;
    this.pending = Array.from(
      { length: clients * slots },
      (_, i) => new Pending(Math.floor(i / slots), i % slots),
    );
    this.proposed = new Proposed(clients * slots);
    this.proposal.kind = Kind.proposal;
    this.replies = new Replies(network, sizes.groups);
  }

  receive(from: number, message: Message): void {
    const pending = this.pendingOf(message);
    if (message.kind === Kind.multicast) this.propose(pending, message);
    else if (message.kind === Kind.proposal) count(pending, message.timestamp);
    else throw new Error(`group ${this.group} got a message of kind ${message.kind} from ${from}`);
    if (pending.proposals === pending.destinations) this.decide(pending);
  }

  /** A proposal of another destination may arrive before the message itself. */
  private pendingOf({ client, slot, number }: Message): Pending {
    const pending = this.pending[client * this.sizes.slots + slot];
    if (pending.number === -1) pending.begin(number);
    else if (pending.number !== number) {
      throw new Error(
        `group ${this.group} got message ${number} of client ${client} while ${pending.number} was in its slot`,
      );
    }
    return pending;
  }

  private propose(pending: Pending, message: Message): void {
    const { low, high } = message;
    pending.destinations = sizeOf(low, high);
    pending.keepPayload(message);
    pending.proposed = ++this.clock;
    this.proposed.add(pending);
    count(pending, pending.proposed);
    if (pending.destinations === 1) return;
    const proposal = this.proposal.about(pending.client, pending.slot, pending.number);
    proposal.timestamp = pending.proposed;
    for (
      let other = memberAfter(low, high, -1);
      other >= 0;
      other = memberAfter(low, high, other)
    ) {
      if (other !== this.group) this.network.send(other, proposal);
    }
  }

  /** All proposals are known. */
  protected decide(pending: Pending): void {
    pending.isDecided = true;
    this.clock = Math.max(this.clock, pending.timestamp);
    this.decided.add(pending);
    this.deliverReady();
  }

  private deliverReady(): void {
    for (let first = this.decided.first; first !== undefined; first = this.decided.first) {
      const undecided = this.proposed.firstUndecided();
      if (
        undecided !== undefined &&
        isBefore(undecided, undecided.proposed, first, first.timestamp)
      ) {
        return;
      }
      this.decided.removeFirst();
      this.deliver(first);
    }
  }

  private deliver(pending: Pending): void {
    const { client, slot, number } = pending;
    const delivery = this.delivery.about(client, slot, number);
    delivery.payload = pending.payload;
    delivery.payloadBytes = pending.payloadBytes;
    this.observer.delivered(delivery);
    pending.number = -1;
    this.replies.send(client, slot, number);
  }
}

function count(pending: Pending, timestamp: number): void {
  pending.proposals++;
  if (timestamp > pending.timestamp) pending.timestamp = timestamp;
}
