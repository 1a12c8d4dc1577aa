/**
 * A follower: reads from its own memory what its leader and other leaders have written, and delivers the same messages in the
 * same order as its leader. No other participant waits for it.
 *
 * Timestamps alone are not enough: its leader may have given a lower timestamp to a message that has not arrived here. So the
 * follower delivers as many messages as its leader has, according to the leader's count. Those are the messages with the lowest
 * final timestamps, and the leader wrote all its timestamps for them before that count.
 */
import { sizeOf } from '../passing/sets.js';
import type { Acks } from './acks.js';
import type { Clock } from './clock.js';
import { Delivering } from './delivering.js';
import { type Application, assert, drain, type Edges } from './edges.js';
import { Inbox } from './inbox.js';
import { STAMP, TOLD } from './layout.js';
import type { Ordering } from './ordering.js';
import { LEADERS_KEY } from './proposals.js';
import type { Parts, Replica } from './replica.js';
import { Stamps } from './stamps.js';

export class Follower implements Replica {
  private readonly inboxes: Inbox[] = [];
  private readonly ordering: Ordering;
  private readonly clock: Clock;
  private readonly stamps: Stamps;
  private readonly delivering: Delivering;
  private readonly limit: number;
  private readonly callsMax: number;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
    application: Application,
    { ordering, clock }: Parts,
    private readonly acks: Acks | undefined,
  ) {
    const { clients, callsMax } = edges.layout.sizes;
    this.callsMax = callsMax;
    for (let client = 0; client < clients; client++) this.inboxes.push(new Inbox(edges, client));
    this.ordering = ordering;
    this.clock = clock;
    this.stamps = new Stamps(edges, group, ordering, clock);
    this.delivering = new Delivering(edges, group, application, ordering, this.inboxes);
    this.limit = edges.layout.told(group) + TOLD.delivered;
    edges.memory.permit(LEADERS_KEY);
  }

  get delivered(): number {
    return this.delivering.count;
  }

  doWork(): number {
    drain(this.edges.memory);
    // Read the count first: the timestamps that it covers were written before it.
    const limit = this.edges.memory.own[this.limit];
    this.edges.memory.readFence();
    let work = this.followLeader();
    work += this.stamps.poll();
    if (this.acks !== undefined) work += this.acks.send();
    work += this.deliver(limit);
    return work;
  }

  /** Takes the messages for which the leader has given timestamps. */
  private followLeader(): number {
    const { stamps, ordering, clock } = this;
    const { memory } = this.edges;
    const { own } = memory;
    let count = 0;
    for (let place = stamps.nextOwn(); place >= 0; place = stamps.nextOwn()) {
      const slot = own[place + STAMP.slot];
      const sequence = own[place + STAMP.sequence];
      const inbox = this.inboxes[Math.floor(slot / this.callsMax)];
      // The client's write may not have arrived yet.
      if (!inbox.hasNext()) break;
      memory.readFence();
      inbox.take();
      assert(
        inbox.slot === slot && inbox.sequence === sequence,
        "a leader takes a client's messages in their order",
      );
      const timestamp = stamps.timestampAt(place);
      const destinations = sizeOf(inbox.destinationsLow, inbox.destinationsHigh);
      const { position, ordinal } = inbox;
      ordering.know(ordering.propose(slot, sequence, destinations, timestamp, position, ordinal));
      clock.observe(timestamp);
      stamps.takeOwn();
      count++;
    }
    if (count > 0) stamps.giveBack(this.group);
    return count;
  }

  /** Delivers what the leader has delivered, as far as it has arrived here. */
  private deliver(limit: number): number {
    const { ordering, delivering, stamps } = this;
    const place = stamps.nextOwn();
    // No message from the first one that could not be taken on has a lower timestamp than this.
    const bound = place >= 0 ? stamps.timestampAt(place) : Number.POSITIVE_INFINITY;
    let count = 0;
    while (delivering.count !== limit) {
      const message = ordering.next(bound);
      if (message < 0) break;
      delivering.deliver(message);
      count++;
    }
    return count;
  }
}
