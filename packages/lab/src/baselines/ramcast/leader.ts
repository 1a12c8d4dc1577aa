/** The leader of a group: the data path, top to bottom. See replica.ts for the whole. */
import type { Acks } from './acks.js';
import type { Clock } from './clock.js';
import { Delivering } from './delivering.js';
import type { Application, Edges } from './edges.js';
import { Inbox } from './inbox.js';
import type { Ordering } from './ordering.js';
import { Proposals } from './proposals.js';
import type { Parts, Replica } from './replica.js';
import { Replies } from './replies.js';
import { Stamps } from './stamps.js';

export class Leader implements Replica {
  private readonly inboxes: Inbox[] = [];
  private readonly ordering: Ordering;
  private readonly clock: Clock;
  private readonly proposals: Proposals;
  private readonly stamps: Stamps;
  private readonly delivering: Delivering;
  private readonly replies: Replies;
  private turn = 0;

  constructor(
    private readonly edges: Edges,
    group: number,
    application: Application,
    { ordering, clock }: Parts,
    private readonly acks: Acks | undefined,
  ) {
    const { clients } = edges.layout.sizes;
    for (let client = 0; client < clients; client++) this.inboxes.push(new Inbox(edges, client));
    this.ordering = ordering;
    this.clock = clock;
    this.proposals = new Proposals(edges, group);
    this.stamps = new Stamps(edges, group, ordering, clock);
    this.delivering = new Delivering(edges, group, application, ordering, this.inboxes);
    this.replies = new Replies(edges, group);
  }

  get delivered(): number {
    return this.delivering.count;
  }

  doWork(): number {
    let work = this.pollCompletions();
    this.proposals.confirm(this.ordering);
    work += this.stamps.poll();
    work += this.pollInboxes();
    this.proposals.send();
    // Where memory is shared, all of it is done already.
    work += this.pollCompletions();
    this.proposals.confirm(this.ordering);
    if (this.acks !== undefined) work += this.acks.send() + this.acks.poll();
    work += this.deliver();
    this.replies.ringDoorbells();
    this.proposals.publish(this.delivering.count);
    return work;
  }

  private pollCompletions(): number {
    const { memory } = this.edges;
    let count = 0;
    while (memory.poll()) {
      const { peer, tag, outcome } = memory.completion;
      if (tag > 0 || outcome !== 'ok') this.proposals.onWritten(peer, tag, outcome === 'ok');
      count++;
    }
    return count;
  }

  /** Give new messages their timestamps, the clients in turn. */
  private pollInboxes(): number {
    const { inboxes } = this;
    const { batchMessages } = this.edges.pace;
    let room = batchMessages;
    let client = this.turn;
    for (let i = 0; i < inboxes.length && room > 0; i++) {
      if (inboxes[client].hasNext()) room -= this.take(inboxes[client]);
      client = client + 1 < inboxes.length ? client + 1 : 0;
    }
    this.turn = this.turn + 1 < inboxes.length ? this.turn + 1 : 0;
    return batchMessages - room;
  }

  private take(inbox: Inbox): number {
    const { proposals, ordering, clock } = this;
    const { memory, pace } = this.edges;
    let taken = 0;
    memory.readFence();
    while (taken < pace.clientMessages && inbox.hasNext()) {
      if (!proposals.hasRoom && !proposals.hasRoomFor(inbox.nextLow(), inbox.nextHigh())) break;
      inbox.take();
      const { slot, sequence, destinationsLow, destinationsHigh } = inbox;
      const timestamp = clock.tick();
      const destinations = bitsIn(destinationsLow) + bitsIn(destinationsHigh);
      ordering.propose(slot, sequence, destinations, timestamp, inbox.position, inbox.ordinal);
      proposals.propose(slot, sequence, timestamp, destinationsLow, destinationsHigh);
      taken++;
    }
    return taken;
  }

  private deliver(): number {
    const { ordering, delivering, replies } = this;
    let count = 0;
    for (;;) {
      // Whatever comes gets a timestamp above all that were seen.
      const message = ordering.next(Number.POSITIVE_INFINITY);
      if (message < 0) return count;
      const slot = ordering.slotOf(message);
      const sequence = ordering.sequenceOf(message);
      replies.send(slot, sequence, delivering.deliver(message));
      count++;
    }
  }
}

/** How many bits of a word are set. */
export function bitsIn(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
