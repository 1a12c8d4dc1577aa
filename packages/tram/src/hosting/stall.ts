/**
 * Why a message has no answer yet: which groups have not replied, and which groups on its way can't go on. Called at the
 * deadline of a call, and once a second while calls wait.
 *
 * On threads and processes the memory of the cluster shows who leads. A client of a cluster on machines can't read the
 * memory of the hosts: it knows only which hosts it can't reach. One of them may lead a group that the others of the group
 * follow, and only this client does not reach it: its configuration file may have the address of a machine that was replaced.
 */
import { type Channel, channel } from 'node:diagnostics_channel';
import { contains } from '../protocol/overlay.js';
import type { ClusterContext } from './cluster-context.js';
import { type GroupStatus, type ReplicaStatus, statusOf } from './status.js';

/** @internal */
export interface Stall {
  /** The groups on the way of the message that can't go on, as far as this thread can tell. */
  readonly stalledGroups: readonly number[];
  /** In words; empty if there is no such group. */
  readonly reason: string;
}

/** @internal What is published on `stalls`. */
export interface StallMessage extends Stall {
  /** Undefined if the client has no slot yet: it waits for hosts. */
  readonly client: string | undefined;
  readonly destinations: readonly number[];
  readonly missingGroups: readonly number[];
}

/** @internal */
export const stalls: Channel = channel('tram:stalled');
/** @internal What takes longer than this is stalled. A client tells of it as often. */
export const STALLED_US = 1_000_000;

/** @internal @param low, high  the groups whose replies are missing */
export function stallOf(context: ClusterContext, low: number, high: number): Stall {
  const { overlay, network } = context;
  const entryGroup = overlay.entryGroup(low, high);
  const isOnTheWay = (group: number): boolean =>
    contains(overlay.reachLow[entryGroup], overlay.reachHigh[entryGroup], group) &&
    overlay.reaches(group, low, high);
  const reasonOf = network === undefined ? leaderlessReason : unreachableReason;
  const stalled = statusOf(context)
    .groups.filter(({ group }) => isOnTheWay(group))
    .flatMap((status) => {
      const reason = reasonOf(context, status);
      return reason === undefined ? [] : { group: status.group, reason };
    });
  return {
    stalledGroups: stalled.map(({ group }) => group),
    reason: stalled.map(({ reason }) => reason).join('; '),
  };
}

/** `g3 has no leader: g3/1, g3/2 are down` */
function leaderlessReason(_: ClusterContext, status: GroupStatus): string | undefined {
  const { group, leader, replicas } = status;
  if (leader !== undefined) return undefined;
  const absent = replicas.filter(({ state }) => state !== 'up');
  const recovering = replicas.filter(({ state, role }) => state === 'up' && role === 'recovering');
  const causes = [
    ...(absent.length > 0 ? [`${namesOf(absent)} down`] : []),
    ...(recovering.length > 0 ? [`${namesOf(recovering)} recovering`] : []),
  ];
  const isLost = 2 * (absent.length + recovering.length) > replicas.length;
  const why = isLost ? causes.join(', ') : 'an election is under way';
  return `g${group} has no leader: ${why}`;
}

function namesOf(replicas: readonly ReplicaStatus[]): string {
  return `${replicas.map(({ name }) => name).join(', ')} ${replicas.length === 1 ? 'is' : 'are'}`;
}

/**
 * `g3 can't be reached: beta (connection refused), gamma (no answer)`
 * `g3 may be led by gamma, which can't be reached (no answer)`
 */
function unreachableReason(
  { network, config }: ClusterContext,
  { group, replicas }: GroupStatus,
): string | undefined {
  const missing = new Set(network!.missingHosts());
  const absent = replicas.filter(({ host }) => missing.has(host));
  if (absent.length === 0) return undefined;
  const nameOf = ({ host }: ReplicaStatus): string => config.machines![host].name;
  const whyNot = ({ host }: ReplicaStatus): string => network!.complaintOf(host) ?? 'no answer';
  if (2 * absent.length > replicas.length) {
    const hosts = absent.map((replica) => `${nameOf(replica)} (${whyNot(replica)})`);
    return `g${group} can't be reached: ${hosts.join(', ')}`;
  }
  const names = absent.map(nameOf).join(' or ');
  return `g${group} may be led by ${names}, which can't be reached (${absent.map(whyNot).join(', ')})`;
}
