/**
 * Acknowledgements, as in published RamCast. For a message to several groups, every replica that has the timestamps of all
 * destinations acknowledges to all destinations. A leader delivers when f+1 replicas of each destination have acknowledged.
 * Acknowledgements go to leaders only, because followers deliver what their leader has delivered. `proposals.ts` has the
 * alternative.
 *
 * `AcknowledgedOrdering` decides when a message is acknowledged and when it is final. `Acks` transports acknowledgements: each
 * replica writes them in batches into a ring at each leader, and then their count.
 *
 * Invariant: at a leader a message has the number of its slot (`ordering.ts`).
 */
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import { NO_SALT, postRange, ringAt, type Window } from 'tram-multicast/internal/memory/record.js';
import { type Edges, Todo } from './edges.js';
import { ACK, LEADER, MESSAGE } from './layout.js';
import { Ordering } from './ordering.js';

/** Numbers for each message to acknowledge: slot, sequence, destinations low, high. */
const DUE = 4;

export class AcknowledgedOrdering extends Ordering {
  /** Messages to acknowledge, oldest first; see `DUE`. */
  readonly due: number[] = [];
  /** At a leader, by slot: the number of destinations that have acknowledged, and of all. */
  private readonly groupsDone: Uint8Array;
  private readonly destinations: Uint8Array;
  private readonly isComplete: Uint8Array;
  /** By slot and group: the number of replicas that have acknowledged. */
  private readonly counts: Uint8Array;
  /** By slot: the last delivered message. Late acknowledgements of it may arrive. */
  private readonly last: Int32Array;
  private readonly quorum: number;
  private readonly groups: number;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
    private readonly leads: boolean,
  ) {
    const { slots, sizes } = edges.layout;
    super(slots);
    this.groups = sizes.groups;
    this.quorum = (sizes.replicas >> 1) + 1;
    this.groupsDone = new Uint8Array(slots);
    this.destinations = new Uint8Array(slots);
    this.isComplete = new Uint8Array(slots);
    this.counts = new Uint8Array(slots * sizes.groups);
    this.last = new Int32Array(slots).fill(sizes.firstIndex - 1);
  }

  override propose(
    slot: number,
    sequence: number,
    destinations: number,
    timestamp: number,
    position: number,
    ordinal: number,
  ): number {
    this.destinations[slot] = destinations;
    return super.propose(slot, sequence, destinations, timestamp, position, ordinal);
  }

  protected override complete(message: number): void {
    const { own } = this.edges.memory;
    const { layout } = this.edges;
    const slot = this.slotOf(message);
    const at = layout.inbox(Math.floor(slot / layout.sizes.callsMax));
    const position = this.positionOf(message);
    const mask = layout.inboxWords - 1;
    const low = own[at + ((position + MESSAGE.destinationsLow) & mask)];
    const high = own[at + ((position + MESSAGE.destinationsHigh) & mask)];
    // A message to one group: its leader counts completions.
    const isSingle = (low === 0 || high === 0) && ((low & (low - 1)) | (high & (high - 1))) === 0;
    if (!isSingle) this.due.push(slot, this.sequenceOf(message), low, high);
    if (!this.leads || isSingle) {
      this.finish(message);
      return;
    }
    this.isComplete[slot] = 1;
    this.acknowledged(this.group, slot, this.sequenceOf(message));
  }

  /** At a leader: a replica of this group has acknowledged the message. */
  acknowledged(group: number, slot: number, sequence: number): void {
    if (((sequence - this.last[slot]) | 0) > 0) {
      if (++this.counts[slot * this.groups + group] === this.quorum) this.groupsDone[slot]++;
    }
    this.finishIfAgreed(slot);
  }

  private finishIfAgreed(slot: number): void {
    if (this.isComplete[slot] === 0 || this.groupsDone[slot] !== this.destinations[slot]) return;
    this.isComplete[slot] = 0;
    this.finish(slot);
  }

  override release(message: number): void {
    if (this.leads) {
      this.last[message] = this.sequenceOf(message);
      this.groupsDone[message] = 0;
      this.counts.fill(0, message * this.groups, (message + 1) * this.groups);
    }
    super.release(message);
  }
}

export class Acks {
  private readonly mirrors: Window[] = [];
  /** By group: acknowledgements written to the mirror, and those posted. */
  private readonly ends: Int32Array;
  private readonly sent: Int32Array;
  private readonly news: Todo;
  /** At a leader, by replica: acknowledgements that were read, and the count that the replica knows. */
  private readonly read: Int32Array;
  private readonly told: Int32Array;
  private readonly mask: number;
  private readonly leads: boolean;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
    private readonly ordering: AcknowledgedOrdering,
  ) {
    const { memory, layout } = edges;
    const { groups, firstIndex, replicas } = layout.sizes;
    const words = layout.ackWords;
    this.leads = memory.self % replicas === LEADER;
    this.mask = words - 1;
    for (let other = 0; other < groups; other++) {
      this.mirrors.push(ringAt(memory.scratch(words), 0, words, NO_SALT));
    }
    this.ends = new Int32Array(groups).fill(firstIndex);
    this.sent = new Int32Array(groups).fill(firstIndex);
    this.news = new Todo(groups);
    this.read = new Int32Array(layout.replicas).fill(firstIndex);
    this.told = new Int32Array(layout.replicas).fill(firstIndex);
  }

  /** Sends all due acknowledgements. */
  send(): number {
    const { due } = this.ordering;
    let done = 0;
    for (; done < due.length && this.hasRoom(due[done + 2], due[done + 3]); done += DUE) {
      this.put(due[done], due[done + 1], due[done + 2], due[done + 3]);
    }
    if (done === due.length) due.length = 0;
    else due.splice(0, done);
    this.post();
    return done / DUE;
  }

  private hasRoom(low: number, high: number): boolean {
    for (let rest = low; rest !== 0; rest &= rest - 1) {
      if (!this.hasRoomFor(31 - Math.clz32(rest & -rest))) return false;
    }
    for (let rest = high; rest !== 0; rest &= rest - 1) {
      if (!this.hasRoomFor(63 - Math.clz32(rest & -rest))) return false;
    }
    return true;
  }

  private hasRoomFor(group: number): boolean {
    const { memory, layout } = this.edges;
    const unread = (this.ends[group] - memory.own[layout.acksRead(group)]) | 0;
    return unread * ACK.words <= this.mask;
  }

  private put(slot: number, sequence: number, low: number, high: number): void {
    for (let rest = low; rest !== 0; rest &= rest - 1) {
      this.append(31 - Math.clz32(rest & -rest), slot, sequence);
    }
    for (let rest = high; rest !== 0; rest &= rest - 1) {
      this.append(63 - Math.clz32(rest & -rest), slot, sequence);
    }
  }

  private append(group: number, slot: number, sequence: number): void {
    // A leader counts its own acknowledgements directly.
    if (this.leads && group === this.group) return;
    const { words, mask } = this.mirrors[group];
    const place = (this.ends[group] * ACK.words) & mask;
    words[place + ACK.slot] = slot;
    words[place + ACK.sequence] = sequence;
    this.ends[group]++;
    this.news.add(group);
  }

  private post(): void {
    const { memory, layout } = this.edges;
    const { ends, sent, news } = this;
    for (let i = 0; i < news.count; i++) {
      const group = news.at(i);
      const leader = layout.leaderParticipant(group);
      const from = sent[group] * ACK.words;
      const end = ends[group] * ACK.words;
      const to = layout.acks(memory.self);
      postRange(memory, leader, to, this.mirrors[group], from, end, OPEN, 0, 0);
      memory.write(leader, layout.acked(memory.self), ends, group, 1, OPEN, 0);
      memory.wake(leader, true);
      sent[group] = ends[group];
    }
    news.clear();
  }

  /** At a leader: reads the acknowledgements of other replicas. */
  poll(): number {
    const { own } = this.edges.memory;
    const { read } = this;
    const first = this.edges.layout.acked(0);
    let count = 0;
    for (let replica = 0; replica < read.length; replica++) {
      if (own[first + replica] !== read[replica]) count += this.pollOne(replica);
    }
    return count;
  }

  private pollOne(replica: number): number {
    const { memory, layout } = this.edges;
    const { own } = memory;
    const { read, mask, ordering } = this;
    const until = own[layout.acked(replica)];
    // The acknowledgements were written before the count.
    memory.readFence();
    const at = layout.acks(replica);
    const group = Math.floor(replica / layout.sizes.replicas);
    const first = read[replica];
    for (let i = first; i !== until; i = (i + 1) | 0) {
      const place = at + ((i * ACK.words) & mask);
      ordering.acknowledged(group, own[place + ACK.slot], own[place + ACK.sequence]);
    }
    read[replica] = until;
    this.giveBack(replica);
    return (until - first) | 0;
  }

  private giveBack(replica: number): void {
    const { read, told, mask } = this;
    if (((read[replica] - told[replica]) | 0) * ACK.words * 4 <= mask) return;
    told[replica] = read[replica];
    const { memory, layout } = this.edges;
    memory.write(replica, layout.acksRead(this.group), told, replica, 1, OPEN, 0);
    memory.wake(replica, true);
  }
}
