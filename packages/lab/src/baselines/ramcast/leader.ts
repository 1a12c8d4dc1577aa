/** The leader of a group: its data path, in the order of its steps. `replica.ts` has the overview. */
import { sizeOf } from '../passing/sets.js';
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
    // In shared memory all writes have completed by now.
    work += this.pollCompletions();
    this.proposals.confirm(this.ordering);
    if (this.acks !== undefined) work += this.acks.send() + this.acks.poll();
    work += this.deliver();
    this.replies.notifyClients();
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

  /** Gives timestamps to new messages, the clients in rotation. */
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
      const destinations = sizeOf(destinationsLow, destinationsHigh);
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
      // Every later message gets a timestamp above all that were observed.
      const message = ordering.next(Number.POSITIVE_INFINITY);
      if (message < 0) return count;
      const slot = ordering.slotOf(message);
      const sequence = ordering.sequenceOf(message);
      replies.send(slot, sequence, delivering.deliver(message));
      count++;
    }
  }
}
