/**
 * `tram-lab bench failover`: how a leader change delays messages, as in the paper's last experiment (Paper §8.7). All clients
 * send to all groups of a breadth tree, one message at a time each. The leader changes in every group at once: on request, or
 * because the process that runs all leaders is killed (SIGKILL). The hosts are processes that share memory, or processes that
 * reach each other over the loopback, as machines do (`machines/failover.ts`).
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
import type { Arena, ArenaMap } from 'tram-multicast/internal/memory/arena.js';
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { changeUnderLoad, clockMs } from './load/changes.js';
import { type DestinationSet, everyGroup } from './load/destinations.js';
import type { TargetAddress } from './load/open-target.js';
import type { ChangesReport, Span } from './load/span-delays.js';

export interface FailoverOptions {
  /** Default: processes. */
  readonly memory?: 'processes' | 'machines';
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

/** A cluster as the benchmark deals with it. */
export interface Subject {
  readonly target: TargetAddress;
  /** Messages that each client keeps in flight. */
  readonly outstanding: number;
  readonly leaders: Leaders;
  /** By group, the member that leads. */
  leadersNow(): Promise<readonly (number | undefined)[]>;
  /** By group, the member that a host runs. */
  membersOf(host: number): readonly number[];
  pidOf(host: number): number;
  /** Asks one member of each group to lead it. */
  lead(members: readonly number[]): Promise<void> | void;
  /** Starts a host that was killed. */
  restart(host: number): Promise<void>;
  close(): Promise<void>;
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
  const { groups, replicas, clients, payloadBytes } = options;
  const subject = await start(options);
  try {
    await pause(WARM_UP_MS);
    const change = async (number: number): Promise<Span> => {
      progress(
        `${cause === 'kill' ? 'SIGKILL' : 'requested change'} ${number + 1} of ${options.changes}`,
      );
      const host = number % replicas;
      if (cause === 'request') return changeOnRequest(subject, replicas);
      await gatherLeaders(subject, host);
      return killLeaders(subject, host);
    };
    const job = {
      ...subject.target,
      clients,
      outstanding: subject.outstanding,
      sets: options.sets ?? [everyGroup(groups)],
      payloadBytes,
    };
    const changes = Array.from({ length: options.changes }, (_, number) => () => change(number));
    return { cause, ...(await changeUnderLoad(job, changes, BETWEEN_MS)) };
  } finally {
    await subject.close();
  }
}

async function start(options: FailoverOptions): Promise<Subject> {
  if (options.memory !== 'machines') return startProcesses(options);
  const { startMachines } = await import('./machines/failover.js');
  return startMachines(options);
}

async function startProcesses(options: FailoverOptions): Promise<Subject> {
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
  const address = cluster.address as string;
  const memberOn = (host: number, { replicas: members }: GroupStatus): number =>
    members.findIndex((replica) => replica.host === host);
  const { arena, map } = ClusterContext.attach(openArena(address));
  return {
    target: { address },
    outstanding: 1,
    leaders: new Leaders(map, () => arena),
    leadersNow: async () => cluster.status().groups.map(({ leader }) => leader),
    membersOf: (host) => cluster.status().groups.map((group) => memberOn(host, group)),
    pidOf: (host) => cluster.status().hosts[host].pid,
    lead: (members) => {
      for (const [group, member] of members.entries()) cluster.lead(group, member);
    },
    restart: async (host) => {
      await cluster.restart(host);
    },
    close: () => cluster.destroy(),
  };
}

/**
 * Makes the replicas of one process leaders of all groups, so that its death changes all leaders at once. It chooses them
 * even where they lead already: first members return to the lead only of groups whose leader nobody has chosen.
 */
async function gatherLeaders(subject: Subject, host: number): Promise<void> {
  const limitMs = clockMs() + CHANGE_LIMIT_MS;
  const members = subject.membersOf(host);
  for (;;) {
    await subject.leadersNow();
    await subject.lead(members);
    await pause(GATHER_MS);
    const leaders = await subject.leadersNow();
    if (members.every((member, group) => leaders[group] === member)) break;
    if (clockMs() > limitMs) throw new Error('the leaders did not change in time');
  }
  await pause(BETWEEN_MS);
}

/** Resolves when every group has a new leader. */
async function changeOnRequest(subject: Subject, replicas: number): Promise<Span> {
  const next = (await subject.leadersNow()).map((leader) => ((leader ?? 0) + 1) % replicas);
  const { leaders } = subject;
  leaders.remember();
  const fromMs = clockMs();
  await subject.lead(next);
  return { fromMs, untilMs: await leaders.untilChanged() };
}

/** Resolves when every group has a new leader, and the host is back. */
async function killLeaders(subject: Subject, host: number): Promise<Span> {
  const { leaders } = subject;
  const pid = subject.pidOf(host);
  leaders.remember();
  const fromMs = clockMs();
  process.kill(pid, 'SIGKILL');
  const untilMs = await leaders.untilChanged();
  // The start of a process takes much of a core: not while messages are delayed.
  await pause(BETWEEN_MS);
  await subject.restart(host);
  await pause(WARM_UP_MS);
  return { fromMs, untilMs };
}

/**
 * Looks which groups have a new leader, in the memory of the hosts. It must not disturb what it measures: `cluster.status()`
 * looks at all replicas and clients, with many system calls.
 */
export class Leaders {
  private before: readonly number[] = [];

  constructor(
    private readonly map: ArenaMap,
    /** The arena that a host uses, as of now. */
    private readonly arenaOf: (host: number) => Arena,
  ) {}

  /** By group: how often a member has begun to lead. */
  private now(): number[] {
    const { map, arenaOf } = this;
    const { layout } = map;
    const { groups, replicas } = layout.sizes;
    const counts = new Array<number>(groups).fill(0);
    for (let participant = 0; participant < groups * replicas; participant++) {
      const { words } = arenaOf(map.hostOf(participant));
      const times = words[map.statisticsOf(participant) + STATISTIC.timesLed];
      counts[Math.floor(participant / replicas)] += times;
    }
    return counts;
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
