/** A cluster that somebody has started, here or on other machines, seen from the process of a command. */
import { TramError } from '../errors.js';
import { ClusterContext } from '../hosting/cluster-context.js';
import { type ArenaFile, arenaPath, openArenaFile } from '../memory/processes/arena-file.js';
import { commandFor, type Which } from './cluster-name.js';

/** What can be done with any cluster: look at it, and ask. */
export interface Seen extends Which {
  readonly context: ClusterContext;
  /** Of its memory, if that is here. */
  readonly path?: string;
  /** From now on what these groups deliver can be read along. */
  follow(groups: readonly number[]): Promise<void>;
}

/** One whose memory is here. */
export interface Attached extends Seen {
  readonly path: string;
  readonly arena: ArenaFile;
}

/** Run `use` on the cluster that was asked for. @throws TRAM_NOT_FOUND, TRAM_UNREACHABLE */
export async function withSeen<Result>(
  { name, config }: Which,
  use: (cluster: Seen) => Promise<Result>,
): Promise<Result> {
  if (config === undefined) return withCluster(name, use);
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

/** The command that brings back the host of a replica. */
export function restartCommand(cluster: Seen, replica: string, host: number): string {
  const machine = cluster.context.config.machines?.[host];
  return commandFor(cluster, machine === undefined ? `restart ${replica}` : `host ${machine.name}`);
}

/** Run `use` on a cluster. @throws TRAM_NOT_FOUND */
export async function withCluster<Result>(
  name: string,
  use: (cluster: Attached) => Promise<Result>,
): Promise<Result> {
  const path = arenaPath(name);
  const arena = openNamed(name, path);
  try {
    const context = ClusterContext.attach(arena);
    return await use({ name, path, arena, context, follow: async () => undefined });
  } finally {
    arena.close();
  }
}

function openNamed(name: string, path: string): ArenaFile {
  try {
    return openArenaFile(path);
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    if (error.code === 'TRAM_CORRUPT' || error.code === 'TRAM_VERSION_MISMATCH') {
      throw new TramError(error.code, error.message, {
        hint: `If you do not need it, remove it with \`${commandFor({ name }, 'down --force')}\`.`,
        cause: error,
        retry: error.retry,
      });
    }
    if (error.code !== 'TRAM_NOT_FOUND') throw error;
    throw new TramError('TRAM_NOT_FOUND', `there is no cluster "${name}" (no file ${path})`, {
      hint: `Start it with \`${commandFor({ name }, 'up')}\`, or choose another with --name.`,
      cause: error,
    });
  }
}
