/**
 * Which entries survive even if all hosts of the cluster lose their power: what a leader knows with a journal. It moves
 * these watermarks once in each round; with `everySecond`, where nobody waits for them, only when it has read a row. All of
 * them are indices that only grow (docs/protocol.md has the argument):
 *
 * - *durable*, of this group's log: f+1 members have every entry below it durable on their hosts (journaling.ts);
 * - *recoverable*, of this group's log: every entry below it is durable and, if it came from the parent, lies below the
 *   parent's recoverable index (gate.ts). It goes down, beside the end of the feed. With `always`, replies to entries that
 *   are not recoverable are held;
 * - *durable from the parent*, of the parent's log: every entry below it that goes here lies, in our log, below *durable*.
 *   It goes up, in our row: nobody waits for it;
 * - *stable*, of this group's log: no recovery cuts entries below it from a member's sequence that has them, and none needs
 *   them for a child. So a snapshot may replace them. It goes to the other members in our row.
 *
 * Beside them it counts *marks*, for journals that have left entries out. Such a journal goes on from a snapshot, which can't
 * wait until it is stable: if journals of a group and of its parent have left entries out, each snapshot would wait for the
 * other. So these snapshots are taken right after a mark, which has one place in the order of every group. They fit together, in
 * all groups. A host *holds* a mark if its disk can give the state of the group right after it. A mark is *complete* once f+1
 * members of every group are on hosts that hold it. Then snapshots at it, or at earlier ones, count as well. That a mark is
 * held goes up the tree in rows, only for the last mark; and the next mark says which one is complete. So a journal that has
 * delivered a mark knows all marks before it that are complete, or ever will be.
 *
 * A recovery reads the journals of any f+1 members of each group, so it finds what is durable. It cuts a group's sequence
 * only at an entry that came from the parent and that the parent has lost. So it keeps what is recoverable. Each watermark
 * states a fact that stays true as long as the era lasts: it does not matter which leader told it.
 *
 * Stable entries need not be durable. If they had to be, f+1 members that have jumped to snapshots, one after the other,
 * would wait for ever: the snapshots would count only once they are stable, and that would wait for one of these members.
 *
 * Invariants: recoverable ≤ durable ≤ decided. Without a journal, every reply may be sent, and nothing costs anything.
 */
import type { GroupJournal } from '../edges.js';
import { DURABLE } from '../layout.js';
import type { Rows } from '../leadership/rows.js';
import { SlotReader } from '../leadership/slots.js';
import type { Member } from '../member.js';
import { reachedBy } from '../quorum.js';
import type { Counters } from './counters.js';
import type { Feed } from './feed.js';
import { FromParent, firstFromParent, Gate } from './gate.js';
import type { ParentInbox } from './inbox.js';
import type { Replication } from './replication.js';

/** No count of news. */
const UNKNOWN = -1;

export class Recoverable {
  /** Entries below this index are recoverable. Never goes back while this member leads. */
  index: number;
  /** Replies to entries below this index may be sent: with `always`, those to recoverable entries; otherwise all. */
  gate = Number.POSITIVE_INFINITY;
  /** Entries below this index are durable. */
  private durable: number;
  /** Per member, as far as we know: entries below this index are durable on its host. Never goes back. */
  private readonly durableBy: Float64Array;
  private readonly durableSlots: SlotReader[] = [];
  private readonly passed: Gate;
  private readonly fromParent: FromParent;
  private readonly firstIndex: number;
  /** `rows.news` when this leader looked at the rows last. */
  private seenNews = UNKNOWN;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly replication: Replication,
    private readonly feeds: readonly Feed[],
    private readonly parent: ParentInbox,
    /** Counters over all entries of the log, decided or not. */
    private readonly proposed: Counters,
  ) {
    const { layout, edges } = member;
    this.firstIndex = layout.sizes.firstIndex;
    this.index = this.firstIndex;
    this.durable = this.firstIndex;
    this.durableBy = new Float64Array(member.replicas);
    for (let other = 0; other < member.replicas; other++) {
      const at = layout.durable(other);
      this.durableSlots.push(new SlotReader(edges.memory.own, at, DURABLE.words));
    }
    this.passed = new Gate(replication, proposed, this.firstIndex);
    this.fromParent = new FromParent(replication, proposed);
  }

  /** Begin to lead: what is durable is known in the first round. Entries may have been dropped before they were durable. */
  start(): void {
    const { journal } = this.member.edges;
    if (journal === undefined) return;
    const dropped = firstFromParent(this.replication, this.proposed);
    this.index = this.firstIndex;
    this.durable = this.firstIndex;
    this.seenNews = UNKNOWN;
    this.passed.start(dropped);
    this.fromParent.start(dropped);
    if (journal.isAwaited) this.gate = this.index;
  }

  /** Entries below `end` are about to be dropped. */
  onDrop(end: number): void {
    if (this.member.edges.journal === undefined) return;
    this.passed.onDrop(end);
    this.fromParent.onDrop(end);
  }

  /** Move the watermarks, after entries were decided and before they are delivered. */
  advance(): void {
    const { member, proposed } = this;
    const { journal } = member.edges;
    if (journal === undefined) return;
    // A group of one member reads no rows.
    const hasNews = this.rows.news !== this.seenNews || member.replicas === 1;
    if (!hasNews && !journal.isAwaited) return;
    this.seenNews = this.rows.news;
    if (this.durable < this.replication.decided) this.countDurable(journal.durable, hasNews);
    const fromParent = this.fromParent.below(this.durable);
    member.durableFromParent = Math.max(member.durableFromParent, fromParent);
    this.passed.advance(this.parent.recoverableFor(proposed.nextFromParent));
    this.index = Math.min(this.durable, this.passed.index);
    if (journal.isAwaited) this.gate = this.index;
    member.stable = Math.max(member.stable, this.stableIndex());
    if (hasNews) this.countMarks(journal);
  }

  /** Rows were read: is the last mark held by f+1 members of each group from here down, and does anybody wait for marks? */
  private countMarks(journal: GroupJournal): void {
    const { member, rows, feeds } = this;
    const { marks } = member;
    let holders = journal.heldMark === marks ? 1 : 0;
    let isAwaited = false;
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      const { heldMark, awaitsMark } = rows.peer(other);
      if (heldMark === marks) holders++;
      if (awaitsMark && rows.suspicion.isLive(other)) isAwaited = true;
    }
    let isHeld = holders >= member.quorum;
    for (let place = 0; place < feeds.length; place++) {
      let isHeldBelow = false;
      let leader = rows.childPeer(place, 0);
      for (let other = 0; other < member.replicas; other++) {
        const child = rows.childPeer(place, other);
        if (child.subtreeMark === marks) isHeldBelow = true;
        if (child.ledBallot > leader.ledBallot) leader = child;
      }
      isHeld &&= isHeldBelow;
      if (leader.awaitsMark) isAwaited = true;
    }
    if (isHeld) member.subtreeMark = marks;
    member.awaitsMark = isAwaited;
  }

  private countDurable(byUs: number, hasNews: boolean): void {
    const { durableBy, durableSlots, rows, member } = this;
    for (let other = 0; other < durableBy.length; other++) {
      // A slot may have been lost on its way. Then the row tells it.
      const peer = rows.peer(other);
      if (hasNews) durableBy[other] = Math.max(durableBy[other], peer.durable);
      const slot = durableSlots[other];
      // A member that still ran in an earlier era may have written it, before this one began.
      if (slot.poll() && slot.epoch === peer.incarnation)
        durableBy[other] = Math.max(durableBy[other], slot.wide(DURABLE.index));
    }
    durableBy[member.index] = byUs;
    const durable = Math.min(reachedBy(durableBy, member.quorum), this.replication.decided);
    this.durable = Math.max(this.durable, durable);
  }

  private stableIndex(): number {
    const { member, feeds } = this;
    let index = Math.min(this.passed.index, member.nextToDeliver);
    for (let place = 0; place < feeds.length; place++) {
      const { durableByChild } = feeds[place];
      if (durableByChild <= member.sentTo[place]) index = Math.min(index, durableByChild);
    }
    return index;
  }
}
