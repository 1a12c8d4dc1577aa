/**
 * `tram-lab bench failover`: how a leader change delays messages, as in the paper's last experiment (Paper §8.7). All clients
 * send to all groups of a breadth tree, one message at a time each. The leader changes in every group at once: on request, or
 * because the process that runs all leaders is killed (SIGKILL).
 *
 * A message is *delayed* if it was in flight at some moment of the change: sent before the last group had its new leader, and
 * answered after the change began.
 *
 * The benchmark itself takes as little of the cores as it can meanwhile: clients that wait sleep, and a killed process is
 * restarted only later.
 */
import { Cluster } from 'tram-multicast/internal/cluster.js';
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { openArena } from 'tram-multicast/internal/hosting/open-arena.js';
import { STATISTIC } from 'tram-multicast/internal/hosting/statistics.js';
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
/** From a start until the host has compiled what takeovers need (`hosting/warm-up.ts`). */
const WARM_UP_MS = 4000;
const CHANGE_LIMIT_MS = 10_000;
const LOOK_MS = 1;
const GATHER_MS = 300;

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
    restartHosts: false,
  });
  const leaders = new Leaders(cluster.address as string);
  await pause(WARM_UP_MS);
  const change = async (number: number): Promise<Span> => {
    progress(
      `${cause === 'kill' ? 'SIGKILL' : 'requested change'} ${number + 1} of ${options.changes}`,
    );
    const host = number % replicas;
    if (cause === 'kill') await gatherLeaders(cluster, host);
    return changeLeaders(cluster, leaders, cause, host);
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

/**
 * Makes the replicas of one process leaders of all groups, so that its death changes all leaders at once. It chooses them
 * even where they lead already: first members return to the lead only of groups whose leader nobody has chosen.
 */
async function gatherLeaders(cluster: Cluster, host: number): Promise<void> {
  const limitMs = clockMs() + CHANGE_LIMIT_MS;
  const memberOf = ({ replicas }: GroupStatus): number =>
    replicas.findIndex((replica) => replica.host === host);
  let others = cluster.status().groups;
  while (others.length > 0) {
    if (clockMs() > limitMs) throw new Error('the leaders did not change in time');
    for (const group of others) cluster.lead(group.group, memberOf(group));
    await pause(GATHER_MS);
    others = cluster.status().groups.filter((group) => group.leader !== memberOf(group));
  }
  await pause(BETWEEN_MS);
}

/** Resolves when every group has a new leader; after a crash, also when the host is back. */
async function changeLeaders(
  cluster: Cluster,
  leaders: Leaders,
  cause: Cause,
  host: number,
): Promise<Span> {
  const { groups, hosts } = cluster.status();
  const { pid } = hosts[host];
  leaders.remember();
  const fromMs = clockMs();
  if (cause === 'kill') process.kill(pid, 'SIGKILL');
  else
    for (const { group, leader, replicas } of groups)
      cluster.lead(group, (leader! + 1) % replicas.length);
  const untilMs = await leaders.untilChanged();
  if (cause === 'kill') {
    // The start of a process takes much of a core: not while messages are delayed.
    await pause(BETWEEN_MS);
    await cluster.restart(host);
    await pause(WARM_UP_MS);
  }
  return { fromMs, untilMs };
}

/**
 * Looks which groups have a new leader, in the memory of the cluster. It must not disturb what it measures: `cluster.status()`
 * looks at all replicas and clients, with many system calls.
 */
class Leaders {
  private readonly words: Int32Array;
  /** By group: where each member counts how often it has begun to lead. */
  private readonly counts: readonly (readonly number[])[];
  private before: readonly number[] = [];

  constructor(address: string) {
    const { arena, map, layout } = ClusterContext.attach(openArena(address));
    const { groups, replicas } = layout.sizes;
    this.words = arena.words;
    this.counts = Array.from({ length: groups }, (_, group) =>
      Array.from(
        { length: replicas },
        (_, member) =>
          map.statisticsOf(layout.replicaParticipant(group, member)) + STATISTIC.timesLed,
      ),
    );
  }

  /** By group: how often a member has begun to lead. */
  private now(): number[] {
    return this.counts.map((counts) => counts.reduce((sum, at) => sum + this.words[at], 0));
  }

  remember(): void {
    this.before = this.now();
  }

  /** Resolves when every group has a new leader. @returns the time */
  async untilChanged(): Promise<number> {
    const limitMs = clockMs() + CHANGE_LIMIT_MS;
    for (;;) {
      if (this.now().every((count, group) => count !== this.before[group])) return clockMs();
      if (clockMs() > limitMs) throw new Error('the leaders did not change in time');
      await pause(LOOK_MS);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
