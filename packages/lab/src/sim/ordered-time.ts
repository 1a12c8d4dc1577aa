/**
 * The wall clocks of a simulated cluster, and the checks of ordered time: it never goes back, never stands still, and
 * no wall clock makes it faster than its bound. Called by `world.ts`.
 *
 * The ledger checks that replicas agree on every tick, as it does for messages.
 */
import { type Ledger, SimulationFailure } from './ledger.js';
import type { TickPlan, WallClock } from './plan.js';

/** The time at which a run begins by a correct wall clock. */
const BEGIN_US = 1_800_000_000_000_000;
/** As documented in docs/protocol.md. */
const FASTEST = 2;
const SLOWEST = 0.5;

/** How one incarnation of a replica knows ordered time. */
export class TimeKeeper {
  /** Has it delivered, while it followed, a tick that was proposed since it started? */
  hasFollowed = false;
  /** What it has proposed last, and under which ballot. */
  lastUs = 0;
  ballot = 0;
  constructor(readonly startedUs: number) {}
}

interface Proposal {
  readonly by: TimeKeeper;
  readonly ballot: number;
  readonly atUs: number;
  /** Must it be within bounds? */
  readonly isBound: boolean;
}

/** A stamp that was proposed for a group. Several leaders may propose the same, since not every proposal is decided. */
type Proposals = Proposal[];

export class OrderedTime {
  /** By group: all that was proposed, by stamp. */
  private readonly proposals: Map<number, Proposals>[];
  /** By group: the stamp that was decided last. */
  private readonly latest: number[];

  constructor(
    private readonly plan: TickPlan | undefined,
    private readonly ledger: Ledger,
    groups: number,
  ) {
    this.proposals = Array.from({ length: groups }, () => new Map());
    this.latest = new Array<number>(groups).fill(0);
  }

  /** What the wall clock of a participant shows. */
  wallClockUs(participant: number, nowUs: number): number {
    const clock = this.plan?.clocks[participant];
    return clock === undefined ? BEGIN_US + nowUs : BEGIN_US + shownBy(clock, nowUs);
  }

  /** A leader has proposed a tick. */
  proposed(group: number, by: TimeKeeper, ballot: number, stampUs: number, nowUs: number): void {
    if (by.ballot === ballot && by.lastUs > this.latest[group]) {
      throw new SimulationFailure('time', `group ${group} has several ticks that are undecided`);
    }
    by.lastUs = stampUs;
    by.ballot = ballot;
    const known = this.proposals[group].get(stampUs);
    const proposal = { by, ballot, atUs: nowUs, isBound: by.hasFollowed };
    if (known === undefined) this.proposals[group].set(stampUs, [proposal]);
    else known.push(proposal);
  }

  /** A replica delivers a tick. @returns whether it is the first of its group */
  delivered(
    group: number,
    member: number,
    index: number,
    keeper: TimeKeeper,
    isFollower: boolean,
    stampUs: number,
  ): boolean {
    const isNew = this.ledger.ticked(group, member, index, stampUs);
    const proposals = this.proposals[group].get(stampUs);
    if (proposals === undefined) {
      throw new SimulationFailure(
        'time',
        `${group}/${member} delivered a tick that nobody proposed`,
      );
    }
    if (isFollower) {
      const { startedUs } = keeper;
      keeper.hasFollowed ||= proposals.every(({ by, atUs }) => by !== keeper && atUs >= startedUs);
    }
    if (isNew) this.decided(group, stampUs, proposals);
    return isNew;
  }

  private decided(group: number, stampUs: number, proposals: Proposals): void {
    const before = this.latest[group];
    this.latest[group] = stampUs;
    if (stampUs <= before) {
      throw new SimulationFailure('time', `ordered time of group ${group} goes back`);
    }
    if (before === 0) return;
    const earlier = this.proposals[group].get(before)!;
    const firstUs = Math.min(...earlier.map(({ atUs }) => atUs));
    const lastUs = Math.max(...proposals.map(({ atUs }) => atUs));
    const advancedUs = stampUs - before;
    const mostUs = Math.max(1, FASTEST * (lastUs - firstUs));
    if (advancedUs > mostUs && proposals.every(({ isBound }) => isBound)) {
      throw new SimulationFailure(
        'time',
        `ordered time of group ${group} advances by ${advancedUs} µs, and ${lastUs - firstUs} µs have passed`,
      );
    }
    // A leader that has led before may not know for how long its last tick has been decided.
    const isSameLeader =
      proposals.length + earlier.length === 2 && proposals[0].ballot === earlier[0].ballot;
    if (isSameLeader && advancedUs < Math.floor(SLOWEST * (lastUs - firstUs))) {
      throw new SimulationFailure('time', `ordered time of group ${group} stands still`);
    }
  }

  /** Has the group decided a tick that was proposed after this time? True if there are none to expect. */
  hasTickedSince(group: number, sinceUs: number): boolean {
    if (this.plan === undefined) return true;
    const proposals = this.proposals[group].get(this.latest[group]) ?? [];
    return proposals.some(({ atUs }) => atUs > sinceUs);
  }
}

function shownBy({ offsetUs, speed, jumpAtUs, jumpUs }: WallClock, nowUs: number): number {
  return offsetUs + Math.floor(nowUs * speed) + (nowUs >= jumpAtUs ? jumpUs : 0);
}
