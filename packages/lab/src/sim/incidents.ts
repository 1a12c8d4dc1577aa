/**
 * Injects the faults of a plan, at their times or in the middle of the step that takes a chosen transition. Called by
 * `world.ts`.
 *
 * Invariant: at most f members of a group are down or recovering at a time, because the protocol promises nothing beyond
 * that. There is one exception: any number of members may be killed, or stop in an orderly way, if all of them resume with
 * the memory that they left, and nothing that the group has delivered is lost by it.
 */
import type { Transition } from 'tram-multicast/internal/protocol/edges.js';
import type { ClientHost, Host, ReplicaHost } from './hosts.js';
import { LinkFaults } from './link-faults.js';
import { FAULTS_OF_DISKS, type Fault, type PlannedIncident } from './plan.js';
import type { World } from './world.js';

interface Later {
  atUs: number;
  act: () => void;
}

export class Incidents {
  private readonly planned: PlannedIncident[];
  private readonly armed: PlannedIncident[] = [];
  private readonly later: Later[] = [];
  private readonly f: number;
  /** Paused leaders that continue shortly after a successor leads. */
  private readonly sleepers = new Set<{ incident: PlannedIncident; host: ReplicaHost }>();
  private readonly links: LinkFaults;

  constructor(private readonly world: World) {
    this.planned = [...world.plan.incidents];
    this.links = new LinkFaults(world, (delayUs, act) => this.afterUs(delayUs, act));
    this.f = (world.plan.sizes.replicas - 1) >> 1;
  }

  isOver(): boolean {
    return this.planned.length === 0;
  }

  /** Those that have not happened yet. */
  get rest(): readonly PlannedIncident[] {
    return [...this.planned, ...this.armed];
  }

  nextUs(): number {
    let next = this.planned[0]?.atUs ?? Number.POSITIVE_INFINITY;
    for (const { atUs } of this.later) next = Math.min(next, atUs);
    return next;
  }

  runNext(): void {
    const { nowUs } = this.world;
    for (let i = 0; i < this.later.length; i++) {
      if (this.later[i].atUs > nowUs) continue;
      const [{ act }] = this.later.splice(i, 1) as [Later];
      act();
      return;
    }
    const incident = this.planned.shift()!;
    if (incident.on !== undefined) this.armed.push(incident);
    else this.strike(incident, this.target(incident));
  }

  /** A replica takes a transition in the middle of its step. An armed incident may happen now. */
  onTransition(host: ReplicaHost, transition: Transition): void {
    if (transition === 'led') this.onSuccession(host);
    const place = this.armed.findIndex(
      ({ on, group }) => on === transition && group === host.group,
    );
    if (place < 0 || host.afterStep !== undefined) return;
    const [incident] = this.armed.splice(place, 1) as [PlannedIncident];
    const { graceUs, hitsLeader } = incident;
    const strike = () =>
      this.strike(incident, (hitsLeader && this.world.leaderOf(host.group)) || host);
    if (graceUs === undefined) strike();
    else this.afterUs(graceUs, strike);
  }

  private target(incident: PlannedIncident): ReplicaHost {
    const leader = incident.hitsLeader ? this.world.leaderOf(incident.group) : undefined;
    return leader ?? this.world.members(incident.group)[incident.member];
  }

  private strike(incident: PlannedIncident, host: ReplicaHost): void {
    // It has not started in this era yet.
    if (host.incarnation === 0 && !isOfDisks(incident.kind)) return;
    switch (incident.kind) {
      case 'crash':
      case 'kill':
        this.end(incident, host);
        break;
      case 'outage':
        this.blackOut(incident, host);
        break;
      case 'stop':
        this.afterUs(0, () => this.stopOrderly(incident, host.group));
        break;
      case 'slow-replica':
        this.afterUs(0, () => this.slowReplicas(incident, host.group));
        break;
      case 'late-heartbeats':
        this.afterUs(0, () => this.links.delayHeartbeats(incident, host.group));
        break;
      case 'restart':
        if (incident.isAmbush) this.relapse(incident, host);
        else this.end(incident, host);
        break;
      case 'pause':
        if (incident.isAmbush) this.fallAsleep(incident, host);
        else this.pause(incident, host);
        break;
      case 'suspicion':
        this.campaign(incident, [incident.isAmbush ? this.stagger(incident, host) : host]);
        break;
      case 'rivals':
        this.campaign(incident, this.rivals(host));
        break;
      case 'slow-link':
        this.links.slow(incident, host);
        break;
      case 'broken-link':
        this.links.break(host);
        break;
      case 'link-down':
        this.links.takeDown(incident, host);
        if (incident.isAmbush) this.killMeanwhile(incident, host);
        break;
      case 'client-crash':
        this.crashClient(incident);
        break;
      default:
        this.strikePower(incident, host);
    }
  }

  /** In the middle of a step of this replica, as far as it takes one. */
  private strikePower(incident: PlannedIncident, host: ReplicaHost): void {
    const { power } = this.world;
    if (power === undefined) return;
    if (host.state !== 'up' || host.afterStep) {
      this.afterUs(0, () => power.strike(incident, host));
      return;
    }
    host.memory.stallAfter(incident.afterPosts);
    host.afterStep = () => {
      power.strike(incident, host);
      if (host.state === 'up') host.memory.resume();
    };
  }

  private rivals(host: ReplicaHost): ReplicaHost[] {
    const members = this.world.members(host.group);
    const first = members.indexOf(host);
    return [0, 1, 2].map((i) => members[(first + i) % members.length]);
  }

  private allows(fault: Fault): boolean {
    return this.world.plan.faults.has(fault);
  }

  private count(fault: Fault): void {
    this.world.tally.fault(fault);
  }

  /** Interrupt a step of a participant after so many more posts, and apply the fault at its end. */
  private hit(host: Host, afterPosts: number, act: () => void): void {
    host.memory.stallAfter(afterPosts);
    host.afterStep = act;
  }

  /** A replica crashes or is killed in the middle of its step, and may restart later. */
  private end(incident: PlannedIncident, host: ReplicaHost): void {
    const { world } = this;
    const { kind, durationUs } = incident;
    if (host.state !== 'up' || host.afterStep || !this.mayEnd(host)) return;
    const leavesMemory = kind === 'kill' || incident.leavesMemory;
    if (leavesMemory) host.memory.dieAfter(incident.afterPosts, () => this.mayEnd(host));
    else host.memory.stallAfter(incident.afterPosts);
    host.afterStep = () => {
      if (!this.mayEnd(host)) {
        host.memory.resume();
        return;
      }
      this.count(kind);
      if (leavesMemory) world.kill(host);
      else world.crash(host);
      if (kind === 'kill') this.afterUs(durationUs, () => world.resumeReplica(host));
      else if (kind === 'restart') this.afterUs(durationUs, () => world.startReplica(host));
    };
  }

  /**
   * More than f members of a group, or all, are killed at once: one in the middle of its step, the others between two
   * steps. Each resumes later.
   */
  private blackOut(incident: PlannedIncident, host: ReplicaHost): void {
    const { world } = this;
    if (host.state !== 'up' || host.afterStep) return;
    const isTotal = world.random.percent(50);
    const victims = () => {
      const others = world.members(host.group).filter((peer) => peer !== host);
      return [host, ...(isTotal ? others : others.slice(0, this.f))].filter(
        ({ state }) => state !== 'down',
      );
    };
    host.memory.dieAfter(incident.afterPosts, () => this.survives(victims(), host.group));
    host.afterStep = () => {
      const killed = victims();
      if (!this.survives(killed, host.group)) {
        host.memory.resume();
        return;
      }
      this.count('outage');
      for (const victim of killed) {
        world.kill(victim);
        const durationUs = world.random.below(incident.durationUs);
        this.afterUs(durationUs, () => world.resumeReplica(victim));
      }
    };
  }

  /**
   * Members of a group, or of all groups, stop in an orderly way and leave snapshots: one of them, some or all. Now and
   * then some of them are killed instead. Each resumes later.
   */
  private stopOrderly(incident: PlannedIncident, group: number): void {
    const { world } = this;
    const { random } = world;
    const groups = random.percent(30) ? world.plan.parents.keys() : [group];
    const percent = random.pick([20, 60, 100, 100]);
    const killPercent = random.pick([0, 0, 30]);
    for (const each of groups) {
      const victims = world
        .members(each)
        .filter((host) => host.state === 'up' && this.world.interruptions.isBetweenSteps(host))
        .filter(() => random.percent(percent));
      const killed = victims.filter(() => random.percent(killPercent));
      if (victims.length === 0 || !this.survives(killed, each)) continue;
      this.count('stop');
      for (const victim of victims) {
        if (killed.includes(victim)) world.kill(victim);
        else world.stop(victim);
        const durationUs = random.below(incident.durationUs);
        this.afterUs(durationUs, () => world.resumeReplica(victim));
      }
    }
  }

  /**
   * Does the group get back all that it has delivered if these members are killed and resume? It does if the logs still
   * have their beginning, if another member has delivered what they lack, or if one of them has left a snapshot of it.
   */
  private survives(victims: readonly ReplicaHost[], group: number): boolean {
    const { world } = this;
    const dropped = world.droppedBelow[group];
    if (dropped === world.plan.sizes.firstIndex) return true;
    return world.members(group).some((member) => {
      if (victims.includes(member)) return member.leftIndex >= dropped;
      return !world.isUnavailable(member) && member.replica.member.nextToDeliver >= dropped;
    });
  }

  /**
   * A member helps to decide entries that a third member does not have yet, and restarts. Then either the leader pauses
   * (H21), or the member is killed as soon as it has found the leader, and the leader pauses once it has resumed (H31).
   */
  private relapse(incident: PlannedIncident, host: ReplicaHost): void {
    const { fabric, random } = this.world;
    const leader = this.world.leaderOf(host.group);
    const third = this.world.members(host.group).find((peer) => peer !== leader && peer !== host);
    const plain = { ...incident, isAmbush: false };
    if (leader === undefined || leader === host || !this.allows('pause')) {
      this.end(plain, host);
      return;
    }
    fabric.slowDown(leader.participant, third!.participant, 4000);
    this.afterUs(600, () => fabric.slowDown(leader.participant, third!.participant, 0));
    this.afterUs(300, () => this.end({ ...plain, durationUs: 20 }, host));
    const pause = { ...plain, kind: 'pause', hitsLeader: true, durationUs: 9000 } as const;
    if (random.percent(50) || !this.allows('kill')) {
      this.afterUs(350, () => this.pause(pause, leader));
      return;
    }
    // Kill it after its promise and before its grant.
    const kill = {
      ...plain,
      kind: 'kill',
      hitsLeader: false,
      afterPosts: 2,
      durationUs: 20,
    } as const;
    this.armed.push({ ...kill, on: 'recovery found a leader' });
    this.armed.push({ ...pause, on: 'resumed', graceUs: 2 });
  }

  /** Does the group keep enough members without this one? */
  private mayEnd(host: ReplicaHost): boolean {
    const others = this.world.members(host.group).filter((member) => member !== host);
    return others.filter((member) => this.world.isUnavailable(member)).length < this.f;
  }

  /** A leader pauses after its writes were slow for a while, so that its log has entries that no other log has (H20). */
  private fallAsleep(incident: PlannedIncident, host: ReplicaHost): void {
    if (host.replica.role !== 'leader' || !this.allows('slow-link')) {
      this.pause(incident, host);
      return;
    }
    const peers = this.world.members(host.group).filter((peer) => peer !== host);
    for (const { participant } of peers)
      this.world.fabric.slowDown(host.participant, participant, 5000);
    this.afterUs(this.world.random.pick([100, 1000, 2500]), () => {
      for (const { participant } of peers)
        this.world.fabric.slowDown(host.participant, participant, 0);
      this.pause(incident, host);
    });
  }

  private pause(incident: PlannedIncident, host: ReplicaHost): void {
    if (host.state !== 'up' || host.afterStep) return;
    this.hit(host, incident.afterPosts, () => {
      this.count('pause');
      if (incident.isAmbush && host.replica.role === 'leader')
        this.sleepers.add({ incident, host });
      this.world.pause(host);
      this.afterUs(incident.durationUs, () => this.wake(incident, host));
    });
  }

  /** Some followers, as many as the group can spare, run at a tenth of their speed, hang, or are killed, for long. */
  private slowReplicas({ durationUs }: PlannedIncident, group: number): void {
    const { world } = this;
    const { random } = world;
    // Without a leader, any of them may be the next one, which must not be slow (availability.ts).
    if (world.leaderOf(group) === undefined) return;
    // A member that was left behind, and fetches what it lacks, can't be spared either.
    const isSlow = (host: ReplicaHost) =>
      host.state !== 'up' ||
      host.slowness > 1 ||
      host.replica.member.needs > 0 ||
      world.isUnavailable(host);
    const members = world.members(group);
    let spare = Math.min(this.f, random.between(1, 3)) - members.filter(isSlow).length;
    for (const host of members) {
      if (spare <= 0 || isSlow(host) || !this.world.interruptions.isBetweenSteps(host)) continue;
      if (host.replica.role === 'leader') continue;
      spare--;
      this.count('slow-replica');
      const untilUs = durationUs * random.between(1, 4);
      switch (random.pick(['slow', 'hung', 'gone'])) {
        case 'slow':
          host.slowness = SLOWNESS;
          this.afterUs(untilUs, () => {
            host.slowness = 1;
          });
          break;
        case 'hung':
          world.pause(host);
          this.afterUs(untilUs, () => world.resume(host));
          break;
        case 'gone':
          world.kill(host);
          this.afterUs(untilUs, () => world.resumeReplica(host));
          break;
      }
    }
  }

  /** A successor leads: the paused leaders that it replaces continue soon. */
  private onSuccession(leader: ReplicaHost): void {
    for (const sleeper of this.sleepers) {
      if (sleeper.host.group !== leader.group || sleeper.host === leader) continue;
      this.sleepers.delete(sleeper);
      const { random } = this.world;
      this.afterUs(random.below(random.pick([40, 400])), () =>
        this.wake(sleeper.incident, sleeper.host),
      );
    }
  }

  /** A paused replica continues. In an ambush, its successor restarts at that moment, and it campaigns itself. */
  private wake(incident: PlannedIncident, host: ReplicaHost): void {
    if (host.state !== 'paused') return;
    this.world.resume(host);
    if (!incident.isAmbush || !this.allows('restart') || !this.allows('suspicion')) return;
    const successor = this.world.leaderOf(host.group);
    if (successor === undefined || successor === host) return;
    this.end({ ...incident, kind: 'restart', afterPosts: 0 }, successor);
    this.campaign({ ...incident, kind: 'suspicion' }, [host]);
  }

  private campaign(incident: PlannedIncident, hosts: ReplicaHost[]): void {
    const able = [...new Set(hosts)].filter((host) => host.state === 'up');
    if (able.length === 0) return;
    this.count(incident.kind);
    if (this.world.random.percent(30)) this.reportEnded(incident, able[0]);
    for (const host of able) {
      this.afterUs(0, () => {
        if (host.state === 'up') this.world.campaign(host);
      });
    }
  }

  /**
   * The requests of a candidate reach the members one after the other, the leader last. Its first granter restarts at
   * once. The leader continues to decide, and pauses once enough members have granted. So two incarnations of one member
   * support two ballots (H24).
   */
  private stagger(incident: PlannedIncident, host: ReplicaHost): ReplicaHost {
    const { random } = this.world;
    const leader = this.world.leaderOf(host.group);
    // With three members the first granter cannot recover before the candidate leads.
    if (leader === undefined || this.f < 2 || !this.allows('restart')) return host;
    const followers = this.world.members(host.group).filter((peer) => peer !== leader);
    const candidate = leader === host ? followers.shift()! : host;
    const others = followers.filter((peer) => peer !== candidate);
    // A link is FIFO: the first post delays all later ones.
    [...others, leader].forEach((peer, i) => {
      const slownessUs = i === 0 ? 0 : peer === leader ? 6000 : 1500 + 20 * i + random.below(20);
      this.world.fabric.slowDown(candidate.participant, peer.participant, slownessUs);
      this.afterUs(60, () =>
        this.world.fabric.slowDown(candidate.participant, peer.participant, 0),
      );
    });
    // After its grant, the first granter is out of reach: its next incarnation must not grant as well.
    this.afterUs(61, () => {
      this.world.fabric.slowDown(candidate.participant, others[0].participant, 4000);
    });
    this.afterUs(2000, () => {
      this.world.fabric.slowDown(candidate.participant, others[0].participant, 0);
    });
    const granted = { ...incident, on: 'granted' as const, durationUs: 20, isAmbush: false };
    this.armed.push({ ...granted, kind: 'restart', hitsLeader: false, graceUs: 12 });
    const graceUs = 25 + random.below(40);
    if (this.allows('pause')) {
      this.armed.push({ ...granted, kind: 'pause', hitsLeader: true, graceUs, durationUs: 9000 });
    }
    return candidate;
  }

  /** For a while, the platform wrongly reports that a running member has ended. */
  private reportEnded({ durationUs }: PlannedIncident, host: ReplicaHost): void {
    const { fabric, random } = this.world;
    const { participant } = random.pick(this.world.members(host.group));
    fabric.tellEnded(participant, true);
    this.afterUs(durationUs, () => {
      if (this.world.replicas[participant].state !== 'down') fabric.tellEnded(participant, false);
    });
  }

  /** A replica is killed while its links are down. */
  private killMeanwhile(incident: PlannedIncident, host: ReplicaHost): void {
    const { random } = this.world;
    if (!this.allows('kill')) return;
    const kill = {
      ...incident,
      kind: 'kill',
      durationUs: random.below(incident.durationUs),
    } as const;
    this.afterUs(random.below(incident.durationUs), () => this.end(kill, host));
  }

  private crashClient(incident: PlannedIncident): void {
    const { clients, random } = this.world;
    const host: ClientHost = random.pick(clients);
    if (host.state !== 'up' || host.afterStep) return;
    this.hit(host, incident.afterPosts, () => {
      this.count('client-crash');
      const { remaining } = host.workload;
      if (incident.leavesMemory) this.world.kill(host);
      else this.world.crash(host);
      // A new client takes the slot.
      if (random.percent(70)) {
        this.afterUs(incident.durationUs, () => this.world.startClient(host, remaining));
      }
    });
  }

  private afterUs(delayUs: number, act: () => void): void {
    this.later.push({ atUs: this.world.nowUs + delayUs, act });
  }

  /** End all faults. Members that are down for good stay down: a quorum of each group is up. */
  heal(): void {
    const { world } = this;
    const { weather } = world.fabric;
    world.interruptions.end();
    weather.tornPercent = Math.min(weather.tornPercent, 10);
    weather.lateCompletionPercent = 0;
    this.links.heal();
    for (const { act } of this.later.splice(0)) act();
    this.armed.length = 0;
    for (const host of [...world.replicas, ...world.clients]) {
      if (host.state === 'down') continue;
      host.afterStep = undefined;
      host.memory.resume();
      world.resume(host);
    }
  }
}

function isOfDisks(fault: Fault): boolean {
  return (FAULTS_OF_DISKS as readonly Fault[]).includes(fault);
}

/** How many times longer the steps of a slow replica take. */
const SLOWNESS = 10;
