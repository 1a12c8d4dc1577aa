/**
 * Following: deliver what the leader has published as decided (paper step 2.6), notice being left behind, and campaign
 * when this member is the one to trust (step 2.1). The replica calls `followLog` and `shouldCampaign` in every step
 * while it follows, and `backOff` after a failed attempt.
 *
 * A member that has promised a ballot but does not have its log yet goes on with the log that it has. The leader of that
 * one wrote there how far it is decided. It did so after the entries, so they are whole, and decided entries never
 * change with the leader. A member that resumes may be the only one that can still deliver them.
 *
 * Invariant: only entries that their leader has published as decided are consumed, contiguously from this member's own
 * next index (H2).
 */
import { type Delivering, decidedIndex, missingBelow } from '../data-path/delivery.js';
import type { LogRing } from '../data-path/log.js';
import type { Member } from '../member.js';
import { NO_BALLOT } from './ballot.js';
import type { Snapshots } from './snapshots.js';
import type { Suspicion } from './suspicion.js';

const BACK_OFF_DOUBLINGS_MAX = 4;
/** The log no longer has what is to be delivered next, or the journal has no room: a quick step is not enough. */
export const NEEDS_MORE = -1;

export class Follower {
  private campaignNotBeforeUs = 0;
  private failedAttempts = 0;
  private isBehind = false;
  /** The log of this ballot, which we had promised in the last full step, if that has found it and it lacks nothing. */
  private followed: LogRing | undefined;
  private followedBallot = NO_BALLOT;

  constructor(
    private readonly member: Member,
    private readonly suspicion: Suspicion,
    private readonly delivering: Delivering,
    private readonly snapshots: Snapshots,
  ) {}

  /** Deliver what is decided, or fetch it if the log no longer holds it. Returns how many the log held. */
  followLog(nowUs: number): number {
    const { member } = this;
    const { observer } = member.edges;
    const followed = member.log.under(member.promised, member.promisedMember);
    const log = followed ?? member.log.current();
    this.followed = undefined;
    let count = 0;
    // Only what the leader of that log has published as decided (H2).
    if (log !== undefined)
      count = this.delivering.deliver(log, log.marker, decidedIndex(member, log), false);
    member.needs = missingBelow(member, log);
    // The log of the leader to come may have what that log lacks. It never has the state of a member that lacks it.
    if (followed === undefined && member.hasState) return count;
    if (followed !== undefined && followed.writer !== member.index) this.failedAttempts = 0;
    while (member.needs > 0 && this.snapshots.fetch(nowUs))
      member.needs = missingBelow(member, log);
    if (member.needs > 0) {
      if (!this.isBehind) observer.transition('left behind');
      this.isBehind = true;
    } else {
      this.followed = followed;
      this.followedBallot = member.promised;
      if (this.isBehind) this.snapshots.abandon();
      this.isBehind = false;
    }
    return count;
  }

  /**
   * Can a step do without all but the delivery of what is decided in the log that we follow? Not if the member that we
   * follow has ended: then it is time to campaign.
   */
  canBeQuick(): boolean {
    const { followed, member } = this;
    if (followed === undefined || this.followedBallot !== member.promised) return false;
    return !member.edges.memory.hasEnded(member.participantOf(member.promisedMember));
  }

  /** The log is as the last full step found it: deliver what is decided. Returns how many, or NEEDS_MORE. */
  deliverQuickly(): number {
    const { member, followed } = this;
    const decided = decidedIndex(member, followed!);
    if (decided <= member.nextToDeliver) return 0;
    const count = this.delivering.deliver(followed!, member.promised, decided, false);
    return member.nextToDeliver < decided ? NEEDS_MORE : count;
  }

  /** Should this member campaign now? */
  shouldCampaign(nowUs: number): boolean {
    return nowUs >= this.campaignNotBeforeUs && this.suspicion.trusted() === this.member.index;
  }

  /** An attempt failed: let others try first. Each member waits for a different and bounded time. */
  backOff(nowUs: number): void {
    const { backOffUs } = this.member.edges.timing;
    const doublings = Math.min(this.failedAttempts++, BACK_OFF_DOUBLINGS_MAX);
    this.campaignNotBeforeUs = nowUs + backOffUs * ((1 << doublings) + this.member.index);
  }
}
