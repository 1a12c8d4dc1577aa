/**
 * `tram-lab bench failover`: how a leader change delays messages, as in the paper's last experiment (Paper §8.7). All clients
 * send to all groups of a breadth tree, one message at a time each. The leader changes in every group at once: on request, or
 * because the process that runs all leaders is killed (SIGKILL).
 *
 * A message is *delayed* if it was in flight at some moment of the change: sent before the last group had its new leader, and
 * answered after the change began.
 */
import { Cluster } from 'tram-multicast/internal/cluster.js';
import type { GroupStatus } from 'tram-multicast/internal/hosting/status.js';
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { changeUnderLoad, clockMs } from './load/changes.js';
import type { ChangesReport, Span } from './load/changes-worker.js';
import { type DestinationSet, everyGroup } from './load/destinations.js';

export interface FailoverOptions {
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly clients: number;
  readonly payloadBytes: number;
  readonly changes: number;
  /** Default: the order of the paper. */
  readonly order?: Order;
  /** The destinations of the messages; by default all groups. */
  readonly sets?: readonly DestinationSet[];
}

export type Cause = 'request' | 'kill';

export interface FailoverResult {
  readonly options: FailoverOptions;
  readonly causes: readonly (ChangesReport & { readonly cause: Cause })[];
}

const BETWEEN_MS = 1000;
const CHANGE_LIMIT_MS = 10_000;
const LOOK_MS = 1;

export async function benchFailover(
  options: FailoverOptions,
  progress: (step: string) => void,
): Promise<FailoverResult> {
  const request = await measureChanges(options, 'request', progress);
  const kill = await measureChanges(options, 'kill', progress);
  return { options, causes: [request, kill] };
}

/** Starts a cluster, changes its leaders under load, and ends it. */
export async function measureChanges(
  options: FailoverOptions,
  cause: Cause,
  progress: (step: string) => void,
): Promise<FailoverResult['causes'][number]> {
  const { groups, replicas, tree, clients, payloadBytes, order = 'multicast' } = options;
  const cluster = await Cluster.start({
    memory: 'processes',
    groups,
    replicas,
    tree,
    order,
    clients: clients + 1,
    callsMax: 4,
    payloadBytesMax: Math.max(payloadBytes, 16),
    replyBytesMax: 16,
    logBytes: 1 << 15,
    inboxBytes: 1 << 10,
  });
  const change = async (number: number): Promise<Span> => {
    progress(
      `${cause === 'kill' ? 'SIGKILL' : 'requested change'} ${number + 1} of ${options.changes}`,
    );
    const host = number % replicas;
    if (cause === 'kill') await gatherLeaders(cluster, host);
    return changeLeaders(cluster, cause, host);
  };
  const job = {
    address: cluster.address as string,
    clients,
    outstanding: 1,
    sets: options.sets ?? [everyGroup(groups)],
    payloadBytes,
  };
  try {
    const changes = Array.from({ length: options.changes }, (_, number) => () => change(number));
    return { cause, ...(await changeUnderLoad(job, changes, BETWEEN_MS)) };
  } finally {
    await cluster.destroy();
  }
}

/** Makes the replicas of one process leaders of all groups, so that its death changes all leaders at once. */
async function gatherLeaders(cluster: Cluster, host: number): Promise<void> {
  for (const { group, leader, replicas } of cluster.status().groups) {
    const here = replicas.findIndex((replica) => replica.host === host);
    if (leader !== here) cluster.lead(group, here);
  }
  await until(cluster, ({ leader, replicas }) => replicas[leader].host === host);
  await pause(BETWEEN_MS);
}

/** Resolves when every group has a new leader. */
async function changeLeaders(cluster: Cluster, cause: Cause, host: number): Promise<Span> {
  const before = cluster.status().groups.map(({ leader }) => leader);
  const fromMs = clockMs();
  if (cause === 'kill') {
    await cluster.crash(host);
    const untilMs = await untilChanged(cluster, before);
    await cluster.restart(host);
    return { fromMs, untilMs };
  }
  before.forEach((leader, group) => {
    cluster.lead(group, (leader! + 1) % cluster.status().groups[group].replicas.length);
  });
  return { fromMs, untilMs: await untilChanged(cluster, before) };
}

function untilChanged(cluster: Cluster, before: readonly (number | undefined)[]): Promise<number> {
  return until(cluster, ({ group, leader }) => leader !== before[group]);
}

/** Resolves when every group has a leader and meets the condition. @returns the time */
async function until(
  cluster: Cluster,
  isSo: (group: GroupStatus & { readonly leader: number }) => boolean,
): Promise<number> {
  const limitMs = clockMs() + CHANGE_LIMIT_MS;
  for (;;) {
    const isDone = cluster
      .status()
      .groups.every(
        (group) => group.leader !== undefined && isSo({ ...group, leader: group.leader }),
      );
    if (isDone) return clockMs();
    if (clockMs() > limitMs) throw new Error('the leaders did not change in time');
    await pause(LOOK_MS);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
