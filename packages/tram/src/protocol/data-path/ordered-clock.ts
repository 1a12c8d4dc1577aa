/**
 * Ordered time: when a leader proposes its next tick, and with which stamp. The stamps follow the leader's wall clock as
 * long as it agrees with the monotonic clock. If the wall clock is ahead of ordered time, ordered time advances at twice
 * the speed of the monotonic clock. If the wall clock is behind or stands still, it advances at half the speed.
 *
 * Two ticks take the wall clock as it is: the first tick of a group, and the first tick of a leader that has followed no
 * other leader since it was started. Such a leader does not know for how long the group has been down.
 *
 * The leader calls `isDue` in every round, and `advance` for each tick; a follower calls `follow` in every step. All members
 * see the same stamps at the same indices of the log, so a new leader continues where the last one stopped.
 *
 * Invariants: stamps grow. Between two ticks, ordered time advances by at most twice the time that has passed since the
 * first of them was proposed, whichever members propose them.
 */
import { NO_BALLOT } from '../leadership/ballot.js';
import type { Member } from '../member.js';

/** The greatest speed of ordered time, as a multiple of the monotonic clock's. */
const FASTEST = 2;
/** The least speed. */
const SLOWEST = 1 / 2;

/** It is unknown when the latest stamp was proposed. */
const UNKNOWN = Number.NEGATIVE_INFINITY;

export class OrderedClock {
  /** The latest stamp that this member knows. */
  latestUs = 0;
  /** Since when it knows it, by the monotonic clock. Never earlier than the stamp was proposed, or UNKNOWN. */
  private sinceUs = UNKNOWN;
  /** The ballot of the log that this incarnation began with. */
  private readonly keptBallot: number;

  constructor(
    private readonly member: Member,
    private readonly everyUs: number,
  ) {
    this.keptBallot = member.log.current()?.marker ?? NO_BALLOT;
  }

  /** When a leader's next tick is due. */
  get dueUs(): number {
    return this.sinceUs + this.everyUs;
  }

  /** Note how far the leader that we follow has advanced ordered time. */
  follow(): void {
    const { orderedUs } = this.member.delivered;
    if (orderedUs === this.latestUs && this.sinceUs !== UNKNOWN) return;
    if (this.followsAnother()) this.learn(orderedUs);
  }

  /**
   * Has another member installed its log here, in this incarnation? If not, what we deliver may have been decided long
   * ago, before all members were stopped.
   */
  private followsAnother(): boolean {
    const { log, index } = this.member;
    const current = log.current();
    return current !== undefined && current.writer !== index && current.marker !== this.keptBallot;
  }

  /** The time is taken now: a step may take long, and may have begun before the tick was proposed. */
  private learn(orderedUs: number): void {
    this.latestUs = orderedUs;
    this.sinceUs = this.member.edges.monotonicUs();
  }

  /** Is it time for a tick? @param orderedUs  the last stamp in the leader's log */
  isDue(orderedUs: number, nowUs: number): boolean {
    // The log that this leader has adopted ends with a tick that it had not delivered.
    if (orderedUs !== this.latestUs && this.sinceUs !== UNKNOWN) this.learn(orderedUs);
    // No message comes before the first tick.
    return orderedUs === 0 || nowUs >= this.dueUs;
  }

  /** The stamp of the tick that the leader proposes now, when it is due. It is greater than the last one in the log. */
  advance(orderedUs: number): number {
    const { observer } = this.member.edges;
    const isSet = orderedUs === 0 || this.sinceUs === UNKNOWN;
    const stampUs = isSet ? this.set(orderedUs) : this.slew(orderedUs);
    this.learn(stampUs);
    observer.transition(isSet ? 'ordered time set' : 'ordered time advanced');
    return stampUs;
  }

  private set(orderedUs: number): number {
    return Math.max(this.wallUs(), orderedUs + 1);
  }

  /** As near to the wall clock as the time since the last tick allows. */
  private slew(orderedUs: number): number {
    const elapsedUs = this.member.edges.monotonicUs() - this.sinceUs;
    const leastUs = orderedUs + Math.max(1, Math.floor(elapsedUs * SLOWEST));
    const mostUs = orderedUs + Math.max(1, elapsedUs * FASTEST);
    return Math.min(Math.max(this.wallUs(), leastUs), mostUs);
  }

  private wallUs(): number {
    return Math.floor(this.member.edges.wallClockUs());
  }
}
