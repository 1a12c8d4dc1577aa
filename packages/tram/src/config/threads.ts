/**
 * Spreads the members that a machine runs over its threads. Each thread is a host of its own.
 *
 * - The groups that a machine leads, and all its groups, are divided evenly among its threads.
 * - As far as that allows, all members of a group are on the threads with the same number. A leader then has its followers
 *   behind few connections, and what it sends for several groups goes in one batch.
 */
import type { Machine } from './machines.js';
import { ConfigError } from './mistakes.js';

interface Shape {
  readonly replicas: number;
  readonly threads: number;
}

/** What of a configuration says which machine leads which groups. */
interface UsedBy {
  readonly placement: readonly number[];
  readonly machines: readonly Machine[];
  readonly sizes: { readonly replicas: number };
}

/** Names of machines do not contain it. */
const SEPARATOR = '#';

/** The hosts of the machines: one for each thread, at the ports that follow that of the machine. */
export function threadsOf(machines: readonly Machine[], threads: number): Machine[] {
  if (threads === 1) return [...machines];
  return machines.flatMap(({ name, http, address, port }) =>
    Array.from({ length: threads }, (_, thread) => ({
      // The first one has the name of the machine. So it finds what the machine has left with another number of threads.
      name: thread === 0 ? name : `${name}${SEPARATOR}${thread}`,
      machine: name,
      address,
      port: port + thread,
      ...(thread === 0 && http !== undefined && { http }),
    })),
  );
}

/**
 * @param placement  the machine of each replica, at group * replicas + member
 * @param names  of the machines
 * @returns the host of each replica
 */
export function placeOnThreads(
  placement: readonly number[],
  names: readonly string[],
  shape: Shape,
): number[] {
  const { threads } = shape;
  if (threads === 1) return [...placement];
  const preferred = ranksAmongLed(placement, shape.replicas);
  const hosts = [...placement];
  for (const [machine, name] of names.entries()) {
    const replicas = [...placement.keys()].filter((replica) => placement[replica] === machine);
    if (replicas.length < threads) throw tooMany(threads, name, replicas.length);
    const places = new Places(replicas.length, threads);
    const isLed = (replica: number): boolean => replica % shape.replicas === 0;
    // First those that it leads. Their ranks are 0, 1, 2 …, so each gets the thread that it prefers.
    const inOrder = [...replicas.filter(isLed), ...replicas.filter((replica) => !isLed(replica))];
    for (const replica of inOrder) {
      const rank = preferred[Math.floor(replica / shape.replicas)];
      hosts[replica] = machine * threads + places.take(rank % threads);
    }
  }
  return hosts;
}

/**
 * How many threads of a machine with so many cores would be of use: a core is left to the kernel and to other programs, and
 * a thread that leads no group has little to do.
 */
export function usefulThreads(
  { placement, machines, sizes }: UsedBy,
  name: string,
  cores: number,
): number {
  const led = placement.filter(
    (host, replica) => replica % sizes.replicas === 0 && machines[host].machine === name,
  ).length;
  return Math.max(1, Math.min(cores - 1, led));
}

/** By group: its place among the groups that the same machine leads. */
function ranksAmongLed(placement: readonly number[], replicas: number): number[] {
  const leaders = placement.filter((_, replica) => replica % replicas === 0);
  return leaders.map(
    (leader, group) => leaders.slice(0, group).filter((other) => other === leader).length,
  );
}

/** How many members the threads of a machine have got. In the end, no two of them differ by more than one. */
class Places {
  private readonly counts: number[];
  private readonly least: number;
  /** So many threads may still get one member more than the others. */
  private extra: number;

  constructor(members: number, threads: number) {
    this.counts = new Array<number>(threads).fill(0);
    this.least = Math.floor(members / threads);
    this.extra = members % threads;
  }

  /** @returns the preferred thread, or if that is full the one with the fewest members */
  take(preferred: number): number {
    const { counts, least } = this;
    const isFull = counts[preferred] >= least + (this.extra > 0 ? 1 : 0);
    const thread = isFull ? counts.indexOf(Math.min(...counts)) : preferred;
    if (++counts[thread] > least) this.extra--;
    return thread;
  }
}

function tooMany(threads: number, machine: string, groups: number): ConfigError {
  return new ConfigError(
    ['threads'],
    `threads is ${threads}, but ${machine} has members of only ${groups} ${groups === 1 ? 'group' : 'groups'}`,
    { hint: 'A group runs on one thread of each of its machines: more threads need more groups.' },
  );
}
