/**
 * When the first member of a group, member 0, asks to lead it again. Placement has put the first members where their
 * groups should be led (`config/placement.ts`). After a failure others lead, and this policy brings the leaders back.
 * The agent of each first member calls `look` a few times a second.
 *
 * A change of leader costs every call of the group some latency, so the first member asks only if
 *
 * - it follows a live leader, and its log has all that it has not delivered yet,
 * - nothing has changed for `waitUs`: no other leader, no member that ended, came back or was suspected, and
 * - no operator has chosen the present leader: such a leader counts as a change, again and again (`replica-agent.ts`).
 *
 * Groups wait for different times, so that their leaders change one after the other.
 *
 * A member that cannot keep the leadership must not take it again and again. So the wait doubles whenever the member
 * asks and whenever it begins to lead, up to an hour. It returns to the least only after the member has led for ten
 * times as long. The wait outlives the incarnation, so it also grows for a host that crashes whenever it leads.
 *
 * Invariant: leastWaitUs ≤ waitUs ≤ WAIT_US_MAX, unless leastWaitUs is larger.
 */

/** What the first member sees of its group. */
export interface Sight {
  readonly leads: boolean;
  /** Does it follow a live leader, with all that it needs to replace it? */
  readonly canReplaceLeader: boolean;
  /** Differs if anything has changed that should delay a change of leader. */
  readonly situation: number;
}

const LEAST_WAIT_US = 2_000_000;
/** The wait in suspicion time-outs, at least. */
const SUSPICIONS_PER_WAIT = 4;
const WAIT_US_MAX = 3_600_000_000;
const TRIAL_WAITS = 10;
const BETWEEN_GROUPS_US = 250_000;

/** The least time without a change before a first member asks to lead. */
export function leastWaitUs(suspectAfterUs: number): number {
  return Math.max(LEAST_WAIT_US, SUSPICIONS_PER_WAIT * suspectAfterUs);
}

export class LeaderReturn {
  private readonly leastWaitUs: number;
  private readonly groupDelayUs: number;
  /** How long nothing must have changed. */
  waitUs: number;
  private leads = false;
  private ledSinceUs = 0;
  private situation = 0;
  private quietSinceUs: number;

  /** @param keptWaitUs  the wait of the previous incarnation, or 0 */
  constructor(group: number, suspectAfterUs: number, keptWaitUs: number, nowUs: number) {
    this.leastWaitUs = leastWaitUs(suspectAfterUs);
    this.waitUs = Math.max(this.leastWaitUs, keptWaitUs);
    this.groupDelayUs = group * BETWEEN_GROUPS_US;
    this.quietSinceUs = nowUs;
  }

  /** Should the first member ask to lead now? */
  look({ leads, canReplaceLeader, situation }: Sight, nowUs: number): boolean {
    if (leads) {
      this.lead(nowUs);
      return false;
    }
    this.leads = false;
    if (!canReplaceLeader || situation !== this.situation) {
      this.situation = situation;
      this.quietSinceUs = nowUs;
      return false;
    }
    if (nowUs - this.quietSinceUs < this.waitUs + this.groupDelayUs) return false;
    this.quietSinceUs = nowUs;
    this.waitLonger();
    return true;
  }

  private lead(nowUs: number): void {
    if (!this.leads) {
      this.leads = true;
      this.ledSinceUs = nowUs;
      this.waitLonger();
    } else if (nowUs - this.ledSinceUs >= TRIAL_WAITS * this.waitUs) {
      this.waitUs = this.leastWaitUs;
    }
    this.quietSinceUs = nowUs;
  }

  private waitLonger(): void {
    this.waitUs = Math.max(this.leastWaitUs, Math.min(2 * this.waitUs, WAIT_US_MAX));
  }
}
