/** Opens the arena of a running cluster. */
import type { Arena } from '../memory/arena.js';
import { arenaPath, openArenaFile } from '../memory/processes/arena-file.js';
import { threadsArena } from '../memory/threads.js';

/** @param address  the shared memory itself, or the name or path of the file that holds it */
export function openArena(address: ArrayBufferLike | string): Arena {
  return typeof address === 'string'
    ? openArenaFile(arenaPath(address))
    : threadsArena(address as SharedArrayBuffer);
}
