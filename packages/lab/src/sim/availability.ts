/**
 * Checks that members which are slow do not make their group unavailable. With at most f members of a group slow, hung or
 * gone, no message waits longer for its replies than a bound, which does not depend on how slow they are or for how long.
 * Called by `world.ts`. docs/simulator.md states the bound.
 *
 * It applies only to runs in which links and steps are timely, only followers are slow, and the service defers no reply: a deferred
 * one waits for another message. There, a group has one leader change for each member that comes back with its memory (H30), and no
 * other. A leader change starts the time anew.
 */
import { type Sent, SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';

/** How long a leader may wait for members that its quorum does not need: so many heartbeats at first, … */
const WAIT_HEARTBEATS = 4;
/** … and this share of the time. */
const WAIT_SHARE = 1 / 8;
/** How many hops it takes to order one message in a log that has room for no other. */
const ROUND_HOPS = 4;

export class Availability {
  private readonly isJudged: boolean;
  private readonly boundUs: number;
  /** Since when each unanswered message has waited. */
  private readonly waiting = new Map<Sent, number>();
  /** By group: how often its leader may still change. */
  private readonly changesLeft: number[];

  constructor(plan: Plan, isJudged: boolean) {
    const { incidents, weather, interruptions, serviceDefersEvery } = plan;
    const onlySlow = incidents.length > 0 && incidents.every(({ kind }) => kind === 'slow-replica');
    const isTimely = weather.tornPercent === 0 && interruptions === undefined;
    this.isJudged = isJudged && onlySlow && isTimely && serviceDefersEvery === 0;
    this.boundUs = boundUs(plan);
    this.changesLeft = plan.parents.map(() => 1);
  }

  sent(sent: Sent, nowUs: number): void {
    if (this.isJudged) this.waiting.set(sent, nowUs);
  }

  answered(sent: Sent, nowUs: number): void {
    if (!this.isJudged) return;
    const waitedUs = nowUs - this.waiting.get(sent)!;
    this.waiting.delete(sent);
    if (waitedUs <= this.boundUs) return;
    throw new SimulationFailure(
      'availability',
      `${sent.id} waited ${waitedUs} µs for its replies, although only followers are slow; the bound is ${this.boundUs} µs`,
    );
  }

  /** A member of `group` has come back with its memory. */
  resumed(group: number): void {
    this.changesLeft[group]++;
  }

  /** `group` has a new leader. */
  led(group: number, nowUs: number): void {
    if (!this.isJudged) return;
    if (this.changesLeft[group]-- === 0) {
      throw new SimulationFailure(
        'availability',
        `group ${group} has a new leader, although only followers are slow`,
      );
    }
    for (const sent of this.waiting.keys()) this.waiting.set(sent, nowUs);
  }
}

/**
 * Every group may hold up a message once, because a log that is full holds up the groups above it. At each group on its
 * way, the message may wait for all others that clients have sent.
 */
function boundUs({ parents, sizes, timing, weather, stepUs }: Plan): number {
  const hopUs = 2 * stepUs + weather.delayUs + weather.jitterUs;
  const messages = sizes.clients * sizes.callsMax + 2;
  const loadUs = depthOf(parents) * messages * ROUND_HOPS * hopUs;
  const waitUs = parents.length * WAIT_HEARTBEATS * timing.heartbeatUs;
  return Math.ceil((waitUs + loadUs) / (1 - WAIT_SHARE));
}

/** The number of groups on the longest way down the tree. */
function depthOf(parents: readonly number[]): number {
  const depths = parents.map((_, group) => {
    let depth = 0;
    for (let g = group; g >= 0; g = parents[g]) depth++;
    return depth;
  });
  return Math.max(...depths);
}
