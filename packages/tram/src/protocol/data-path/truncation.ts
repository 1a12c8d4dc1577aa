/**
 * Dropping entries from the start of the leader's log once it is more than half full: entries that every live member
 * has delivered, that f+1 members have delivered in any case (H25), that every child concerned has decided, and under
 * strict order has settled (settling.ts). The leader calls `run` once in each round.
 *
 * A member that is slow or hangs does not hold up its group. If the log is full and only members that the quorum does
 * not need hold it back, the leader waits for them for a short time, then drops entries that they have not delivered.
 * It keeps those in its backlog, from which the members that lag catch up. The time that it may wait grows again at a
 * fraction of the time that passes, so waiting costs little of the throughput however often a member lags.
 *
 * Invariant: the last decided entry stays. Every log that can be adopted has it, so a group's log that has had an entry
 * is never empty again.
 */

import { distance } from '../../memory/record.js';
import type { Rows } from '../leadership/rows.js';
import type { Member } from '../member.js';
import { reachedBy } from '../quorum.js';
import { EMPTY } from './backlog.js';
import type { Forwarding } from './forwarding.js';
import type { Recoverable } from './recoverable.js';
import type { Replication } from './replication.js';
import type { Settling } from './settling.js';

/** A full log waits for members that lag for at most so many heartbeats at a time, … */
const WAIT_HEARTBEATS = 4;
/** … and for at most one of so many parts of the time. */
const WAIT_PARTS = 8;
/** While a member fetches, the backlog may be larger: if it overflows, the member must fetch another snapshot. */
const SERVING_FACTOR = 8;

export class Truncation {
  /** Per member, the index below which it has delivered everything. Allocated once. */
  private readonly deliveredBy: Float64Array;
  /** For how much longer a full log may wait for members that lag. */
  private waitUs: number;
  private readonly waitUsMax: number;
  /** Was the log full in the last round, only because it waits for members that lag? */
  private isWaiting = false;
  private ranUs = 0;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly replication: Replication,
    private readonly forwarding: Forwarding,
    private readonly settling: Settling,
    private readonly recoverable: Recoverable,
  ) {
    this.deliveredBy = new Float64Array(member.replicas);
    this.waitUsMax = WAIT_HEARTBEATS * member.edges.timing.heartbeatUs;
    this.waitUs = this.waitUsMax;
  }

  /** @param isFull  did an entry find no room in this round? */
  run(nowUs: number, isFull: boolean): void {
    const { replication } = this;
    this.countWaiting(nowUs);
    if (!replication.isPressed) return;
    // With a journal, the leader itself may lag.
    const byQuorum = Math.min(
      this.deliveredByQuorum(),
      this.member.nextToDeliver,
      this.settling.dropLimit(isFull),
    );
    const byAll = Math.min(byQuorum, this.deliveredByLive());
    this.dropBelow(byAll, false);
    if (!isFull || byAll === byQuorum || !replication.isPressed) return;
    if (this.waitUs > 0) this.isWaiting = true;
    else this.dropBelow(byQuorum, true);
  }

  private countWaiting(nowUs: number): void {
    const elapsedUs = nowUs - this.ranUs;
    this.ranUs = nowUs;
    this.waitUs = this.isWaiting
      ? Math.max(this.waitUs - elapsedUs, 0)
      : Math.min(this.waitUs + elapsedUs / WAIT_PARTS, this.waitUsMax);
    this.isWaiting = false;
  }

  /**
   * Drop entries below this index, as far as no child needs them. If members lag, no more than is necessary for the log
   * not to be pressed: what stays in the log, they need not fetch.
   */
  private dropBelow(deliveredIndex: number, membersLag: boolean): void {
    const { replication, forwarding } = this;
    const { ring, endPosition, baseIndex, ringWords } = replication;
    const limit = Math.min(deliveredIndex, replication.decided - 1);
    let index = baseIndex;
    let position = ring.base;
    let decidedByAll = limit;
    for (const feed of forwarding.feeds) decidedByAll = Math.min(decidedByAll, feed.decidedByChild);
    while (index < limit && (index < decidedByAll || !forwarding.isNeeded(index, position))) {
      if (membersLag && distance(endPosition, position) * 2 <= ringWords) break;
      position = (position + replication.wordsAt(position)) | 0;
      index++;
    }
    if (index === baseIndex) return;
    this.settling.onDrop(index);
    this.recoverable.onDrop(index);
    this.keepBacklog(index);
    forwarding.dropBelow(index, position);
    replication.truncate(index, position);
    this.member.edges.observer.transition('log truncated');
  }

  /** Before entries below `end` are dropped: keep those that a member may still fetch from here. */
  private keepBacklog(end: number): void {
    const { replication, member } = this;
    const { backlog } = member;
    if (this.fetchableFrom() >= end) {
      backlog.clear();
      return;
    }
    const { ring, ballot } = replication;
    let position = ring.base;
    for (let index = replication.baseIndex; index < end; index++) {
      backlog.add(ring, position, ballot, index);
      position = (position + replication.wordsAt(position)) | 0;
    }
    const wordsMax = member.edges.pace.backlogBytesMax / 4;
    backlog.trim(this.isServing() ? wordsMax * SERVING_FACTOR : wordsMax);
    member.edges.observer.transition('backlog kept');
  }

  /** Is a member fetching a snapshot or entries? */
  private isServing(): boolean {
    const { member, rows } = this;
    for (let other = 0; other < member.replicas; other++) {
      const holdAt = other === member.index ? member.holdAt : rows.peer(other).holdAt;
      if (holdAt > 0) return true;
    }
    return false;
  }

  /**
   * The first index that a member may still fetch from the log or the backlog: what it delivers next, or what follows a
   * snapshot that it serves. A member that needs older entries must fetch a snapshot anyway. One that has ended
   * comes back without its state, or with an older one.
   */
  private fetchableFrom(): number {
    const { member, rows, replication, deliveredBy } = this;
    const { memory } = member.edges;
    const { firstIndex } = member.backlog;
    const oldest = firstIndex === EMPTY ? replication.baseIndex : firstIndex;
    let first = servedFrom(oldest, member.holdAt);
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      first = Math.min(first, servedFrom(oldest, rows.peer(other).holdAt));
      const hasEnded = memory.hasEnded(member.participantOf(other));
      if (!hasEnded && deliveredBy[other] >= oldest) first = Math.min(first, deliveredBy[other]);
    }
    return first;
  }

  /** However many seem alive, f+1 members must have delivered what is dropped (H25). Refreshes `deliveredBy`. */
  private deliveredByQuorum(): number {
    const { member, rows, deliveredBy, replication } = this;
    for (let other = 0; other < member.replicas; other++) {
      const peer = rows.peer(other);
      // The row is of an earlier incarnation, and what that one delivered is forgotten.
      const isOldNews = replication.incarnationOf(other) > peer.incarnation;
      deliveredBy[other] = isOldNews ? member.layout.sizes.firstIndex : peer.delivered;
    }
    deliveredBy[member.index] = member.nextToDeliver;
    return reachedBy(deliveredBy, member.quorum);
  }

  /** Below this index every live member has delivered everything, except those that the log no longer helps. */
  private deliveredByLive(): number {
    const { member, rows, deliveredBy, replication } = this;
    let first = Number.POSITIVE_INFINITY;
    for (let other = 0; other < member.replicas; other++) {
      if (!rows.suspicion.isLive(other) || deliveredBy[other] < replication.baseIndex) continue;
      first = Math.min(first, deliveredBy[other]);
    }
    return first;
  }
}

/** From where a member that serves a snapshot wants entries kept, unless they are gone already. */
function servedFrom(oldest: number, holdAt: number): number {
  return holdAt < oldest || holdAt === 0 ? Number.POSITIVE_INFINITY : holdAt;
}
