/** What a cluster looks like at one time, and what happened between two such readings: for `tram status` and the page. */
import { NO_ANSWER } from '../memory/machines/network-options.js';
import type { ClusterContext } from './cluster-context.js';
import type { Histogram } from './histogram.js';
import { isStopped } from './host-processes.js';
import { isSupervised } from './oversight.js';
import {
  type ClusterStatus,
  type GroupStatus,
  type HostStatus,
  type ReplicaStatus,
  statusOf,
  totalLatency,
} from './status.js';

export interface Reading {
  readonly atMs: number;
  readonly status: ClusterStatus;
  readonly latency: Histogram;
  /** Is there a process that restarts hosts if they end? `undefined` where that is not ours to know: only processes tell. */
  readonly isSupervised: boolean | undefined;
  /** Hosts whose process is stopped: neither running nor ended. */
  readonly stopped: ReadonlySet<number>;
  /** Across machines, by host: why it can't be reached. */
  readonly unreachable: ReadonlyMap<number, string>;
}

/** What happened between two readings. */
export interface Rates {
  /** Messages delivered per second, by group. */
  readonly groups: readonly number[];
  /** Messages that were only relayed to child groups per second, by group. */
  readonly relayed: readonly number[];
  /** Messages answered per second. */
  readonly answered: number;
  readonly latency: Histogram;
}

export function read(context: ClusterContext): Reading {
  const status = statusOf(context);
  const isOfProcesses = context.config.memory === 'processes';
  return {
    atMs: performance.now(),
    status,
    latency: totalLatency(context),
    isSupervised: isOfProcesses ? isSupervised(context) : undefined,
    stopped: new Set(isOfProcesses ? stoppedAmong(status.hosts) : []),
    unreachable: unreachableFrom(context),
  };
}

/** The pid that a host has written is its own while it runs. */
function stoppedAmong(hosts: readonly HostStatus[]): number[] {
  const stopped = hosts.filter(({ state, pid }) => state !== 'down' && isStopped(pid));
  return stopped.map(({ host }) => host);
}

function unreachableFrom({ network }: ClusterContext): ReadonlyMap<number, string> {
  const missing = network?.missingHosts() ?? [];
  return new Map(missing.map((host) => [host, network!.complaintOf(host) ?? NO_ANSWER]));
}

export function ratesBetween(before: Reading, after: Reading): Rates {
  const seconds = (after.atMs - before.atMs) / 1000;
  const latency = after.latency.since(before.latency);
  const ratesOf = (count: (replica: ReplicaStatus) => number): number[] =>
    after.status.groups.map((group, index) =>
      Math.round(moreIn(before.status.groups[index], group, count) / seconds),
    );
  return {
    groups: ratesOf(({ messages }) => messages),
    relayed: ratesOf(({ relayed }) => relayed),
    answered: Math.round(latency.count / seconds),
    latency,
  };
}

/** A group has delivered what the fastest of its replicas has. All count the same deliveries. */
function moreIn(
  before: GroupStatus,
  after: GroupStatus,
  count: (replica: ReplicaStatus) => number,
): number {
  const most = ({ replicas }: GroupStatus): number => Math.max(...replicas.map(count));
  // Fewer if the fastest replica is down, or if all deliver again from their logs.
  return Math.max(0, most(after) - most(before));
}

/** The state of a host, and so of its replicas, as users see it. */
export function shownState(
  { host, state }: Pick<ReplicaStatus, 'host' | 'state'>,
  { stopped, unreachable }: Reading,
): string {
  if (stopped.has(host)) return 'stopped';
  return unreachable.has(host) ? 'unreachable' : state;
}
