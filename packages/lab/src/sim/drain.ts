/**
 * The end of a simulated run: after all faults have ended, every message of a running client must be answered, and all
 * running members must have delivered everything. Called by `course.ts`.
 */
import type { ReplicaHost } from './hosts.js';
import type { World } from './world.js';

export class Drain {
  private readonly quietUs: number;
  private readonly healedUs: number;
  /** By group: the furthest that a member had delivered when the faults ended. */
  private readonly delivered: readonly number[];
  /** By group: its end when the last client was done. Undefined until then, and again with every later delivery. */
  private ends: readonly number[] | undefined;

  constructor(private readonly world: World) {
    const { observation, plan } = world;
    this.quietUs = plan.timing.suspectAfterUs * 4 + plan.timing.resendAfterUs;
    // Quiet time counts from here: operations that faults delayed must have time to arrive.
    this.healedUs = world.nowUs;
    observation.lastDeliveryUs = this.healedUs;
    this.delivered = plan.parents.map((_, group) => deliveredBy(world, group));
  }

  /** Is everything done, or is another era open? Clients give up what will not be answered. */
  isDone(): boolean {
    const { world, quietUs, healedUs, delivered } = this;
    const { observation, ledger, plan, clients, power } = world;
    if (world.isOver) return true;
    if (world.nowUs - observation.lastDeliveryUs < quietUs || power?.isBusy) {
      this.ends = undefined;
      return false;
    }
    // No later message comes that would make the service reply.
    for (const { state, workload, client } of clients) {
      if (state !== 'down') workload.giveUpDeferred(client);
    }
    if (!clients.every((host) => host.state === 'down' || host.workload.isDone)) return false;
    // Ticks go on. With journals, members whose disks are slow wait for them again and again, so that all groups are hardly
    // ever level at once. Such members have to get past the end that their group had when the last client was done.
    if (this.ends === undefined || power === undefined) {
      this.ends = plan.parents.map((_, group) => endOf(world, group));
    }
    const areLevel = this.ends.every(
      (end, group) =>
        isLevel(world, group, end) &&
        isRecoverable(world, group, delivered[group]) &&
        observation.orderedTime.hasTickedSince(group, healedUs),
    );
    // A message of a client that has crashed may still be on its way down the tree.
    return areLevel && ledger.isComplete;
  }

  /** Compare the states of all members, and judge the history. */
  end(): void {
    const { world } = this;
    const { observation, ledger, replicas } = world;
    for (const host of replicas) {
      // Those that are not at the end have compared theirs with each delivery.
      if (host.state !== 'down' && isAtEnd(world, host)) observation.compareState(host);
    }
    ledger.record({ event: 'end', quiescent: true });
    observation.judge();
  }
}

/** The index after everything that a group has decided, as far as anyone knows. */
function endOf(world: World, group: number): number {
  // Some entries deliver nothing, so the ledger does not know them.
  const decided = world.ledger.decidedCount(group) + world.plan.sizes.firstIndex;
  return Math.max(decided, deliveredBy(world, group));
}

function isAtEnd(world: World, { group, replica }: ReplicaHost): boolean {
  return replica.member.nextToDeliver === endOf(world, group);
}

/** Have all running members delivered everything, or more than what was there before, and does nothing wait? */
function isLevel(world: World, group: number, end: number): boolean {
  return running(world, group).every((host) => {
    const { member } = host.replica;
    return (
      member.normal &&
      (isAtEnd(world, host) || member.nextToDeliver > end) &&
      member.waiting.total === 0 &&
      host.service.waiting.length === 0
    );
  });
}

/** The furthest that a running member has delivered. */
function deliveredBy(world: World, group: number): number {
  return Math.max(0, ...running(world, group).map(({ replica }) => replica.member.nextToDeliver));
}

function running(world: World, group: number): ReplicaHost[] {
  return world.members(group).filter(({ state }) => state !== 'down');
}

/** With a journal: would everything below this index survive a power cut of all hosts, as the leader knows? */
function isRecoverable(world: World, group: number, below: number): boolean {
  return running(world, group).every(
    ({ replica: { member, leader, role } }) =>
      role !== 'leader' || member.edges.journal === undefined || leader.recoverable.index >= below,
  );
}

/** The state of every participant. */
export function describe({ replicas, clients, power }: World): string {
  const members = replicas.map((host) =>
    host.state === 'down'
      ? `${host.group}/${host.member} down`
      : `${host.replica.describe()} (${host.state})`,
  );
  const senders = clients.map(
    (host) =>
      `c${host.workload.session} ${host.state}: ${host.workload.remaining} to send, ${host.client.outstanding} unanswered`,
  );
  return [...members, ...senders, ...(power?.describe() ?? [])].join('\n');
}
