/**
 * Turns the options of a cluster into its configuration: validates them, fills in the defaults and derives every size and
 * duration. All code that starts a cluster calls `resolveConfig`; nothing after it checks these values again.
 *
 * The configuration is plain data. The cluster sends it to worker threads, and stores it in the arena as JSON for the
 * clients and tools that attach. Every mistake in the options is a `ConfigError`.
 */
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import type { Durability, Order, Timing } from '../protocol/edges.js';
import type { Salt, Sizes } from '../protocol/layout.js';
import { Overlay, OverlayError, parseTree } from '../protocol/overlay.js';
import {
  isForMachines,
  type Machines,
  machineNames,
  resolveMachines,
  resolveMembers,
} from './machines.js';
import { ConfigError } from './mistakes.js';
import { type ClusterOptions, type MemoryKind, OPTIONS } from './options.js';
import { placementOf } from './placement.js';
import { serviceUrl } from './service-url.js';
import { resolveSizes } from './sizes.js';
import { placeOnThreads } from './threads.js';
import { resolveTiming } from './timing.js';
import { validOptions } from './validate.js';

/** Survives a round trip through JSON. */
export interface ClusterConfig extends Partial<Machines> {
  readonly memory: MemoryKind;
  readonly hosts: number;
  /** The host of each replica, at group * replicas + member. Its member 0 leads a group at first. */
  readonly placement: readonly number[];
  readonly parents: readonly number[];
  readonly sizes: Sizes;
  readonly timing: Timing;
  readonly order: Order;
  readonly durability: Durability;
  /** The absolute path of the journals. Present unless `durability` is `none`. */
  readonly journal?: string;
  /** How many bytes of a group's entries a host journals between two snapshots. */
  readonly snapshotBytes: number;
  readonly name?: string;
  /** The URL of the service's module. */
  readonly service?: string;
  /** An absolute path. */
  readonly trace?: string;
}

/** The configuration of a cluster across machines. */
export type MachinesConfig = ClusterConfig & Machines & { readonly memory: 'machines' };

export function isOnMachines(config: ClusterConfig): config is MachinesConfig {
  return config.memory === 'machines';
}

/**
 * @param salt known only to the hosts and clients of the cluster
 * @param directory the one that relative paths start from
 * @param cores how many cores the machine has
 */
export function resolveConfig(
  options: ClusterOptions,
  salt: Salt,
  directory: string = process.cwd(),
  cores: number = availableParallelism(),
): ClusterConfig {
  const given = validOptions(options);
  const { memory = OPTIONS.memory.default, name, service, trace } = given;
  const machines = isForMachines(given) ? resolveMachines(given, directory) : undefined;
  const hosts = machines?.machines.length ?? resolveHosts(given, memory, cores);
  return {
    memory,
    hosts,
    placement: resolvePlacement(given, hosts, cores, machines),
    ...machines,
    parents: resolveTree(given),
    sizes: resolveSizes(given, salt),
    timing: resolveTiming(given),
    order: given.order ?? OPTIONS.order.default,
    ...resolveDurability(given, directory),
    ...(name !== undefined && { name }),
    ...(service !== undefined && { service: serviceUrl(service, directory) }),
    ...(trace !== undefined && { trace: resolve(directory, trace) }),
  };
}

/** The folder of a host's journal; undefined with `durability: 'none'`. */
export function journalFolder(config: ClusterConfig, host: number): string | undefined {
  const { journal, machines } = config;
  return journal && join(journal, machines?.[host].name ?? `host-${host}`);
}

function resolveDurability(
  options: ClusterOptions,
  directory: string,
): Pick<ClusterConfig, 'durability' | 'journal' | 'snapshotBytes'> {
  const { durability = OPTIONS.durability.default, journal } = options;
  const snapshotBytes = options.snapshotBytes ?? OPTIONS.snapshotBytes.default;
  if (durability === 'none') {
    if (journal === undefined) return { durability, snapshotBytes };
    throw new ConfigError(['journal'], "journal is given, but durability is 'none'", {
      hint: "Add durability: 'always' or 'everySecond', or leave journal out.",
    });
  }
  if (journal !== undefined)
    return { durability, journal: resolve(directory, journal), snapshotBytes };
  throw new ConfigError(['journal'], `durability is '${durability}', but journal is missing`, {
    hint: 'Give the directory for the journals of the hosts, on a disk that keeps its data: "journal: DIRECTORY".',
  });
}

/** How many threads or processes. */
function resolveHosts(options: ClusterOptions, memory: MemoryKind, cores: number): number {
  const { groups, replicas = OPTIONS.replicas.default, hosts } = options;
  if (typeof hosts === 'number') return checkHosts(hosts, groups, replicas);
  if (memory === 'processes') return replicas;
  const most = Math.min(cores - 1, groups * replicas);
  return most < replicas ? Math.max(1, most) : most - (most % replicas);
}

function checkHosts(hosts: number, groups: number, replicas: number): number {
  // With more hosts than replicas in the cluster, some would run none.
  const most = groups * replicas;
  if (hosts < replicas || (hosts % replicas === 0 && hosts <= most)) return hosts;
  throw new ConfigError(
    ['hosts'],
    most === replicas
      ? `hosts must be 1 to ${replicas}, the number of replicas, not ${hosts}`
      : `hosts must be 1 to ${replicas}, or a multiple of replicas up to ${most}, not ${hosts}`,
    {
      hint: 'Every host then runs one member of each of its groups, and a crash costs no group two.',
    },
  );
}

function resolvePlacement(
  options: ClusterOptions,
  hosts: number,
  cores: number,
  machines: Machines | undefined,
): number[] {
  const { groups, replicas = OPTIONS.replicas.default, leaders, members } = options;
  if (machines === undefined) {
    // With a core for each host and one for clients. Otherwise messages would wait for hosts that wait for a core.
    const isFast = hosts >= replicas && hosts < cores;
    return placementOf({ groups, replicas, hosts }, leaders ?? (isFast ? 'spread' : 'together'));
  }
  const { threads } = machines;
  const names = machineNames(machines);
  const place = (placement: readonly number[]): number[] =>
    placeOnThreads(placement, names, { replicas, threads });
  if (members === undefined) {
    const shape = { groups, replicas, hosts: names.length };
    return place(placementOf(shape, leaders ?? 'spread'));
  }
  if (leaders === undefined) return place(resolveMembers(members, names, { groups, replicas }));
  throw new ConfigError(['leaders'], 'leaders and members both say which hosts lead', {
    hint: 'Leave leaders out: the first host in the list of each group leads it.',
  });
}

/** The parent of each group. */
function resolveTree({ groups, tree = OPTIONS.tree.default }: ClusterOptions): readonly number[] {
  try {
    const given = typeof tree === 'string' ? parseTree(tree, groups) : [...tree];
    const { parents } = new Overlay(given);
    if (parents.length === groups) return parents;
    throw new OverlayError(`tree has ${parents.length} groups, but groups is ${groups}`);
  } catch (error) {
    if (!(error instanceof OverlayError)) throw error;
    const { code, message } = error;
    throw new ConfigError(['tree'], message, { code, cause: error });
  }
}
