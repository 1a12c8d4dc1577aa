/**
 * A cluster for scripted interleavings, used by the attacks in `test/protocol`. No fault happens unless the script
 * causes it, and the script decides which operation arrives when. It is a world of the simulator, with all its checks.
 */

import type { GroupJournal, Pace, Timing } from 'tram-multicast/internal/protocol/edges.js';
import type { Sizes } from 'tram-multicast/internal/protocol/layout.js';
import { highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import type { Host, ReplicaHost } from './hosts.js';
import type { Sent } from './ledger.js';
import type { Link } from './links.js';
import type { Plan, TickPlan } from './plan.js';
import { makePlan } from './scenario-plan.js';
import { type ScriptedStart, World } from './world.js';

export interface Overrides {
  /** Without it, the script decides which operation arrives when. On shared memory, all take effect at once. */
  readonly memory?: Plan['memory'];
  readonly sizes?: Partial<Sizes>;
  readonly timing?: Partial<Timing>;
  readonly pace?: Partial<Pace>;
  readonly serviceFailsEvery?: number;
  readonly serviceDefersEvery?: number;
  readonly ticks?: TickPlan;
  /** The journal of each replica, by its participant. */
  readonly journalOf?: (participant: number) => GroupJournal;
  /** What each replica begins from, by its participant; undefined: it lacks the state of its group. */
  readonly startOf?: (participant: number) => ScriptedStart | undefined;
}

const STEP_LIMIT_US = 50_000;

export class Stage {
  readonly world: World;
  private readonly held = new Set<() => void>();

  /** @param cluster  as in a scenario: `replicas=3 clients=2 rings=4096` */
  constructor(cluster: string, overrides: Overrides = {}) {
    const { memory, sizes, timing, pace, ticks, journalOf, startOf } = overrides;
    const { serviceFailsEvery = 0, serviceDefersEvery = 0 } = overrides;
    const plan = makePlan(cluster);
    const staged = {
      ...plan,
      memory: memory ?? plan.memory,
      sizes: { ...plan.sizes, ...sizes },
      timing: { ...plan.timing, ...timing },
      pace: { ...plan.pace, ...pace },
      serviceFailsEvery,
      serviceDefersEvery,
      ticks,
    };
    this.world = new World(staged, {
      ...(journalOf && { journalOf }),
      ...(startOf && { startOf }),
    });
  }

  /** The members of a group, once it has a leader that all of them follow. */
  group(group: number): ReplicaHost[] {
    this.until(() => this.world.leaderOf(group) !== undefined);
    this.runFor(500);
    return this.world.members(group);
  }

  /** The leader of a group, once there is one. */
  leaderOf(group: number): ReplicaHost {
    this.until(() => this.world.leaderOf(group) !== undefined);
    return this.world.leaderOf(group)!;
  }

  // --- time ----------------------------------------------------------------------------------

  runFor(us: number): void {
    const untilUs = this.world.nowUs + us;
    while (this.world.nowUs < untilUs) this.world.advance();
  }

  /** Run until the condition holds. It fails if that takes longer than `limitUs`: the script does not fit any more. */
  until(condition: () => boolean, limitUs = STEP_LIMIT_US): void {
    this.world.runUntil(condition, limitUs);
  }

  /** Run until the condition holds or the time is over. An attack waits for harm with this: a correct protocol does none. */
  hopeFor(condition: () => boolean, limitUs = 3000): void {
    const untilUs = this.world.nowUs + limitUs;
    while (!condition() && this.world.nowUs < untilUs) this.world.advance();
  }

  // --- doing ---------------------------------------------------------------------------------

  /** Returns undefined if the client is back-pressured. */
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

  /** The client sends as much as it can until the returned function is called. */
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

  /** It campaigns, and wins. */
  lead(host: ReplicaHost): void {
    this.campaign(host);
    this.until(() => host.replica.role === 'leader');
  }

  /** After `count` writes to `to`, the step stalls: all later posts wait until the memory resumes. */
  stallAfterWrites(host: Host, to: Host, count: number): void {
    host.memory.stallAfterWritesTo(to.participant, count);
  }

  /**
   * In the middle of a step, at this participant's `point`-th load or store from now on, it waits while `meanwhile` runs.
   * Only a mutant, which is instrumented, can do this; `loadMutant()` is one without mutations.
   */
  interrupt(host: Host, point: number, meanwhile: () => void): void {
    this.world.interruptions.interruptAt(host, point, meanwhile);
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

  /** Like `release`, but with `apartUs` after each write, so that the reader sees it before the next one lands. */
  releaseOneByOne(from: Host, to: Host, apartUs: number): void {
    this.release(from, to);
    const link = this.linkOf(from, to);
    for (const operation of link.operations) {
      operation.arrivesUs = link.lastArrivalUs;
      if (!operation.isRead) link.lastArrivalUs += apartUs;
    }
    this.world.fabric.reschedule(link);
  }

  /** The operations in flight. */
  linkOf(from: Host, to: Host): Link {
    return this.world.fabric.link(from.participant, to.participant);
  }

  /** While `run` runs, either all refused writes leave their bytes behind, or none does. */
  withRefusedWrites(fate: 'landing' | 'stopped', run: () => void): void {
    const { random } = this.world;
    const { below } = random;
    random.below = (bound) => (bound === 2 && fate === 'landing' ? 1 : 0);
    run();
    random.below = below;
  }

  /** It crashes, and its posts in flight are dropped. Operations that peers have posted to it never complete. */
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

  /** It is killed, and its posts in flight are dropped. Its memory stays. */
  kill(host: Host): void {
    const { random } = this.world;
    const { below } = random;
    random.below = () => 0;
    this.world.kill(host);
    random.below = below;
  }

  /** It stops in an orderly way: it leaves a snapshot with its memory. Its posts in flight are dropped. */
  stop(host: ReplicaHost): void {
    const { random } = this.world;
    const { below } = random;
    random.below = () => 0;
    this.world.stop(host);
    random.below = below;
  }

  /** It restarts with the memory that it left, and with its last snapshot if it has left one. */
  resume(host: ReplicaHost): void {
    this.world.resumeReplica(host);
  }

  // --- the end -------------------------------------------------------------------------------

  /**
   * End all faults and let everything arrive. Then all messages must be answered, all running members must have
   * delivered everything, and the judge checks the whole history.
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
