/** A cluster that somebody has started, seen from the process of a command. */
import { TramError } from '../errors.js';
import { Commons } from '../hosting/commons.js';
import { type ArenaFile, arenaPath, openArenaFile } from '../memory/processes.js';
import { commandFor } from './cluster-name.js';

export interface Attached {
  readonly name: string;
  readonly path: string;
  readonly arena: ArenaFile;
  readonly commons: Commons;
}

/** Run `use` on a cluster. @throws TRAM_NOT_FOUND */
export async function withCluster<Result>(
  name: string,
  use: (cluster: Attached) => Promise<Result>,
): Promise<Result> {
  const path = arenaPath(name);
  const arena = openNamed(name, path);
  try {
    return await use({ name, path, arena, commons: Commons.attach(arena) });
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
        hint: `If it is nothing that you need, remove it with \`${commandFor(name, 'down --force')}\`.`,
        cause: error,
      });
    }
    if (error.code !== 'TRAM_NOT_FOUND') throw error;
    throw new TramError('TRAM_NOT_FOUND', `there is no cluster "${name}" (no file ${path})`, {
      hint: `Start it with \`${commandFor(name, 'up')}\`, or choose another with --name.`,
      cause: error,
    });
  }
}
