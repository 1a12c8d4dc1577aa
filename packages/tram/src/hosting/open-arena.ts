/**
 * Opens the arena of a running cluster. The name of a cluster of processes is that of a file, which all processes of the
 * user find. The name of a cluster of threads is known only in the thread that has started it.
 */
import { TramError } from '../errors.js';
import type { Arena } from '../memory/arena.js';
import { arenaPath, openArenaFile } from '../memory/processes/arena-file.js';
import { threadsArena } from '../memory/threads.js';

/** By name: the clusters of threads that this thread has started. */
const ownThreads = new Map<string, SharedArrayBuffer>();

/** Makes the memory of a cluster of threads known by a name. @throws TRAM_EXISTS @returns what forgets it */
export function nameThreads(name: string, buffer: SharedArrayBuffer): () => void {
  if (ownThreads.has(name)) {
    throw new TramError('TRAM_EXISTS', `a cluster of threads "${name}" runs in this process`);
  }
  ownThreads.set(name, buffer);
  return () => void ownThreads.delete(name);
}

/** @param address  the shared memory itself, or the name of the cluster, or the path of the file that holds its memory */
export function openArena(address: ArrayBufferLike | string): Arena {
  if (typeof address !== 'string') return threadsArena(address as SharedArrayBuffer);
  const buffer = threadsNamed(address);
  return buffer === undefined ? openArenaFile(arenaPath(address)) : threadsArena(buffer);
}

/** The memory of the cluster of threads that this thread has started by that name, if there is one. */
export function threadsNamed(name: string): SharedArrayBuffer | undefined {
  return ownThreads.get(name);
}
