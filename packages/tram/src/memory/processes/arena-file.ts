/**
 * Processes: the arena is a file that every process (and every thread) maps for itself, in /dev/shm
 * unless its user chose another place. The runtime makes, opens and removes it.
 *
 * Mapped memory fails with a bus error, which no program survives. So all space is reserved before
 * anything is mapped, and never more is mapped than the file has. What can go wrong is an error then.
 *
 * A host holds a lock on the file while it runs. The kernel gives the lock back when the process ends,
 * however it ends, and keeps it for one that is merely stopped: others learn of a death at once and
 * can't mistake slowness for it.
 */
import {
  closeSync,
  constants as fileConstants,
  fstatSync,
  ftruncateSync,
  openSync,
  statfsSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { dirname, join } from 'node:path';
import { TramError } from '../../errors.js';
import { ARENA, ARENA_MAGIC, ARENA_VERSION, type Arena, type Parking } from '../arena.js';
import { MAPPING_BYTES_MAX, type Mapping, type Native, native, systemError } from './native.js';

const SHARED_MEMORY_DIRECTORY = '/dev/shm';
const MEBIBYTE = 2 ** 20;
const SMALLER = 'Ask for less: a smaller logBytes, or fewer clients.';
const PLAIN_NAME = /^[A-Za-z0-9._-]+$/;
const OWNER_ONLY = 0o600;
const HEADER_BYTES = ARENA.description * 4;
/** No descriptor: the number of a closed one may soon be that of another file. */
const CLOSED = -1;
const OUT_OF_SPACE: ReadonlySet<number> = new Set([
  systemConstants.errno.ENOSPC,
  systemConstants.errno.EDQUOT,
  systemConstants.errno.ENOMEM,
]);
/** The byte whose lock a process holds while it removes the file. Hosts and clients lock the bytes of their numbers. */
const REMOVAL_LOCK = 0x7fffffff;
/** The header counts words in one word. */
const ARENA_BYTES_MAX = Math.min(MAPPING_BYTES_MAX, 0x7fffffff * 4);

export interface ArenaFile extends Arena {
  readonly path: string;
  /** Of its first byte, in this process. */
  readonly address: number;

  /**
   * Become this host. The lock ends with `release`, with `close` and with the process or thread.
   * @param pidOnBoard  whom to name if the host is running already; 0 if nobody has signed
   */
  lockHost(host: number, pidOnBoard: number): HostLock;

  /** Is somebody this host now, here or in any process? A stopped (SIGSTOP) process is. */
  isHostLocked(host: number): boolean;

  /**
   * Remove the file, unless its path is by now that of another one: processes that have this arena open keep it.
   * @param before  called while nobody else can remove it, if this is still the file at its path
   * @returns whether it has removed the file; false also if another process is removing it right now
   */
  removeFile(before?: () => void): boolean;

  /** The file stays. `words` may still be touched, but nobody else sees it. */
  close(): void;
}

export interface HostLock {
  readonly host: number;
  release(): void;
}

/** Where the arena of a cluster is, given the cluster's name or the path itself. */
export function arenaPath(nameOrPath: string): string {
  return PLAIN_NAME.test(nameOrPath)
    ? join(SHARED_MEMORY_DIRECTORY, `tram-${nameOrPath}`)
    : nameOrPath;
}

/** So many words of an arena, from one on. */
export interface Part {
  readonly from: number;
  readonly words: number;
}

/**
 * A new arena, all zero. Others can open it once its header is written, the magic word last.
 * @param words  how many
 * @param parts  those that will be used: the rest takes no space
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
    removeArenaFile(path);
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
 * Remove whatever file is at the path, without regard to others: see `ArenaFile.removeFile`. Processes that have it open
 * keep it. Does nothing if there is no such file.
 */
export function removeArenaFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw fileError(`Can't remove ${path}`, cause);
  }
}

/** Sleeping and waking across processes, on words of a mapped file. */
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
  /** The kernel does not tell a descriptor of its own locks. */
  private readonly held = new Set<number>();

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

  lockHost(host: number, pidOnBoard: number): HostLock {
    if (this.held.has(host) || !this.system.tryLock(this.lockDescriptor, host)) {
      throw hostRunning(this.path, host, pidOnBoard);
    }
    this.held.add(host);
    return { host, release: () => this.release(host) };
  }

  isHostLocked(host: number): boolean {
    return this.held.has(host) || this.system.isLockedElsewhere(this.lockDescriptor, host);
  }

  /**
   * Nobody can create a file where there is one, and nobody removes this file without its lock. So what is at the path
   * when it is compared is there still when it is removed.
   */
  removeFile(before: () => void = () => undefined): boolean {
    if (!this.system.tryLock(this.lockDescriptor, REMOVAL_LOCK)) return false;
    try {
      if (!this.isAtPath()) return false;
      before();
      removeArenaFile(this.path);
      return true;
    } finally {
      this.system.unlock(this.lockDescriptor, REMOVAL_LOCK);
    }
  }

  private isAtPath(): boolean {
    const own = fstatSync(this.lockDescriptor);
    const found = statSync(this.path, { throwIfNoEntry: false });
    return found !== undefined && found.dev === own.dev && found.ino === own.ino;
  }

  close(): void {
    if (this.lockDescriptor === CLOSED) return;
    closeSync(this.lockDescriptor);
    this.lockDescriptor = CLOSED;
    this.held.clear();
    this.mapping.unmap();
  }

  private release(host: number): void {
    if (this.held.delete(host)) this.system.unlock(this.lockDescriptor, host);
  }
}

/** @param descriptor  the file; to be closed by the caller, the mapping lasts */
function mapArena(system: Native, descriptor: number, path: string, bytes: number): MappedArena {
  const mapping = system.map(descriptor, bytes);
  // Locks need a descriptor that is not mapped: a mapping keeps its own open, and would keep the locks
  // of a thread that has ended.
  return new MappedArena(system, path, mapping, openFile(`/proc/self/fd/${descriptor}`));
}

function createFile(path: string): number {
  const { O_CREAT, O_EXCL, O_RDWR } = fileConstants;
  try {
    return openSync(path, O_CREAT | O_EXCL | O_RDWR, OWNER_ONLY);
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw fileError(`Can't create ${path}`, cause);
    throw new TramError(
      'TRAM_EXISTS',
      `${path} exists: there is a cluster, or what is left of one.`,
      {
        hint: 'Choose another name, or take it down first: tram down.',
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
        hint: 'Start it: tram up.',
        cause,
      });
    }
    throw fileError(`Can't open ${path}`, cause);
  }
}

function reserve(system: Native, descriptor: number, path: string, parts: readonly Part[]): void {
  const directory = dirname(path);
  const bytes = parts.reduce((sum, { words }) => sum + words * 4, 0);
  // A reservation that can't succeed would take all that is left from others before it fails.
  if (bytes > space(directory).freeBytes) throw noSpace(directory, bytes);
  let errno = 0;
  for (const { from, words } of parts) {
    errno ||= system.reserve(descriptor, from * 4, words * 4);
  }
  if (errno === 0) return;
  if (OUT_OF_SPACE.has(errno)) throw noSpace(directory, bytes);
  throw systemError(`Can't reserve ${mebibytes(bytes)} for ${path}`, errno);
}

function space(directory: string): { usedBytes: number; freeBytes: number } {
  const { blocks, bfree, bavail, bsize } = statfsSync(directory);
  // A file system in memory may have no limit of its own.
  if (blocks === 0) return { usedBytes: 0, freeBytes: Number.POSITIVE_INFINITY };
  return { usedBytes: (blocks - bfree) * bsize, freeBytes: bavail * bsize };
}

/** The size of the file, having made sure that it can be an arena and can be mapped. */
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
    `${path} takes ${mebibytes(bytes)}, and this version of Node can share ${most} MiB at most.`,
    { hint: SMALLER },
  );
}

/** @param words  the whole file */
function checkHeader(words: Int32Array, path: string): void {
  // The magic word is written last, so the rest holds once it is there.
  const magic = Atomics.load(words, ARENA.magic);
  if (magic === 0) throw unfinished(path);
  if (magic !== ARENA_MAGIC) throw corrupt(path, 'it does not start like one');
  const version = words[ARENA.version];
  if (version !== ARENA_VERSION) {
    throw new TramError(
      'TRAM_VERSION_MISMATCH',
      `${path} has memory layout ${version}, and this is a TRAM with layout ${ARENA_VERSION}.`,
    );
  }
  if (words[ARENA.words] !== words.length) {
    throw corrupt(path, `it says ${words[ARENA.words]} words and has ${words.length}`);
  }
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException).code;
}

/** @param cause  as Node throws it */
function fileError(what: string, cause: unknown): TramError {
  const mayNot = codeOf(cause) === 'EACCES';
  return systemError(what, (cause as NodeJS.ErrnoException).errno ?? 0, {
    hint: mayNot ? 'A cluster can be used by the user who started it, and by no other.' : undefined,
    cause,
  });
}

function corrupt(path: string, why: string): TramError {
  return new TramError('TRAM_CORRUPT', `${path} is not the memory of a cluster: ${why}.`);
}

function unfinished(path: string): TramError {
  return new TramError('TRAM_CORRUPT', `${path} is being made, or was given up half-way.`, {
    hint: 'Try again in a moment. If it goes on, remove the file and start the cluster afresh.',
    retry: 'safe',
  });
}

function hostRunning(path: string, host: number, pid: number): TramError {
  const who = pid === 0 ? '' : `, as process ${pid}`;
  return new TramError('TRAM_HOST_RUNNING', `Host ${host} of ${path} is already running${who}.`);
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
