/**
 * A cluster for scripted interleavings: nothing happens in it but what the script asks for, and the
 * script decides what arrives when. The world is the simulator's, with all of its checks.
 */

import type { Timing } from 'tram-multicast/internal/protocol/edges.js';
import type { Sizes } from 'tram-multicast/internal/protocol/layout.js';
import { highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import type { Sent } from './ledger.js';
import type { Link } from './links.js';
import { makePlan } from './scenario-plan.js';
import { type Host, type ReplicaHost, World } from './world.js';

export interface Overrides {
  readonly sizes?: Partial<Sizes>;
  readonly timing?: Partial<Timing>;
  readonly serviceFailsEvery?: number;
}

const STEP_LIMIT_US = 50_000;

export class Stage {
  readonly world: World;
  private readonly held = new Set<() => void>();

  /** @param cluster  as in a scenario: `replicas=3 clients=2 rings=4096` */
  constructor(cluster: string, { sizes, timing, serviceFailsEvery = 0 }: Overrides = {}) {
    const plan = makePlan(cluster);
    this.world = new World({
      ...plan,
      sizes: { ...plan.sizes, ...sizes },
      timing: { ...plan.timing, ...timing },
      serviceFailsEvery,
    });
  }

  /** The members of a group, once it has a leader and everybody follows it. */
  group(group: number): ReplicaHost[] {
    this.until(() => this.world.leaderOf(group) !== undefined);
    this.runFor(500);
    return this.world.members(group);
  }

  /** The leader of a group, as soon as there is one. */
  leaderOf(group: number): ReplicaHost {
    this.until(() => this.world.leaderOf(group) !== undefined);
    return this.world.leaderOf(group)!;
  }

  // --- time ----------------------------------------------------------------------------------

  runFor(us: number): void {
    const untilUs = this.world.nowUs + us;
    while (this.world.nowUs < untilUs) this.world.advance();
  }

  /** Run until this is so. It must come to be, or the script does not show what it is meant to. */
  until(isSo: () => boolean, limitUs = STEP_LIMIT_US): void {
    this.world.runUntil(isSo, limitUs);
  }

  /** Give this the chance to happen. It is what the attack hopes for: a sound protocol forbids it. */
  hopeFor(isSo: () => boolean, limitUs = 3000): void {
    const untilUs = this.world.nowUs + limitUs;
    while (!isSo() && this.world.nowUs < untilUs) this.world.advance();
  }

  // --- doing ---------------------------------------------------------------------------------

  /** Undefined if the client is back-pressured. */
  send(client: number, groups: readonly number[], text: string): Sent | undefined {
    const host = this.world.clients[client];
    let low = 0;
    let high = 0;
    for (const group of groups) {
      low |= lowMask(group);
      high |= highMask(group);
    }
    return host.workload.multicast(host.client, low, high, new TextEncoder().encode(text));
  }

  /** From now on, until the returned function is called, this client sends all that it can. */
  flood(client: number, groups: readonly number[], text: string): () => void {
    const { workload } = this.world.clients[client];
    const send = workload.send;
    workload.send = () => {
      while (this.send(client, groups, text) !== undefined) {
        // One more.
      }
    };
    return () => {
      workload.send = send;
    };
  }

  campaign(host: ReplicaHost): void {
    this.world.campaign(host);
  }

  /** It stands, and leads in the end. */
  lead(host: ReplicaHost): void {
    this.campaign(host);
    this.until(() => host.replica.role === 'leader');
  }

  /** `count` writes to `to` go out, then the step stops: the rest of what it posts waits for `resume`. */
  stallAfterWrites(host: Host, to: Host, count: number): void {
    host.memory.stallAfterWritesTo(to.participant, count);
  }

  hold(from: Host, ...to: Host[]): void {
    for (const peer of to) {
      this.world.fabric.hold(from.participant, peer.participant);
      this.held.add(() => this.release(from, peer));
    }
  }

  release(from: Host, ...to: Host[]): void {
    for (const peer of to) this.world.fabric.release(from.participant, peer.participant);
  }

  /** Like `release`, but with so much time after each write that it has been read before the next one. */
  releaseOneByOne(from: Host, to: Host, apartUs: number): void {
    this.release(from, to);
    const link = this.linkOf(from, to);
    for (const operation of link.operations) {
      operation.arrivesUs = link.lastArrivalUs;
      if (!operation.isRead) link.lastArrivalUs += apartUs;
    }
    this.world.fabric.reschedule(link);
  }

  /** What is under way. */
  linkOf(from: Host, to: Host): Link {
    return this.world.fabric.link(from.participant, to.participant);
  }

  /** While this runs, refused writes leave their bytes behind, or none of them does. */
  withRefusedWrites(fate: 'landing' | 'stopped', run: () => void): void {
    const { random } = this.world;
    const { below } = random;
    random.below = (bound) => (bound === 2 && fate === 'landing' ? 1 : 0);
    run();
    random.below = below;
  }

  /** It dies with all that it has posted, and whoever has posted to it never hears of it. */
  crashUnheard(host: Host): void {
    const { random } = this.world;
    const { below } = random;
    random.below = (bound) => (bound === 2 ? 1 : 0);
    this.world.crash(host);
    random.below = below;
  }

  restart(host: ReplicaHost): void {
    this.world.startReplica(host);
  }

  /** It dies with all that it has posted; its memory lives on. */
  kill(host: Host): void {
    const { random } = this.world;
    const { below } = random;
    random.below = () => 0;
    this.world.kill(host);
    random.below = below;
  }

  /** It comes back to the memory that it left. */
  resume(host: ReplicaHost): void {
    this.world.resumeReplica(host);
  }

  // --- the end -------------------------------------------------------------------------------

  /**
   * Let everything arrive and everybody wake up, demand that all messages are answered and all
   * members that are up are level, and have the whole history judged.
   */
  settle(): void {
    for (const release of this.held) release();
    this.world.run();
  }
}

/** Has `follower` promised the ballot under which `leader` leads? */
export function follows(follower: ReplicaHost, leader: ReplicaHost): boolean {
  return follower.replica.member.promised === leader.replica.member.promised;
}
