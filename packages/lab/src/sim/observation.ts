/**
 * Follows what the replicas and clients of a simulated cluster do: records it in the ledger, passes it on to the checks that
 * run along, and judges the history at the end. Called by `world.ts`.
 */
import { judge } from 'tram-multicast/internal/check/judge.js';
import type { Delivery, Observer, Transition } from 'tram-multicast/internal/protocol/edges.js';
import { describeBallot } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { Availability } from './availability.js';
import { Fairness } from './fairness.js';
import type { ReplicaHost } from './hosts.js';
import type { Incidents } from './incidents.js';
import { type Sent, SimulationFailure } from './ledger.js';
import { OrderedTime } from './ordered-time.js';
import { ServiceFailure } from './service.js';
import { digestOf } from './state.js';
import type { Settings, World } from './world.js';

export class Observation {
  lastDeliveryUs = 0;
  /** Does the history violate real-time order, whether it promises it or not? Known once it was judged. */
  violatesRealTime = false;
  readonly orderedTime: OrderedTime;
  readonly availability: Availability;
  private readonly fairness: Fairness;

  constructor(
    private readonly world: World,
    private readonly incidents: Incidents,
    private readonly settings: Settings,
  ) {
    const { plan, ledger } = world;
    this.fairness = new Fairness(plan, settings.keepsHistory !== false);
    this.availability = new Availability(plan, settings.keepsHistory !== false);
    this.orderedTime = new OrderedTime(plan.ticks, ledger, plan.sizes.groups);
  }

  /** A client sends a message. */
  sent(sent: Sent): void {
    this.fairness.sent(sent, this.world.ledger.decidedCount(sent.entryGroup));
    this.availability.sent(sent, this.world.nowUs);
  }

  /** A client has all replies to a message. */
  answered(sent: Sent): void {
    this.availability.answered(sent, this.world.nowUs);
  }

  /** A replica delivers a message. */
  delivered(host: ReplicaHost, { session, entryGroup, number }: Delivery): void {
    this.noteDecided(host, session, entryGroup, number);
    this.lastDeliveryUs = this.world.nowUs;
  }

  /** Record that this replica holds the message as decided. Returns true if it is the first of its group. */
  private noteDecided(
    host: ReplicaHost,
    session: number,
    entryGroup: number,
    number: number,
  ): boolean {
    const { group, member } = host;
    const sent = this.world.ledger.find(session, entryGroup, number);
    const isNew = this.world.ledger.decided(group, member, host.replica.member.nextToDeliver, sent);
    this.compareState(host);
    if (isNew) this.world.losses.goesOn(group);
    if (isNew && sent && entryGroup === group)
      this.fairness.ordered(sent, this.world.ledger.decidedCount(group));
    return isNew;
  }

  /** A replica delivers a tick. */
  ticked(host: ReplicaHost, orderedUs: number): void {
    const { group, member, replica, timeKeeper } = host;
    const { nextToDeliver } = replica.member;
    const isFollower = replica.role === 'follower';
    const isNew = this.orderedTime.delivered(
      group,
      member,
      nextToDeliver,
      timeKeeper,
      isFollower,
      orderedUs,
    );
    this.compareState(host);
    if (isNew) this.world.losses.goesOn(group);
  }

  /** Compare the state of a replica with that of others at the same index: as it delivers there, or at the end. */
  compareState({ group, member, replica, service }: ReplicaHost): void {
    if (this.settings.keepsHistory === false) return;
    const { nextToDeliver } = replica.member;
    this.world.ledger.state(group, member, nextToDeliver, digestOf(replica.member, service));
  }

  /** The observer of a participant; `host` is its host if it is a replica. */
  observerOf(participant: number, host?: ReplicaHost): Observer {
    const replica = host && `${host.group}/${host.member}`;
    return {
      transition: (what) => {
        this.world.tally.transition(what);
        this.settings.onTransition?.(participant, what);
        if (host) this.onTransition(host, what);
      },
      led: (ballot) => {
        this.fairness.disturbed(host!.group);
        this.availability.led(host!.group, this.world.nowUs);
        this.world.losses.goesOn(host!.group);
        this.world.ledger.record({
          event: 'leader',
          group: host!.group,
          replica: replica!,
          ballot: describeBallot(ballot),
        });
      },
      relayed: ({ session, entryGroup, number }) => {
        const sent = this.world.ledger.find(session, entryGroup, number);
        if (this.noteDecided(host!, session, entryGroup, number) && sent) {
          this.world.ledger.record({ event: 'touch', id: sent.id, group: host!.group });
        }
      },
      restored: (fromMember, count) => {
        const from = `${host!.group}/${fromMember}`;
        this.world.ledger.record({ event: 'restore', replica: replica!, from, count });
      },
      failed: requirePlanned,
      snapshotFailed: requirePlanned,
    };
  }

  private onTransition(host: ReplicaHost, what: Transition): void {
    if (what === 'log truncated') {
      const { baseIndex } = host.replica.replication;
      this.world.droppedBelow[host.group] = Math.max(
        this.world.droppedBelow[host.group],
        baseIndex,
      );
    }
    if (what === 'ordered time set' || what === 'ordered time advanced') {
      const { group, timeKeeper, replica } = host;
      const { ballot } = replica.replication;
      const { nowUs } = this.world;
      this.orderedTime.proposed(group, timeKeeper, ballot, replica.clock!.latestUs, nowUs);
    }
    this.incidents.onTransition(host, what);
  }

  /** Judges the whole history, at the end. */
  judge(): void {
    if (this.settings.keepsHistory === false) return;
    const { history } = this.world.ledger;
    const { properties } = judge(history);
    this.violatesRealTime = properties.some(
      (found) => found.property === 'real-time-order' && 'violation' in found,
    );
    // To the judge, a history without replies is one that did not record them. Here, nobody has received any.
    const nothingShown = history.counts.answers === 0;
    const broken = properties.filter(
      ({ property, outcome }) =>
        outcome === 'violated' ||
        (outcome === 'unknown' && !(nothingShown && NEEDS_REPLIES.includes(property))),
    );
    if (broken.length === 0) return;
    throw new SimulationFailure(
      'property',
      broken.map((property) => JSON.stringify(property)).join('\n'),
    );
  }
}

/** The properties that can't be judged without replies. */
const NEEDS_REPLIES: readonly string[] = ['real-time-order', 'durability'];

/** Any other failure of the service is a bug. */
function requirePlanned(error: unknown): void {
  if (!(error instanceof ServiceFailure)) throw error;
}
