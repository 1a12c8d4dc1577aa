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
 * gate: gate.ts says what becomes of dropped entries.
 *
 * Invariants: base ≤ settled ≤ decided, gate ≤ settled.
 */
import { SETTLED } from '../layout.js';
import { SlotWriter } from '../leadership/slots.js';
import type { Member } from '../member.js';
import { writeWide } from '../wide.js';
import type { Counters } from './counters.js';
import type { Feed } from './feed.js';
import { FromParent, firstFromParent, Gate } from './gate.js';
import type { ParentInbox } from './inbox.js';
import type { Replication } from './replication.js';

export class Settling {
  /** Replies to entries below this index may be sent. Without `strict`, all replies may. */
  gate = Number.POSITIVE_INFINITY;
  /** Entries below this index are settled. Without `strict`, all count as settled. */
  private settled = Number.POSITIVE_INFINITY;
  private readonly passed: Gate;
  private readonly fromParent: FromParent;
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
    this.passed = new Gate(replication, proposed, member.layout.sizes.firstIndex);
    this.fromParent = new FromParent(replication, proposed);
  }

  /** Begin to lead: everything before the log's base is settled. */
  start(): void {
    if (!this.isStrict) return;
    const dropped = firstFromParent(this.replication, this.proposed);
    this.settled = this.replication.baseIndex;
    this.passed.start(dropped);
    this.fromParent.start(dropped);
    this.moveGate();
    this.tellParent(dropped);
  }

  /** Entries below this index may be dropped. A full log does not wait for the gate. */
  dropLimit(isFull: boolean): number {
    return isFull ? this.settled : this.gate;
  }

  /** Entries below `end` are about to be dropped. */
  onDrop(end: number): void {
    if (this.isStrict) this.passed.onDrop(end);
  }

  /**
   * Move the gate, and tell the parent how much of what it has sent is settled. After entries were decided and forwarded,
   * and before they are delivered: other groups do not wait for the service.
   */
  advance(): void {
    if (!this.isStrict) return;
    this.settled = this.replication.decided;
    for (const feed of this.feeds) this.settled = Math.min(this.settled, feed.settle());
    const fromParent = this.fromParent.below(this.settled);
    if (fromParent > this.member.settledFromParent) this.tellParent(fromParent);
    this.moveGate();
  }

  private moveGate(): void {
    this.passed.advance(this.parent.gateFor(this.proposed.nextFromParent));
    this.gate = Math.min(this.settled, this.passed.index);
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
