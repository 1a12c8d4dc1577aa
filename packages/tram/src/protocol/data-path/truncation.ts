/**
 * Dropping entries from the start of the leader's log once it is more than half full: entries that every live member
 * has delivered, that f+1 members have delivered in any case (H25), and that every child concerned has decided. The
 * leader calls `run` once in each round.
 *
 * Invariant: the last decided entry stays. Every log that can be adopted has it, so a group's log that has had an entry
 * is never empty again.
 */

import type { Rows } from '../leadership/rows.js';
import type { Member } from '../member.js';
import { reachedBy } from '../quorum.js';
import type { Feed } from './feed.js';
import type { Replication } from './replication.js';

export class Truncation {
  /** Per member, the index below which it has delivered everything. Allocated once. */
  private readonly deliveredBy: Float64Array;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly replication: Replication,
    private readonly feeds: readonly Feed[],
  ) {
    this.deliveredBy = new Float64Array(member.replicas);
  }

  run(): void {
    const { replication } = this;
    if (!replication.isPressed) return;
    const limit = Math.min(this.neededFrom(), replication.decided - 1);
    let index = replication.baseIndex;
    let position = replication.ring.base;
    let decidedByAll = limit;
    for (const feed of this.feeds) decidedByAll = Math.min(decidedByAll, feed.decidedByChild);
    while (index < limit && (index < decidedByAll || !this.isOwed(index, position))) {
      position = (position + replication.wordsAt(position)) | 0;
      index++;
    }
    if (index === replication.baseIndex) return;
    for (const feed of this.feeds) feed.dropBelow(index);
    replication.truncate(index, position);
    this.member.edges.observer.transition('log truncated');
  }

  /** Does any child still need this entry? */
  private isOwed(index: number, position: number): boolean {
    for (const feed of this.feeds) if (feed.isOwed(index, position)) return true;
    return false;
  }

  /** The first index that some member may still need. */
  private neededFrom(): number {
    const { member, rows, deliveredBy, replication } = this;
    const { baseIndex } = replication;
    let liveMinimum = keptFrom(baseIndex, member.nextToDeliver, member.holdAt);
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) {
        deliveredBy[other] = member.nextToDeliver;
        continue;
      }
      const peer = rows.peer(other);
      // The row is of an earlier incarnation, and what that one delivered is forgotten.
      const isOldNews = replication.incarnationOf(other) > peer.incarnation;
      deliveredBy[other] = isOldNews ? member.layout.sizes.firstIndex : peer.delivered;
      if (!rows.suspicion.isLive(other)) continue;
      // A member that is left behind already needs a snapshot, not the log.
      const needs = keptFrom(baseIndex, deliveredBy[other], peer.holdAt);
      if (needs >= baseIndex) liveMinimum = Math.min(liveMinimum, needs);
    }
    const deliveredByQuorum = reachedBy(deliveredBy, member.quorum);
    // However many seem alive, f+1 members must have delivered what is dropped (H25).
    return Math.min(liveMinimum, deliveredByQuorum);
  }
}

/**
 * From where a member needs the log: what it has delivered, or an older snapshot that it is serving,
 * unless the log starts later anyway.
 */
function keptFrom(baseIndex: number, delivered: number, holdAt: number): number {
  return holdAt < baseIndex || holdAt === 0 ? delivered : Math.min(delivered, holdAt);
}
