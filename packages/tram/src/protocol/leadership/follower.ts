/**
 * Following: deliver what the leader has published as decided (paper step 2.6), notice being left behind, and campaign
 * when this member is the one to trust (step 2.1). The replica calls `followLog` and `shouldCampaign` in every step
 * while it follows, and `backOff` after a failed attempt.
 *
 * Invariant: only entries of the ballot this member has promised are consumed, contiguously from its
 * own next index (H2).
 */
import { type Delivering, decidedIndex, missingBelow } from '../data-path/delivery.js';
import type { Member } from '../member.js';
import type { Snapshots } from './snapshots.js';
import type { Suspicion } from './suspicion.js';

const BACK_OFF_DOUBLINGS_MAX = 4;

export class Follower {
  private campaignNotBeforeUs = 0;
  private failedAttempts = 0;
  private isBehind = false;

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
    // Only the log of the ballot it promised, and of that only what the leader has published as decided (H2).
    const log = member.log.under(member.promised, member.promisedMember);
    if (log === undefined) return 0;
    if (log.writer !== member.index) this.failedAttempts = 0;
    const count = this.delivering.deliver(log, member.promised, decidedIndex(member, log), false);
    member.needs = missingBelow(member, log);
    while (member.needs > 0 && this.snapshots.fetch(nowUs))
      member.needs = missingBelow(member, log);
    if (member.needs > 0) {
      if (!this.isBehind) observer.transition('left behind');
      this.isBehind = true;
    } else if (this.isBehind) {
      this.isBehind = false;
      this.snapshots.abandon();
    }
    return count;
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
