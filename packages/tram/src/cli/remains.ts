/**
 * What a cluster of processes has left: for `tram up`, which goes on with it or makes way for a new cluster, and for
 * `tram down`, which removes it.
 */
import { differingOptions } from '../config/differences.js';
import type { ClusterOptions } from '../config/options.js';
import { TramError } from '../errors.js';
import { hostProcesses, starterProcesses } from '../hosting/host-processes.js';
import { pause, starterLock } from '../hosting/oversight.js';
import { removeStateDirectory } from '../hosting/state-directory.js';
import { clearAway } from '../hosting/take-down.js';
import { ARENA, ARENA_STATE } from '../memory/arena.js';
import { arenaPath, removeArenaFile } from '../memory/processes/arena-file.js';
import { type Attached, withCluster } from './attached.js';
import { commandFor } from './cluster-name.js';

/**
 * - `nothing`: there is no memory of a cluster of that name.
 * - `no starter`: its memory is there, and no process supervises its hosts, whether they run or not.
 * - `hosts down`: its starter runs, and some hosts or all have ended.
 */
export type Remains = 'nothing' | 'no starter' | 'hosts down';

/** A killed process has ended for /proc before the kernel has released the locks of its last threads. */
const RELEASE_MS = 1000;
const RELEASE_LOOK_MS = 10;
/** How long a start waits for another process that creates or removes the same file. */
const MAKE_WAY_MS = 1000;
const MAKE_WAY_LOOK_MS = 100;

/**
 * Removes the memory of a cluster that was ended and has not been removed.
 * @param given  the options that the user gives, to which the cluster must conform if it is to go on
 * @throws TRAM_EXISTS if the cluster is up, or has other options
 */
export async function findRemains(name: string, given: Partial<ClusterOptions>): Promise<Remains> {
  const deadlineMs = Date.now() + MAKE_WAY_MS;
  for (;;) {
    const remains = await look(name, given, Date.now() > deadlineMs);
    if (remains === 'nothing') requireNoOrphans(name, arenaPath(name));
    if (remains !== 'changing') return remains;
    await pause(MAKE_WAY_LOOK_MS);
  }
}

/**
 * One attempt. Another process may start a cluster of that name, or remove its remains, at the same time: then this
 * returns `changing`, and the next attempt finds out what has become of it.
 * @param isLast  throws an error instead of that
 */
async function look(
  name: string,
  given: Partial<ClusterOptions>,
  isLast: boolean,
): Promise<Remains | 'changing'> {
  try {
    return await withCluster({ name }, async (cluster) => {
      await untilReleased(cluster);
      if (!wasEnded(cluster)) return remainsOf(cluster, given);
      await requireDead(cluster);
      if (clearAway(cluster)) {
        process.stderr.write(`removed the memory of cluster "${name}": it had been ended\n`);
        return 'nothing';
      }
      if (!isLast) return 'changing';
      throw new TramError('TRAM_EXISTS', `another process is removing cluster "${name}"`, {
        hint: 'Try again in a moment.',
        retry: 'safe',
      });
    });
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    if (error.code === 'TRAM_NOT_FOUND') return 'nothing';
    // Its starter has not written the header yet.
    if (error.code === 'TRAM_CORRUPT' && error.retry === 'safe' && !isLast) return 'changing';
    throw error;
  }
}

/** Was it asked to end, or has the process ended with which it ends? */
function wasEnded(cluster: Attached): boolean {
  const { words } = cluster.arena;
  const isBound = words[ARENA.isDetached] === 0;
  const isClosing = Atomics.load(words, ARENA.state) === ARENA_STATE.closing;
  return isClosing || (isBound && !hasStarter(cluster));
}

function remainsOf(cluster: Attached, given: Partial<ClusterOptions>): Remains {
  const { arena, context } = cluster;
  const remains = hasStarter(cluster) ? 'hosts down' : 'no starter';
  const isStarting = Atomics.load(arena.words, ARENA.state) === ARENA_STATE.starting;
  const areUp = hostsOf(cluster).every((host) => arena.isHostLocked(host));
  if (remains === 'hosts down' && (areUp || isStarting)) throw isUp(cluster);
  const others = differingOptions(given, context.config);
  if (others.length === 0) return remains;
  const { name } = cluster;
  throw new TramError(
    'TRAM_EXISTS',
    `cluster "${name}" has left its state, and has other options than you ask for: ${others.join(', ')}`,
    {
      hint:
        `To go on with its state, leave these options out: \`${commandFor({ name }, 'up')}\`. ` +
        `To end it and lose its state: \`${commandFor({ name }, 'down')}\`.`,
    },
  );
}

function hostsOf({ context }: Attached): number[] {
  return Array.from({ length: context.map.hosts }, (_, host) => host);
}

function hasStarter({ arena, context }: Attached): boolean {
  return arena.isHostLocked(starterLock(context.config));
}

/** Waits until the locks of processes that have ended are free. */
async function untilReleased(cluster: Attached): Promise<void> {
  const { path, arena } = cluster;
  const deadlineMs = Date.now() + RELEASE_MS;
  const isReleased = (): boolean => {
    const running = new Set(hostProcesses(path).map(({ host }) => host));
    const isFree = (host: number): boolean => running.has(host) || !arena.isHostLocked(host);
    const isStarterKnown = starterProcesses(path).length > 0 || !hasStarter(cluster);
    return isStarterKnown && hostsOf(cluster).every(isFree);
  };
  while (!isReleased() && Date.now() < deadlineMs) await pause(RELEASE_LOOK_MS);
}

/** @throws TRAM_EXISTS if a process runs the cluster or is starting it */
export async function requireDead(cluster: Attached): Promise<void> {
  await untilReleased(cluster);
  const isHeld = hostsOf(cluster).some((host) => cluster.arena.isHostLocked(host));
  if (isHeld || hasStarter(cluster)) throw isUp(cluster);
}

function isUp({ name, path }: Attached): TramError {
  const pids = hostProcesses(path).map(({ pid }) => pid);
  const starters = starterProcesses(path);
  const others =
    starters.length > 0
      ? `its hosts are down, and its starter is process ${starters.join(', ')}`
      : 'the process that started it runs, or its hosts run in another container';
  const who = pids.length === 0 ? others : `its hosts are the processes ${pids.join(', ')}`;
  return new TramError('TRAM_EXISTS', `cluster "${name}" is up: ${who}`, {
    hint: `Take it down with \`${commandFor({ name }, 'down')}\`, or choose another --name.`,
  });
}

/** @throws TRAM_EXISTS if a cluster runs whose file somebody has removed */
function requireNoOrphans(name: string, path: string): void {
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
