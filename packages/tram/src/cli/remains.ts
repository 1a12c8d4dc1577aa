/** Checks that a cluster has ended, and removes what it has left behind: for `tram up` and `tram down`. */
import { TramError } from '../errors.js';
import { hostProcesses } from '../hosting/host-processes.js';
import { starterLock } from '../hosting/oversight.js';
import { removeArenaFile } from '../memory/processes/arena-file.js';
import type { Attached } from './attached.js';
import { commandFor, removeStateDirectory } from './cluster-name.js';

/** @throws TRAM_EXISTS if a process runs the cluster or is starting it */
export function requireDead({ name, path, arena, context }: Attached): void {
  const pids = hostProcesses(path).map(({ pid }) => pid);
  const hosts = Array.from({ length: context.map.hosts }, (_, host) => host);
  const isHeld = [...hosts, starterLock(context.config)].some((lock) => arena.isHostLocked(lock));
  if (pids.length === 0 && !isHeld) return;
  const who =
    pids.length === 0
      ? 'another process is starting it, or its hosts run in another container'
      : `its hosts are the processes ${pids.join(', ')}`;
  throw new TramError('TRAM_EXISTS', `cluster "${name}" is up: ${who}`, {
    hint: `Take it down with \`${commandFor({ name }, 'down')}\`, or choose another --name.`,
  });
}

/** @throws TRAM_EXISTS if a cluster runs whose file somebody has removed */
export function requireNoOrphans(name: string, path: string): void {
  const pids = hostProcesses(path).map(({ pid }) => pid);
  if (pids.length === 0) return;
  throw new TramError(
    'TRAM_EXISTS',
    `hosts of a cluster "${name}" run as processes ${pids.join(', ')}, but the file of its memory, ${path}, is missing`,
    { hint: `End them with \`${commandFor({ name }, 'down --force')}\`.` },
  );
}

/**
 * Remove the memory of a cluster and what its hosts printed. A history stays.
 * @returns false if the memory is by now that of another cluster, or if another process removes it
 */
export function clearAway({ name, arena }: Pick<Attached, 'name' | 'arena'>): boolean {
  // In this order: a new cluster of that name, which has the same directory, can't be started before the file is gone.
  return arena.removeFile(() => removeStateDirectory(name));
}

/** The same for a file that can't be read, without regard to others. */
export function clearAwayUnread(name: string, path: string): void {
  removeArenaFile(path);
  removeStateDirectory(name);
}
