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
/** How long a host may take to end in order before it is killed. */
export const STOP_MS = 10_000;
const ASK_AGAIN_MS = 50;
/** How long to wait for replicas that do not take part yet, before a host is ended. */
const TAKE_PART_MS = 5000;

/** How a program or a command ends and starts the hosts of a cluster. */
export interface HostControl {
  readonly context: ClusterContext;
  /** Hands its leaderships over and ends a host in order. */
  stop(host: number): Promise<void>;
  /** Starts it again, and waits until its replicas have rejoined. */
  restart(host: number): Promise<void>;
}

export interface TurnOptions {
  /** Checked before each host. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each host. */
  readonly onRestarted?: ((host: number) => void) | undefined;
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
    try {
      if (signal?.aborted) {
        throw new TramError('TRAM_ABORTED', 'aborted', { cause: signal.reason });
      }
      await untilAllTakePart(context, `the restart of host ${host}`);
      await control.stop(host);
      await control.restart(host);
    } catch (error) {
      throw withProgress(error, hosts, host);
    }
    onRestarted(host);
  }
}

function withProgress(error: unknown, hosts: readonly number[], failed: number): unknown {
  if (!(error instanceof TramError)) return error;
  const { code, hint, retry, message } = error;
  const done = hosts.slice(0, failed).join(', ') || 'none';
  const open = hosts.slice(failed).join(', ');
  return new TramError(
    code,
    `the rolling restart has stopped at host ${failed}: ${message} (restarted: ${done}; not: ${open})`,
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

/** Asks members on other hosts to lead the groups that this host leads, and waits for them, but not for ever. */
export async function handOver(context: ClusterContext, host: number): Promise<void> {
  const deadlineMs = Date.now() + HAND_OVER_MS;
  while (Date.now() < deadlineMs) {
    const successors = statusOf(context).groups.flatMap((group) => successorOf(group, host));
    if (successors.length === 0) return;
    for (const { group, member } of successors) requestLead(context, group, member);
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
