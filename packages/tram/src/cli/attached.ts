/** A running cluster, on this machine or on others, seen from the process of a command. */
import { TramError } from '../errors.js';
import {
  attachToMachines,
  attachToProcesses,
  locateByFile,
  type MachinesLocation,
  type ProcessesAttachment,
  type ProcessesLocation,
} from '../hosting/attachment.js';
import type { ClusterContext } from '../hosting/cluster-context.js';
import { type ArenaFile, arenaPath } from '../memory/processes/arena-file.js';
import { commandFor, type Which } from './cluster-name.js';

/** A cluster that the command can read, and whose replicas it can ask for something. */
export interface Seen extends Which {
  readonly context: ClusterContext;
  /** The file of the cluster's memory, if all of it is on this machine. */
  readonly path?: string;
  /** From now on the deliveries of these groups can be read. */
  follow(groups: readonly number[]): Promise<void>;
}

/** A cluster of processes on this machine: the command maps its memory. */
export interface Attached extends Seen {
  readonly path: string;
  readonly arena: ArenaFile;
}

/** Where the cluster runs that the user means. */
export async function locate({
  name,
  config,
}: Which): Promise<ProcessesLocation | MachinesLocation> {
  return config === undefined ? { memory: 'processes', name } : locateByFile(config);
}

/** Runs `use` on the cluster that the user names. @throws TRAM_NOT_FOUND, TRAM_UNREACHABLE */
export async function withSeen<Result>(
  which: Which,
  use: (cluster: Seen) => Promise<Result>,
): Promise<Result> {
  const location = await locate(which);
  if (location.memory === 'processes') return withCluster({ ...which, name: location.name }, use);
  const attachment = await attachToMachines(location.config);
  const { context, config } = attachment;
  try {
    return await use({
      name: context.config.name ?? 'cluster',
      config,
      context,
      follow: async (groups) => {
        for (const group of groups) await attachment.follow(group);
      },
    });
  } finally {
    await attachment.close();
  }
}

/** The command that starts the host of a replica again. */
export function restartCommand(cluster: Seen, replica: string, host: number): string {
  const machine = cluster.context.config.machines?.[host];
  return commandFor(
    cluster,
    machine === undefined ? `restart ${replica}` : `host ${machine.machine}`,
  );
}

/** Runs `use` on a cluster of processes. @throws TRAM_NOT_FOUND */
export async function withCluster<Result>(
  which: Which,
  use: (cluster: Attached) => Promise<Result>,
): Promise<Result> {
  const { arena, context } = attachByName(which);
  try {
    const { path } = arena;
    return await use({ ...which, path, arena, context, follow: async () => undefined });
  } finally {
    arena.close();
  }
}

/** @throws TRAM_NOT_FOUND, TRAM_CORRUPT, TRAM_VERSION_MISMATCH */
export function attachByName(which: Which): ProcessesAttachment {
  try {
    return attachToProcesses(which.name);
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    const { code, message, retry } = error;
    if (code === 'TRAM_CORRUPT' || code === 'TRAM_VERSION_MISMATCH') {
      const remove = `If you do not need it, remove it with \`${commandFor(which, 'down --force')}\`.`;
      const upgrade =
        'Use the version of TRAM that started it; docs/upgrading.md explains upgrades.';
      throw new TramError(code, message, {
        hint: code === 'TRAM_CORRUPT' ? remove : `${upgrade} ${remove}`,
        cause: error,
        retry,
      });
    }
    if (code !== 'TRAM_NOT_FOUND') throw error;
    const other = which.config === undefined ? ', or choose another with --name' : '';
    const path = arenaPath(which.name);
    throw new TramError('TRAM_NOT_FOUND', `there is no cluster "${which.name}" (no file ${path})`, {
      hint: `Start it with \`${commandFor(which, 'up')}\`${other}.`,
      cause: error,
    });
  }
}
