/**
 * Restarts all hosts of a cluster, one after the other, while it serves its clients. (Across machines: one machine after the
 * other, with all its threads.) It begins, and goes on with the next
 * host, only if every group has a leader and all replicas take part. For each host: hand its leaderships to other members,
 * end it in order, start it with the memory that it left, and wait until its replicas take part and
 * have caught up. Each start loads the module of the service again, so this also upgrades the service.
 */
import { TramError } from '../errors.js';
import type { ClusterContext } from './cluster-context.js';
import { isStopped } from './host-processes.js';
import { pause, requestLead, requireState } from './oversight.js';
import { takesPart } from './rejoin.js';
import { type GroupStatus, type HostStatus, type ReplicaStatus, statusOf } from './status.js';

/** How long to wait until the other members have taken over. A host that ends as a leader only costs time. */
const HAND_OVER_MS = 2000;
/** How long a host may take to end in order, which includes snapshots of its replicas, before it is killed. */
export const STOP_MS = 60_000;
const ASK_AGAIN_MS = 50;
/** How long to wait for replicas that do not take part yet, and for leaders, before a host is ended. */
const TAKE_PART_MS = 5000;

/** How a program or a command restarts the hosts of a cluster. */
export interface HostControl {
  readonly context: ClusterContext;
  /**
   * Hands its leaderships over, ends it in order, starts it again, and waits until its replicas have rejoined. All hosts of
   * its machine restart with it.
   * @param beforeEnd  if it rejects, the host runs on, and so does the rejection
   */
  restart(host: number, beforeEnd: BeforeEnd): Promise<readonly ReplicaStatus[]>;
}

/** Called when a host has handed its leaderships over, before it is ended. */
export type BeforeEnd = () => Promise<void>;

/** A host, after its restart. */
export interface Restarted {
  readonly host: number;
  /** As users know it: its number, or the name of its machine. */
  readonly title: string;
  readonly replicas: readonly ReplicaStatus[];
  readonly tookMs: number;
}

export interface TurnOptions {
  /** Checked before each host. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each host. */
  readonly onRestarted?: ((restarted: Restarted) => void) | undefined;
}

/** What users call a host: its number, or the name of its machine. */
export function titleOf({ config }: ClusterContext, host: number): string {
  return config.machines?.[host].machine ?? String(host);
}

/** @throws what has stopped it, with the hosts that were restarted and those that were not */
export async function restartInTurn(
  control: HostControl,
  { signal, onRestarted = () => undefined }: TurnOptions,
): Promise<void> {
  const { context } = control;
  const { threads = 1 } = context.config;
  // Of each machine, one host.
  const hosts = Array.from({ length: context.map.hosts / threads }, (_, i) => i * threads);
  await untilWhole(context, 'a rolling restart');
  for (const [turn, host] of hosts.entries()) {
    const title = titleOf(context, host);
    const startedMs = performance.now();
    let replicas: readonly ReplicaStatus[];
    try {
      if (signal?.aborted) {
        throw new TramError('TRAM_ABORTED', 'aborted', { cause: signal.reason });
      }
      const untilReady = (): Promise<void> => untilWhole(context, `the restart of host ${title}`);
      await untilReady();
      // Another host may have ended while this one handed over.
      replicas = await control.restart(host, untilReady);
    } catch (error) {
      const titles = hosts.map((one) => titleOf(context, one));
      throw withProgress(error, titles, turn);
    }
    onRestarted({ host, title, replicas, tookMs: performance.now() - startedMs });
  }
}

function withProgress(error: unknown, titles: readonly string[], failed: number): unknown {
  if (!(error instanceof TramError)) return error;
  const { code, hint, retry, message } = error;
  const done = titles.slice(0, failed).join(', ') || 'none';
  const open = titles.slice(failed).join(', ');
  return new TramError(
    code,
    `the rolling restart has stopped at host ${titles[failed]}: ${message} (restarted: ${done}; not: ${open})`,
    { hint, retry, cause: error },
  );
}

/**
 * Waits until all replicas take part in their groups, and every group has a leader. A host that is down or hangs does not
 * come back by waiting; but across machines, one that is only slow may look as if it were down.
 * @throws TRAM_UNAVAILABLE, TRAM_STATE_LOST
 */
async function untilWhole(context: ClusterContext, what: string): Promise<void> {
  const deadlineMs = Date.now() + TAKE_PART_MS;
  const isDownForSure = context.config.memory !== 'machines';
  for (;;) {
    const { groups, hosts } = statusOf(context);
    requireNoneHangs(context, hosts, what);
    requireState(groups);
    const replicas = groups.flatMap((group) => group.replicas);
    const missing = replicas.filter((replica) => !takesPart(replica));
    const unhealthy = groups.filter(({ health }) => health !== 'ok');
    if (missing.length === 0 && unhealthy.length === 0) return;
    const isLate = Date.now() > deadlineMs;
    const isDown = isDownForSure && missing.some(({ state }) => state === 'down');
    if (isDown || (isLate && missing.length > 0)) {
      const names = missing.map(
        ({ name, state, role }) => `${name} (${state === 'up' ? role : state})`,
      );
      throw new TramError(
        'TRAM_UNAVAILABLE',
        `${what} needs all replicas, and these take no part in their groups: ${names.join(', ')}`,
        { hint: 'Restart the hosts that are down first, and wait until their replicas take part.' },
      );
    }
    if (isLate) {
      const names = unhealthy.map(({ group }) => `g${group}`).join(', ');
      throw new TramError(
        'TRAM_UNAVAILABLE',
        `${what} needs a leader of every group, and these have none: ${names}`,
        { hint: 'Look at `tram status` for what they wait for.' },
      );
    }
    await pause(ASK_AGAIN_MS);
  }
}

/** A stopped process looks as if it took part, but its group does not hear it. A host on a machine that hangs is down. */
function requireNoneHangs(
  { config }: ClusterContext,
  hosts: readonly HostStatus[],
  what: string,
): void {
  if (config.memory !== 'processes') return;
  const hanging = hosts.filter(({ state, pid }) => state !== 'down' && isStopped(pid));
  if (hanging.length === 0) return;
  const names = hanging.map(({ host, pid }) => `host ${host} (process ${pid})`).join(', ');
  throw new TramError(
    'TRAM_UNAVAILABLE',
    `${what} needs all hosts, and these are stopped (SIGSTOP): ${names}`,
    {
      hint: 'Let them continue with `tram kill --signal SIGCONT`, or end them with `tram kill` and restart them.',
    },
  );
}

/** Asks members on other hosts to lead the groups that these hosts lead, and waits a bounded time for them. */
export async function handOver(context: ClusterContext, hosts: readonly number[]): Promise<void> {
  const deadlineMs = Date.now() + HAND_OVER_MS;
  while (Date.now() < deadlineMs) {
    const successors = statusOf(context).groups.flatMap((group) => successorOf(group, hosts));
    if (successors.length === 0) return;
    for (const { group, member } of successors) requestLead(context, group, member, 'handover');
    await pause(ASK_AGAIN_MS);
  }
}

/** The member that is furthest, of a group that the hosts lead. None if they do not lead it, or no other can. */
function successorOf({ leader, replicas }: GroupStatus, hosts: readonly number[]): ReplicaStatus[] {
  if (leader === undefined || !hosts.includes(replicas[leader].host)) return [];
  return replicas
    .filter((replica) => !hosts.includes(replica.host) && takesPart(replica))
    .sort((one, other) => other.delivered - one.delivered)
    .slice(0, 1);
}
