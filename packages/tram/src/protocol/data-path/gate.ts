/**
 * The gate of a group under `order: 'strict'`: replies to entries below it may be sent, others are held. Deliveries never
 * wait for it. The leader moves it once in each round.
 *
 * Three watermarks, all of them indices that only grow (docs/protocol.md has the argument):
 *
 * - *settled*, of this group's log: every entry below it is decided here and settled in each child that it goes to;
 * - *settled from the parent*, of the parent's log: every entry below it that goes here lies, in our log, below *settled*.
 *   It goes up: into a slot of the parent's leader and, in case that write is lost, into our row;
 * - the *gate*, of this group's log: every entry below it is settled, and if it came from the parent, it lies below the
 *   parent's gate. It goes down, beside the end of the feed.
 *
 * So every message that precedes a released reply, in any chain of groups, is decided in all groups that order it. Each
 * watermark states a fact that stays true, so it does not matter which leader told it: readers take the greatest.
 *
 * Only settled entries are dropped from the log. So a new leader may begin with its log's base as *settled*, but not as its
 * gate: dropped entries may have come from the parent, and may lie above the parent's gate. They all lie below the parent's
 * index of the first entry that the log still has from the parent, or of the next one that will come. Once the parent's
 * gate has reached that index, our gate reaches the base.
 *
 * Invariants: base ≤ settled ≤ decided, gate ≤ settled.
 */
import { type Window, word } from '../../memory/record.js';
import { PARENT, SETTLED, SOURCE, sourceIn } from '../layout.js';
import { SlotWriter } from '../leadership/slots.js';
import type { Member } from '../member.js';
import { WIDE, writeWide } from '../wide.js';
import type { Counters } from './counters.js';
import type { Feed } from './feed.js';
import type { ParentInbox } from './inbox.js';
import type { Replication } from './replication.js';

/** The parent's index of an entry that came from a client. */
const NOT_FROM_PARENT = -1;

export class Gate {
  /** Replies to entries below this index may be sent. Without `strict`, all replies may. */
  index = Number.POSITIVE_INFINITY;
  private position = 0;
  /** Entries below this index are settled. Without `strict`, all count as settled. */
  private settled = Number.POSITIVE_INFINITY;
  /** Every entry that was dropped and came from the parent has a lower index there. */
  private droppedFromParent = 0;
  /** How far `settledFromParent` has been counted: index and position. Equal to `settled` after it. */
  private countedIndex = 0;
  private countedPosition = 0;
  private readonly isStrict: boolean;
  private readonly settledWriter = new SlotWriter(SETTLED.words);
  private settledWrites = 0;

  constructor(
    private readonly member: Member,
    private readonly replication: Replication,
    private readonly feeds: readonly Feed[],
    private readonly parent: ParentInbox,
    /** Counters over all entries of the log, decided or not. */
    private readonly proposed: Counters,
  ) {
    this.isStrict = member.edges.order === 'strict';
  }

  /** Begin to lead: everything before the log's base is settled. */
  start(): void {
    if (!this.isStrict) return;
    const { baseIndex, ring } = this.replication;
    this.index = this.member.layout.sizes.firstIndex;
    this.position = ring.base;
    this.settled = baseIndex;
    this.countedIndex = baseIndex;
    this.countedPosition = ring.base;
    this.droppedFromParent = this.firstFromParent();
    this.reachBase(this.parent.gateFor(this.droppedFromParent));
    this.tellParent(this.droppedFromParent);
  }

  /** Entries below this index may be dropped. A full log does not wait for the gate. */
  dropLimit(isFull: boolean): number {
    return isFull ? this.settled : this.index;
  }

  /** Entries below `end` are about to be dropped. */
  onDrop(end: number): void {
    if (end <= this.index) return;
    const { replication } = this;
    let position = replication.ring.base;
    for (let index = replication.baseIndex; index < end; index++) {
      const from = indexAtParent(replication.ring, position);
      if (from !== NOT_FROM_PARENT)
        this.droppedFromParent = Math.max(this.droppedFromParent, from + 1);
      position = (position + replication.wordsAt(position)) | 0;
    }
  }

  /** The parent's index of the first entry in the log that came from it, or else of the first one that has yet to come. */
  private firstFromParent(): number {
    const { replication, proposed } = this;
    let position = replication.ring.base;
    for (let index = replication.baseIndex; index < replication.endIndex; index++) {
      const from = indexAtParent(replication.ring, position);
      if (from !== NOT_FROM_PARENT) return from;
      position = (position + replication.wordsAt(position)) | 0;
    }
    return proposed.nextFromParent;
  }

  /**
   * Move the gate, and tell the parent how much of what it has sent is settled. After entries were decided and forwarded,
   * and before they are delivered: other groups do not wait for the service.
   */
  advance(): void {
    if (!this.isStrict) return;
    this.settled = this.replication.decided;
    for (const feed of this.feeds) this.settled = Math.min(this.settled, feed.settle());
    const fromParent = this.countFromParent();
    if (fromParent > this.member.settledFromParent) this.tellParent(fromParent);
    const { nextFromParent } = this.proposed;
    const parentGate = this.parent.gateFor(nextFromParent);
    // If no entry waits for the parent's gate, there is no need to look at them one by one.
    if (parentGate >= nextFromParent) {
      this.index = this.settled;
      this.position = this.countedPosition;
    } else {
      this.advanceBelow(parentGate);
    }
  }

  /** The gate may be below the log's base: then it moves to the base, or not at all. */
  private reachBase(parentGate: number): void {
    const { baseIndex, ring } = this.replication;
    if (this.index >= baseIndex || parentGate < this.droppedFromParent) return;
    this.index = baseIndex;
    this.position = ring.base;
  }

  private advanceBelow(parentGate: number): void {
    const { replication } = this;
    this.reachBase(parentGate);
    if (this.index < replication.baseIndex) return;
    while (this.index < this.settled) {
      if (indexAtParent(replication.ring, this.position) >= parentGate) return;
      this.position = (this.position + replication.wordsAt(this.position)) | 0;
      this.index++;
    }
  }

  private countFromParent(): number {
    const { replication } = this;
    if (this.settled === replication.endIndex) {
      this.countedIndex = this.settled;
      this.countedPosition = replication.endPosition;
      return this.proposed.nextFromParent;
    }
    let fromParent = this.member.settledFromParent;
    while (this.countedIndex < this.settled) {
      const from = indexAtParent(replication.ring, this.countedPosition);
      if (from !== NOT_FROM_PARENT) fromParent = from + 1;
      this.countedPosition = (this.countedPosition + replication.wordsAt(this.countedPosition)) | 0;
      this.countedIndex++;
    }
    return fromParent;
  }

  private tellParent(fromParent: number): void {
    const { member, settledWriter, parent } = this;
    const { memory, layout, overlay } = member.edges;
    member.settledFromParent = Math.max(member.settledFromParent, fromParent);
    const group = overlay.parent(member.group);
    if (group < 0) return;
    writeWide(settledWriter.body, SETTLED.index, member.settledFromParent);
    const peer = layout.replicaParticipant(group, parent.writer);
    const to = layout.settled(member.group, member.index);
    const number = ++this.settledWrites;
    settledWriter.post(memory, peer, to, SETTLED.words, member.incarnation, number);
    memory.wake(peer, true);
  }
}

function indexAtParent(log: Window, position: number): number {
  const from = position + sourceIn(word(log, position));
  if (word(log, from + SOURCE.id) !== PARENT) return NOT_FROM_PARENT;
  return word(log, from + SOURCE.nextPosition) * WIDE + (word(log, from + SOURCE.number) >>> 0);
}
