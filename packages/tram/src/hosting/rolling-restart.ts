/**
 * Restarts all hosts of a cluster, one after the other, while it serves its clients. For each host: hand its leaderships
 * to other members, end it in order, start it with the memory that it left, and wait until its replicas take part and
 * have caught up. Each start loads the module of the service again, so this also upgrades the service.
 */
import { TramError } from '../errors.js';
import type { ClusterContext } from './cluster-context.js';
import { pause, requestLead } from './oversight.js';
import { takesPart } from './rejoin.js';
import { type GroupStatus, type ReplicaStatus, statusOf } from './status.js';

/** How long to wait until the other members have taken over. A host that ends as a leader only costs time. */
const HAND_OVER_MS = 2000;
/** How long a host may take to end in order, which includes snapshots of its replicas, before it is killed. */
export const STOP_MS = 60_000;
const ASK_AGAIN_MS = 50;
/** How long to wait for replicas that do not take part yet, before a host is ended. */
const TAKE_PART_MS = 5000;

/** How a program or a command restarts the hosts of a cluster. */
export interface HostControl {
  readonly context: ClusterContext;
  /** Hands its leaderships over, ends it in order, starts it again, and waits until its replicas have rejoined. */
  restart(host: number): Promise<readonly ReplicaStatus[]>;
}

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
  return config.machines?.[host].name ?? String(host);
}

/** @throws what has stopped it, with the hosts that were restarted and those that were not */
export async function restartInTurn(
  control: HostControl,
  { signal, onRestarted = () => undefined }: TurnOptions,
): Promise<void> {
  const { context } = control;
  const hosts = Array.from({ length: context.map.hosts }, (_, host) => host);
  await untilAllTakePart(context, 'a rolling restart');
  for (const host of hosts) {
    const title = titleOf(context, host);
    const startedMs = performance.now();
    let replicas: readonly ReplicaStatus[];
    try {
      if (signal?.aborted) {
        throw new TramError('TRAM_ABORTED', 'aborted', { cause: signal.reason });
      }
      await untilAllTakePart(context, `the restart of host ${title}`);
      replicas = await control.restart(host);
    } catch (error) {
      const titles = hosts.map((one) => titleOf(context, one));
      throw withProgress(error, titles, host);
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
 * Waits until all replicas take part in their groups. A host that is down does not come back by waiting.
 * @throws TRAM_UNAVAILABLE
 */
async function untilAllTakePart(context: ClusterContext, what: string): Promise<void> {
  const deadlineMs = Date.now() + TAKE_PART_MS;
  for (;;) {
    const replicas = statusOf(context).groups.flatMap((group) => group.replicas);
    const missing = replicas.filter((replica) => !takesPart(replica));
    if (missing.length === 0) return;
    if (missing.some(({ state }) => state === 'down') || Date.now() > deadlineMs) {
      const names = missing.map(
        ({ name, state, role }) => `${name} (${state === 'up' ? role : state})`,
      );
      throw new TramError(
        'TRAM_UNAVAILABLE',
        `${what} needs all replicas, and these take no part in their groups: ${names.join(', ')}`,
        { hint: 'Restart the hosts that are down first, and wait until their replicas take part.' },
      );
    }
    await pause(ASK_AGAIN_MS);
  }
}

/** Asks members on other hosts to lead the groups that this host leads, and waits a bounded time for them. */
export async function handOver(context: ClusterContext, host: number): Promise<void> {
  const deadlineMs = Date.now() + HAND_OVER_MS;
  while (Date.now() < deadlineMs) {
    const successors = statusOf(context).groups.flatMap((group) => successorOf(group, host));
    if (successors.length === 0) return;
    for (const { group, member } of successors) requestLead(context, group, member, 'handover');
    await pause(ASK_AGAIN_MS);
  }
}

/** The member that is furthest, of a group that the host leads. None if the host does not lead it, or no other can. */
function successorOf({ leader, replicas }: GroupStatus, host: number): ReplicaStatus[] {
  if (leader === undefined || replicas[leader].host !== host) return [];
  return replicas
    .filter((replica) => replica.host !== host && takesPart(replica))
    .sort((one, other) => other.delivered - one.delivered)
    .slice(0, 1);
}
