/**
 * Coming back with empty memory (§3.8). A restarted member has forgotten what it promised, so until
 * it has learnt that from others it is RETIRED: it permits no leader, grants nothing, counts nowhere.
 *
 * It reads the rows of the others, all after its restart, until f+1 of them follow a log of the very
 * ballot they have promised, and the owner of the highest of these ballots is among them and leads.
 * Anything decided with the help of its earlier life is then in that leader's log: whoever decided it
 * had f further members, at least one of which was read. It promises that ballot, tells the leader,
 * and is a member again once the leader's marker stands here.
 */
import { NO_BALLOT, memberOf } from './ballot.js';
import type { Grants } from './grants.js';
import { noExtent } from './log.js';
import type { Member } from './member.js';
import type { Rows } from './rows.js';

export class Recovery {
  private grantedUs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly grants: Grants,
  ) {
    member.edges.observer.transition('recovering');
  }

  /** Go on recovering; when it is done, `member.normal` is true. */
  step(nowUs: number): void {
    const { member } = this;
    const { observer, timing } = member.edges;
    if (member.promised !== NO_BALLOT && member.log.under(member.promised, member.promisedMember)) {
      member.normal = true;
      observer.transition('recovered');
      return;
    }
    const ballot = this.leadersBallot();
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
    this.grants.grant(leader, ballot, incarnation, noExtent(member.layout.sizes.origin));
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
