/** Checks that a cluster has ended, and removes what it has left behind: for `tram up` and `tram down`. */
import { TramError } from '../errors.js';
import { hostProcesses, starterProcesses } from '../hosting/host-processes.js';
import { pause, starterLock } from '../hosting/oversight.js';
import { removeStateDirectory } from '../hosting/state-directory.js';
import { removeArenaFile } from '../memory/processes/arena-file.js';
import type { Attached } from './attached.js';
import { commandFor } from './cluster-name.js';

/** A killed process has ended for /proc before the kernel has released the locks of its last threads. */
const RELEASE_MS = 1000;
const LOOK_MS = 10;

/** @throws TRAM_EXISTS if a process runs the cluster or is starting it */
export async function requireDead({ name, path, arena, context }: Attached): Promise<void> {
  const hosts = Array.from({ length: context.map.hosts }, (_, host) => host);
  const locks = [...hosts, starterLock(context.config)];
  const isHeld = (): boolean => locks.some((lock) => arena.isHostLocked(lock));
  const pids = hostProcesses(path).map(({ pid }) => pid);
  const starters = starterProcesses(path);
  for (let waitedMs = 0; pids.length === 0 && waitedMs < RELEASE_MS; waitedMs += LOOK_MS) {
    if (!isHeld()) return;
    await pause(LOOK_MS);
  }
  const others =
    starters.length > 0
      ? `its hosts are down, and its starter is process ${starters.join(', ')}`
      : 'the process that started it runs, or its hosts run in another container';
  const who = pids.length === 0 ? others : `its hosts are the processes ${pids.join(', ')}`;
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

/** Removes a file that can't be read, and what its hosts printed, without regard to others. */
export function clearAwayUnread(name: string, path: string): void {
  removeArenaFile(path);
  removeStateDirectory(name);
}
