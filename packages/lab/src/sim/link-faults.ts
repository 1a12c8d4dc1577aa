/**
 * The faults of links: slow, broken or down, and heartbeats that come about as late as suspicion tolerates. Called by
 * `incidents.ts`.
 */
import type { Host, ReplicaHost } from './hosts.js';
import type { PlannedIncident } from './plan.js';
import type { World } from './world.js';

export class LinkFaults {
  private hasHealed = false;

  constructor(
    private readonly world: World,
    private readonly afterUs: (delayUs: number, act: () => void) => void,
  ) {}

  /** Links between a replica and some members of its group are slow for a while. */
  slow(incident: PlannedIncident, host: ReplicaHost): void {
    const { random } = this.world;
    this.world.tally.fault('slow-link');
    for (const peer of this.world.members(host.group)) {
      if (peer === host || random.percent(40)) continue;
      const slownessUs = random.pick([50, 300, 1500]);
      this.slowDown(host, peer, slownessUs);
      this.afterUs(incident.durationUs * 2, () => this.slowDown(host, peer, 0));
    }
  }

  private slowDown(a: Host, b: Host, slownessUs: number): void {
    this.world.fabric.slowDown(a.participant, b.participant, slownessUs);
    this.world.fabric.slowDown(b.participant, a.participant, slownessUs);
  }

  /** Links of a replica break, and are there again at once. */
  break(host: ReplicaHost): void {
    const { fabric, random } = this.world;
    this.world.tally.fault('broken-link');
    for (const { participant } of this.peersOf(host)) {
      if (random.percent(50)) fabric.breakAnywhere(participant, host.participant);
      if (random.percent(50)) fabric.breakAnywhere(host.participant, participant);
    }
  }

  /** Links of a replica stay down for a while, in one direction or in both; in an ambush, all of them in both. */
  takeDown(incident: PlannedIncident, host: ReplicaHost): void {
    const { fabric, random } = this.world;
    this.world.tally.fault('link-down');
    for (const { participant } of this.peersOf(host)) {
      const links = [
        [host.participant, participant],
        [participant, host.participant],
      ] as const;
      for (const [from, to] of links) {
        if (!incident.isAmbush && random.percent(60)) continue;
        fabric.goesDown(from, to);
        this.afterUs(incident.durationUs, () => fabric.comesBack(from, to));
      }
    }
  }

  /** All other replicas, and the clients. */
  private peersOf(host: ReplicaHost): Host[] {
    return [...this.world.replicas, ...this.world.clients].filter((peer) => peer !== host);
  }

  /** For a while, heartbeats within a group take about as long as suspicion tolerates, now more, now less. */
  delayHeartbeats({ durationUs }: PlannedIncident, group: number): void {
    const { world } = this;
    const { random } = world;
    const { suspectAfterUs } = world.plan.timing;
    const endsUs = world.nowUs + 2 * durationUs;
    world.tally.fault('late-heartbeats');
    const change = () => {
      const isOver = this.hasHealed || world.nowUs >= endsUs;
      const members = world.members(group);
      for (const from of members) {
        for (const to of members) {
          const slownessUs = isOver ? 0 : random.below(2 * suspectAfterUs);
          if (from !== to) world.fabric.slowDown(from.participant, to.participant, slownessUs);
        }
      }
      if (isOver) return;
      const host = random.pick(members);
      if (host.state === 'up' && world.interruptions.isBetweenSteps(host) && random.percent(30)) {
        world.pause(host);
        this.afterUs(random.below(2 * suspectAfterUs), () => world.resume(host));
      }
      this.afterUs(random.below(4 * suspectAfterUs), change);
    };
    change();
  }

  /** Late heartbeats end with their next change. */
  heal(): void {
    this.hasHealed = true;
  }
}
