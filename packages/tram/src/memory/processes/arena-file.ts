/**
 * The memory kind `processes`: the arena is a file that every process and every thread maps. It is in /dev/shm unless the
 * user has chosen another directory. Clusters and hosts create, open and remove it.
 *
 * An access to mapped memory that has no space behind it is a bus error, which ends the process. So all space is reserved
 * before the file is mapped, and never more is mapped than the file has. A lack of space is then an exception.
 *
 * A host holds a lock on the file while it runs. The kernel releases the lock when the process ends, however it ends, and
 * keeps it while the process is only stopped. So others learn of a crash, and do not mistake slowness for one. They learn
 * of it even earlier by its lifeline (`lifelines.ts`).
 */
import {
  closeSync,
  existsSync,
  constants as fileConstants,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  statfsSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { TramError } from '../../errors.js';
import { ARENA, ARENA_MAGIC, ARENA_VERSION, type Arena, type Parking } from '../arena.js';
import { holdLifeline, Lifelines } from './lifelines.js';
import { MAPPING_BYTES_MAX, type Mapping, type Native, native, systemError } from './native.js';

const SHARED_MEMORY_DIRECTORY = '/dev/shm';
const MEBIBYTE = 2 ** 20;
const SMALLER = 'Use a smaller logBytes, or fewer clients.';
const PLAIN_NAME = /^[A-Za-z0-9._-]+$/;
const OWNER_ONLY = 0o600;
const HEADER_BYTES = ARENA.description * 4;
/** Replaces a closed descriptor, whose number the system may reuse for another file. */
const CLOSED = -1;
const OUT_OF_SPACE: ReadonlySet<number> = new Set([
  systemConstants.errno.ENOSPC,
  systemConstants.errno.EDQUOT,
  systemConstants.errno.ENOMEM,
]);
/** The byte whose lock a process holds while it removes the file. Hosts and clients lock the bytes of their numbers. */
const REMOVAL_LOCK = 0x7fffffff;
const PAGE_WORDS = 1024;
/** The header counts words in one word. */
const ARENA_BYTES_MAX = Math.min(MAPPING_BYTES_MAX, 0x7fffffff * 4);

export interface ArenaFile extends Arena {
  readonly path: string;
  /** The address of its first byte in this process. */
  readonly address: number;

  /**
   * Lock the host, so that no other process or thread runs it. The lock ends with `release`, with `close`, and with the
   * process or thread.
   * @param recordedPid  for the error message if the host is already running; 0 if it is not known
   */
  lockHost(host: number, recordedPid: number): HostLock;

  /**
   * Map all pages into this process, by reading one word of each. They exist already, but the first access of a process to a page
   * takes microseconds, and a new leader accesses hundreds for the first time.
   */
  touch(): void;

  /** Does any process or thread run this host? A process that is only stopped (SIGSTOP) does. */
  isHostLocked(host: number): boolean;

  /**
   * Hold a lifeline, for as long as this thread lives or until `close`. The caller has locked its host, and is the first
   * thread of its process.
   * @returns false if this system has none: then the lock has to do
   */
  holdLifeline(lifeline: number): boolean;

  /**
   * The lifelines of others.
   * @param parked  the word that the caller sleeps on
   */
  watchLifelines(lifelines: readonly number[], parked: number): Lifelines;

  /**
   * Remove the file, unless another file is at its path by now. Processes that have this arena open keep it.
   * @param before  called before the removal, while no other process can remove the file
   * @returns whether it has removed the file; false also if another process is removing it right now
   */
  removeFile(before?: () => void): boolean;

  /**
   * Check that the file is still at its path, with the lock of a host held. No process removes it after that by
   * `removeUnlocked`.
   * @throws TRAM_NOT_FOUND
   */
  requireAtPath(): void;

  /** Is the file still at its path, and does no other process remove it? */
  isAtPath(): boolean;

  /** The file stays. `words` can still be accessed, but is no longer shared. */
  close(): void;
}

export interface HostLock {
  readonly host: number;
  release(): void;
}

/** The path of a cluster's arena. @param nameOrPath  the name of the cluster, or the path itself */
export function arenaPath(nameOrPath: string): string {
  return PLAIN_NAME.test(nameOrPath)
    ? join(SHARED_MEMORY_DIRECTORY, `tram-${nameOrPath}`)
    : nameOrPath;
}

/** How a command names the cluster whose arena is there; empty if no name leads there. */
function nameFlag(path: string): string {
  const prefix = join(SHARED_MEMORY_DIRECTORY, 'tram-');
  const name = path.startsWith(prefix) ? path.slice(prefix.length) : '';
  return PLAIN_NAME.test(name) ? ` --name ${name}` : '';
}

/** Not part of any name, so that it is not the path of another arena. */
const LEFT = '~left-';

/** The path of the snapshot that a replica leaves when its host stops; `*`: of all of them. They go with the arena. */
export function leftSnapshotPath(path: string, participant: number | '*'): string {
  return `${path}${LEFT}${participant}`;
}

/** A range of words of an arena. */
export interface Part {
  readonly from: number;
  readonly words: number;
}

/**
 * Create an arena, all zero. Others can open it once the caller has written its header, the magic word last.
 * @param words  the size
 * @param parts  the ranges that will be used: the rest takes no space
 */
export function createArenaFile(
  path: string,
  words: number,
  parts: readonly Part[] = [{ from: 0, words }],
): ArenaFile {
  const system = native();
  const bytes = words * 4;
  checkMappable(path, bytes);
  const descriptor = createFile(path);
  try {
    ftruncateSync(descriptor, bytes);
    reserve(system, descriptor, path, parts);
    return mapArena(system, descriptor, path, bytes);
  } catch (error) {
    // Another process may have removed the unfinished file already, and created its own.
    const isRemover = system.tryLock(descriptor, REMOVAL_LOCK);
    if (isRemover && isAtPath(descriptor, path)) removeArenaFile(path);
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

export function openArenaFile(path: string): ArenaFile {
  const system = native();
  const descriptor = openFile(path);
  try {
    const bytes = arenaBytes(descriptor, path);
    const arena = mapArena(system, descriptor, path, bytes);
    try {
      checkHeader(arena.words, path);
    } catch (error) {
      arena.close();
      throw error;
    }
    return arena;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Remove the memory of a host that does not run, finished or not.
 * @throws TRAM_HOST_RUNNING if a process has locked the host, or another one is removing the file
 */
export function removeUnlocked(path: string, host: number): void {
  const system = native();
  const descriptor = openFile(path);
  try {
    // A host takes its lock first and looks at the removal lock second, so one of the two sees the other.
    const isRemover = system.tryLock(descriptor, REMOVAL_LOCK);
    if (!isRemover || system.isLockedElsewhere(descriptor, host)) throw hostRunning(path, host, 0);
    if (isAtPath(descriptor, path)) removeArenaFile(path);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Remove the file at the path, and the snapshots that were left for it, without any check (`ArenaFile.removeFile` has
 * them). Processes that have it open keep it. Does nothing if there is no such file.
 */
export function removeArenaFile(path: string): void {
  // The arena last: as long as it is there, the others are found again.
  for (const file of [...leftBeside(path), path]) removeIfThere(file);
}

function leftBeside(path: string): string[] {
  const directory = dirname(path);
  const prefix = basename(path) + LEFT;
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory).filter((name) => name.startsWith(prefix));
  return names.map((name) => join(directory, name));
}

/** Remove a file. Does nothing if there is none. */
export function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw fileError(`Can't remove ${path}`, cause);
  }
}

/** Sleeps and wakes across processes, on words of a mapped file. */
function futexParking(system: Native, mapping: Mapping): Parking {
  return {
    wait: (at, expected, timeoutUs) =>
      system.futexWait(mapping.address + at * 4, expected, timeoutUs),
    wake: (at) => system.futexWake(mapping.address + at * 4),
  };
}

class MappedArena implements ArenaFile {
  readonly words: Int32Array;
  readonly address: number;
  readonly parking: Parking;
  /** The locks of this descriptor, which the kernel does not report to it. */
  private readonly held = new Set<number>();
  private releaseLifeline: (() => void) | undefined;

  constructor(
    private readonly system: Native,
    readonly path: string,
    private readonly mapping: Mapping,
    private lockDescriptor: number,
  ) {
    this.words = new Int32Array(mapping.buffer);
    this.address = mapping.address;
    this.parking = futexParking(system, mapping);
  }

  lockHost(host: number, recordedPid: number): HostLock {
    if (this.held.has(host) || !this.system.tryLock(this.lockDescriptor, host)) {
      throw hostRunning(this.path, host, recordedPid);
    }
    this.held.add(host);
    return { host, release: () => this.release(host) };
  }

  touch(): void {
    const { words } = this;
    for (let at = 0; at < words.length; at += PAGE_WORDS) Atomics.load(words, at);
  }

  isHostLocked(host: number): boolean {
    return this.held.has(host) || this.system.isLockedElsewhere(this.lockDescriptor, host);
  }

  holdLifeline(lifeline: number): boolean {
    const { system, words, address } = this;
    this.releaseLifeline = holdLifeline(system, words, address, lifeline);
    return this.releaseLifeline !== undefined;
  }

  watchLifelines(lifelines: readonly number[], parked: number): Lifelines {
    const { system, words, address, parking } = this;
    return new Lifelines(system, words, address, lifelines, parked, parking);
  }

  /**
   * No process can create a file at a path that is in use, and none removes this file without the lock. So the file that
   * is compared is also the one that is removed.
   */
  removeFile(before: () => void = () => undefined): boolean {
    if (!this.system.tryLock(this.lockDescriptor, REMOVAL_LOCK)) return false;
    try {
      if (!isAtPath(this.lockDescriptor, this.path)) return false;
      before();
      removeArenaFile(this.path);
      return true;
    } finally {
      this.system.unlock(this.lockDescriptor, REMOVAL_LOCK);
    }
  }

  requireAtPath(): void {
    const { path } = this;
    if (!this.isAtPath()) {
      throw new TramError(
        'TRAM_NOT_FOUND',
        `Another process is removing ${path}, or has removed it.`,
        {
          hint: 'Try again, unless another process has started this host.',
          retry: 'safe',
        },
      );
    }
  }

  isAtPath(): boolean {
    const { system, lockDescriptor, path } = this;
    const isBeingRemoved = system.isLockedElsewhere(lockDescriptor, REMOVAL_LOCK);
    return !isBeingRemoved && isAtPath(lockDescriptor, path);
  }

  close(): void {
    if (this.lockDescriptor === CLOSED) return;
    // The mutex is in a list of this thread: it must not vanish from memory before.
    this.releaseLifeline?.();
    closeSync(this.lockDescriptor);
    this.lockDescriptor = CLOSED;
    this.held.clear();
    this.mapping.unmap();
  }

  private release(host: number): void {
    if (this.held.delete(host)) this.system.unlock(this.lockDescriptor, host);
  }
}

/** @param descriptor  the caller closes it; the mapping lasts */
function mapArena(system: Native, descriptor: number, path: string, bytes: number): MappedArena {
  const mapping = system.map(descriptor, bytes);
  // Locks need a descriptor without a mapping: a mapping keeps its file open, and with it the locks of a thread that has
  // ended.
  return new MappedArena(system, path, mapping, openFile(`/proc/self/fd/${descriptor}`));
}

function isAtPath(descriptor: number, path: string): boolean {
  const own = fstatSync(descriptor);
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.dev === own.dev && found.ino === own.ino;
}

function createFile(path: string): number {
  const { O_CREAT, O_EXCL, O_RDWR } = fileConstants;
  try {
    return openSync(path, O_CREAT | O_EXCL | O_RDWR, OWNER_ONLY);
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw fileError(`Can't create ${path}`, cause);
    throw new TramError(
      'TRAM_EXISTS',
      `${path} already exists: a cluster uses it, or has left it behind.`,
      {
        hint:
          `Choose another name; go on with the cluster that is there: tram up${nameFlag(path)}; ` +
          `or end it and lose its state: tram down${nameFlag(path)}.`,
        cause,
      },
    );
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, fileConstants.O_RDWR);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') {
      throw new TramError('TRAM_NOT_FOUND', `There is no cluster at ${path}.`, {
        hint: `Start it: tram up${nameFlag(path)}.`,
        cause,
      });
    }
    throw fileError(`Can't open ${path}`, cause);
  }
}

function reserve(system: Native, descriptor: number, path: string, parts: readonly Part[]): void {
  const directory = dirname(path);
  const bytes = parts.reduce((sum, { words }) => sum + words * 4, 0);
  // A reservation that cannot succeed would take all free space from others before it fails.
  if (bytes > space(directory).freeBytes) throw noSpace(directory, bytes);
  let errno = 0;
  for (const { from, words } of parts) {
    errno ||= system.reserve(descriptor, from * 4, words * 4);
  }
  if (errno === 0) return;
  if (OUT_OF_SPACE.has(errno)) throw noSpace(directory, bytes);
  throw systemError(`Can't reserve ${mebibytes(bytes)} for ${path}`, errno);
}

/** The space of the file system that has this directory. */
export function space(directory: string): { usedBytes: number; freeBytes: number } {
  const { blocks, bfree, bavail, bsize } = statfsSync(directory);
  // A file system in memory may have no limit.
  if (blocks === 0) return { usedBytes: 0, freeBytes: Number.POSITIVE_INFINITY };
  return { usedBytes: (blocks - bfree) * bsize, freeBytes: bavail * bsize };
}

/** The size of the file. @throws if it is not an arena, or too large to map */
function arenaBytes(descriptor: number, path: string): number {
  const file = fstatSync(descriptor);
  if (!file.isFile()) throw corrupt(path, 'it is not a file');
  if (file.size === 0) throw unfinished(path);
  if (file.size < HEADER_BYTES || file.size % 4 !== 0) {
    throw corrupt(path, `it has ${file.size} bytes`);
  }
  checkMappable(path, file.size);
  return file.size;
}

function checkMappable(path: string, bytes: number): void {
  if (bytes <= ARENA_BYTES_MAX) return;
  const most = Math.floor(ARENA_BYTES_MAX / MEBIBYTE);
  throw new TramError(
    'TRAM_NO_SPACE',
    `${path} takes ${mebibytes(bytes)}, and this version of Node can map at most ${most} MiB.`,
    { hint: SMALLER },
  );
}

/** @param words  the whole file */
function checkHeader(words: Int32Array, path: string): void {
  // The magic word is written last: once it is there, the header is complete.
  const magic = Atomics.load(words, ARENA.magic);
  if (magic === 0) throw unfinished(path);
  if (magic !== ARENA_MAGIC) throw corrupt(path, 'it does not start with the magic word');
  const version = words[ARENA.version];
  if (version !== ARENA_VERSION) {
    throw new TramError(
      'TRAM_VERSION_MISMATCH',
      `${path} has memory version ${version}, and this version of TRAM has memory version ${ARENA_VERSION}.`,
    );
  }
  if (words[ARENA.words] !== words.length) {
    throw corrupt(path, `its header says ${words[ARENA.words]} words, and it has ${words.length}`);
  }
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException).code;
}

/** @param cause  as Node throws it */
function fileError(what: string, cause: unknown): TramError {
  const isDenied = codeOf(cause) === 'EACCES';
  return systemError(what, (cause as NodeJS.ErrnoException).errno ?? 0, {
    hint: isDenied ? 'Only the user that started a cluster can use it.' : undefined,
    cause,
  });
}

function corrupt(path: string, why: string): TramError {
  return new TramError('TRAM_CORRUPT', `${path} is not the memory of a cluster: ${why}.`);
}

function unfinished(path: string): TramError {
  return new TramError(
    'TRAM_CORRUPT',
    `${path} is incomplete: it is being created, or its creator has crashed.`,
    {
      hint: 'Try again in a moment. If the error persists, remove the file and start the cluster again.',
      retry: 'safe',
    },
  );
}

function hostRunning(path: string, host: number, pid: number): TramError {
  const suffix = pid === 0 ? '' : `, as process ${pid}`;
  return new TramError('TRAM_HOST_RUNNING', `Host ${host} of ${path} is already running${suffix}.`);
}

function noSpace(directory: string, bytes: number): TramError {
  const { usedBytes, freeBytes } = space(directory);
  const free = Math.floor(freeBytes / MEBIBYTE);
  const size = `${Math.ceil((usedBytes + bytes) / MEBIBYTE)}m`;
  const enlarge =
    directory === SHARED_MEMORY_DIRECTORY
      ? ` Or enlarge ${directory}: docker run --shm-size=${size}, or mount -o remount,size=${size} ${directory}.`
      : '';
  return new TramError(
    'TRAM_NO_SPACE',
    `The cluster needs ${mebibytes(bytes)} of memory in ${directory}, where ${free} MiB are free.`,
    { hint: SMALLER + enlarge },
  );
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / MEBIBYTE)} MiB`;
}
