/** A running cluster, on this machine or on others, seen from the process of a command. */
import { ConfigError } from '../config/mistakes.js';
import { TramError } from '../errors.js';
import { ClusterContext } from '../hosting/cluster-context.js';
import { DEFAULT_NAME } from '../hosting/state-directory.js';
import { type ArenaFile, arenaPath, openArenaFile } from '../memory/processes/arena-file.js';
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

/** Where a cluster runs: as processes on this machine, or on machines that a file describes. */
export type Location =
  | { readonly memory: 'processes'; readonly name: string }
  | { readonly memory: 'machines'; readonly config: string };

/** Finds out which kind of cluster the user means. A file without `memory` means processes, as for `tram up`. */
export async function locate({ name, config }: Which): Promise<Location> {
  if (config === undefined) return { memory: 'processes', name };
  const { readConfigFile } = await import('../config/file.js');
  const { memory = 'processes', name: ownName = DEFAULT_NAME } = await readConfigFile(config);
  if (memory === 'machines') return { memory, config };
  if (memory === 'processes') return { memory, name: ownName };
  throw new ConfigError(
    ['memory'],
    `${config} asks for memory: ${memory}, and commands can't reach such a cluster`,
    { hint: 'Commands reach clusters with memory: processes and memory: machines.' },
  );
}

/** Runs `use` on the cluster that the user names. @throws TRAM_NOT_FOUND, TRAM_UNREACHABLE */
export async function withSeen<Result>(
  which: Which,
  use: (cluster: Seen) => Promise<Result>,
): Promise<Result> {
  const location = await locate(which);
  if (location.memory === 'processes') return withCluster({ ...which, name: location.name }, use);
  const { config } = location;
  const { Mirror } = await import('../hosting/machines/mirror.js');
  const mirror = await Mirror.open(config);
  const { context } = mirror;
  try {
    return await use({
      name: context.config.name ?? 'cluster',
      config,
      context,
      follow: (groups) => mirror.follow(groups),
    });
  } finally {
    await mirror.close();
  }
}

/** The command that starts the host of a replica again. */
export function restartCommand(cluster: Seen, replica: string, host: number): string {
  const machine = cluster.context.config.machines?.[host];
  return commandFor(cluster, machine === undefined ? `restart ${replica}` : `host ${machine.name}`);
}

/** Runs `use` on a cluster of processes. @throws TRAM_NOT_FOUND */
export async function withCluster<Result>(
  which: Which,
  use: (cluster: Attached) => Promise<Result>,
): Promise<Result> {
  const path = arenaPath(which.name);
  const arena = openNamed(which, path);
  try {
    const context = ClusterContext.attach(arena);
    return await use({ ...which, path, arena, context, follow: async () => undefined });
  } finally {
    arena.close();
  }
}

function openNamed(which: Which, path: string): ArenaFile {
  try {
    return openArenaFile(path);
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    const { code, message, retry } = error;
    if (code === 'TRAM_CORRUPT' || code === 'TRAM_VERSION_MISMATCH') {
      throw new TramError(code, message, {
        hint: `If you do not need it, remove it with \`${commandFor(which, 'down --force')}\`.`,
        cause: error,
        retry,
      });
    }
    if (code !== 'TRAM_NOT_FOUND') throw error;
    const other = which.config === undefined ? ', or choose another with --name' : '';
    throw new TramError('TRAM_NOT_FOUND', `there is no cluster "${which.name}" (no file ${path})`, {
      hint: `Start it with \`${commandFor(which, 'up')}\`${other}.`,
      cause: error,
    });
  }
}
