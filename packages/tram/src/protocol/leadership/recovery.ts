/**
 * Coming back with empty memory (not in the paper). A restarted member has forgotten what it promised. Until it has
 * learnt that from others it is RETIRED: it permits no leader, grants nothing, and counts in no quorum. The replica calls
 * `step` in every step until the member is normal.
 *
 * The member reads the rows of the others, all after its restart, until f+1 of them follow a log of the very ballot that
 * they have promised, and the owner of the highest of these ballots is among them and leads. Every entry that was decided
 * with the help of its earlier incarnation is then in that leader's log: f further members held the entry, and at least
 * one of them was read. The member promises that ballot and grants its empty log to the leader. It is a member again once
 * the leader's log is installed and it has delivered all that was decided by then, by a snapshot if the log starts
 * later. Before that it lacks entries that it once delivered, and others must not count on it.
 */

import { type Delivering, decidedIndex, isLeftBehind } from '../data-path/delivery.js';
import { type LogRing, noExtent } from '../data-path/log.js';
import type { Member } from '../member.js';
import { memberOf, NO_BALLOT } from './ballot.js';
import type { Grants } from './grants.js';
import type { Rows } from './rows.js';
import type { Snapshots } from './snapshots.js';

export class Recovery {
  /** When the leader was granted our log last. */
  private grantedUs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly grants: Grants,
    private readonly snapshots: Snapshots,
    private readonly delivering: Delivering,
  ) {
    member.edges.observer.transition('recovering');
  }

  /** Go on recovering. Once it is done, `member.normal` is true. */
  step(nowUs: number): void {
    const { member } = this;
    const { observer, timing } = member.edges;
    const ballot = this.leadersBallot();
    const log = member.log.under(member.promised, member.promisedMember);
    if (log !== undefined && ballot <= member.promised) {
      this.catchUp(nowUs, log);
      return;
    }
    if (ballot === NO_BALLOT || ballot < member.promised) return;
    const leader = memberOf(ballot);
    const { incarnation } = this.rows.peer(leader);
    if (ballot > member.promised) {
      observer.transition('recovery found a leader');
      member.promise(ballot, incarnation);
    } else if (nowUs - this.grantedUs < timing.askAgainUs) {
      return;
    }
    this.grantedUs = nowUs;
    this.rows.publish();
    this.grants.grant(leader, ballot, incarnation, noExtent(member.layout.sizes.firstIndex));
  }

  private catchUp(nowUs: number, log: LogRing): void {
    const { member } = this;
    while (isLeftBehind(member, log)) if (!this.snapshots.fetch(nowUs)) return;
    this.snapshots.abandon();
    // Every entry that the earlier incarnation delivered was decided, and so is below this. Others counted on it.
    const decided = decidedIndex(member, log);
    this.delivering.deliver(log, log.marker, decided, false);
    if (member.nextToDeliver < decided) return;
    member.recovered();
    member.edges.observer.transition('recovered');
  }

  /** The ballot to join under, once f+1 others agree that there is one. */
  private leadersBallot(): number {
    const { member, rows } = this;
    let answers = 0;
    let highest = NO_BALLOT;
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      const peer = rows.peer(other);
      if (!peer.seen || !peer.normal) continue;
      if (peer.promised === NO_BALLOT || peer.logBallot !== peer.promised) continue;
      answers++;
      highest = Math.max(highest, peer.promised);
    }
    if (answers < member.quorum || highest === NO_BALLOT) return NO_BALLOT;
    const leader = memberOf(highest);
    const isAmongThem = leader !== member.index && rows.peer(leader).ledBallot === highest;
    return isAmongThem ? highest : NO_BALLOT;
  }
}
