/**
 * Functions of the operating system that Node does not offer: mapped files, futexes, locks and mutexes that end with their
 * process, and yielding the processor. Called by `arena-file.ts` and `lifelines.ts`; machines only yield.
 *
 * koffi calls libc, and is loaded on first use. Structures are in one block outside of the heap, so a call allocates
 * nothing. koffi takes 40 to 60 ns of a call.
 */
import { constants as bufferConstants } from 'node:buffer';
import { constants as systemConstants } from 'node:os';
import { getSystemErrorMap } from 'node:util';
import { TramError, type TramErrorOptions } from '../../errors.js';
import { type Koffi, loadKoffi } from '../koffi.js';

/** A file that is mapped into the memory of this process. */
export interface Mapping {
  readonly buffer: ArrayBuffer;
  /** The address of the buffer. */
  readonly address: number;
  /** Release the file. The buffer stays readable and writable, but is no longer shared. */
  unmap(): void;
}

export interface Native {
  /** Reserve space for a range of a file, and extend the file to it. Returns 0 or the error number. */
  reserve(descriptor: number, from: number, bytes: number): number;
  /** @param bytes  at most the size of the file (access beyond it ends the process), and at most `MAPPING_BYTES_MAX` */
  map(descriptor: number, bytes: number): Mapping;

  /**
   * Lock one byte of a file without waiting. Returns false if another descriptor holds the lock. The lock belongs to the
   * open descriptor: it ends when that is closed, at the latest with the process.
   */
  tryLock(descriptor: number, byte: number): boolean;
  unlock(descriptor: number, byte: number): void;
  /** Does another descriptor, of this or any other process, hold the lock? */
  isLockedElsewhere(descriptor: number, byte: number): boolean;

  /**
   * Sleep if the word at `address` is `expected`, until woken or until the time is over. May return early, for example
   * after a signal.
   */
  futexWait(address: number, expected: number, timeoutUs: number): void;
  /** Wake all threads of all processes that sleep on the word at `address`. */
  futexWake(address: number): void;
  /** The same sleep on several words at once. */
  sleeper(addresses: readonly number[]): Sleeper;

  /**
   * Initialise the words at `address` as a robust mutex that processes share, and lock it for the calling thread. If the
   * thread ends without unlocking it, the kernel says so in the mutex. Returns false if the system has no such mutexes.
   * @param address  of `MUTEX_WORDS` words that nobody else accesses as a mutex
   */
  lockRobust(address: number): boolean;
  /** @param address  of a mutex that this thread has locked */
  unlockRobust(address: number): void;

  /** Let another runnable thread run on this core. */
  yieldProcessor(): void;
}

/** Sleeps on several words. */
export interface Sleeper {
  /**
   * Sleep as long as each word is as expected, until one of them is woken or the time is over. May return early. Returns
   * false, at once, if the kernel cannot do that.
   */
  wait(expected: Int32Array, timeoutUs: number): boolean;
}

/** More than a mutex takes: with glibc, 10 words on x64 and 12 on arm64. */
export const MUTEX_WORDS = 16;

/** `SYS_futex`, by architecture. */
const FUTEX_CALL: Partial<Record<NodeJS.Architecture, number>> = { x64: 202, arm64: 98 };
/** Without FUTEX_PRIVATE_FLAG, which would limit them to one process. */
const FUTEX_WAIT = 0;
const FUTEX_WAKE = 1;
const ALL_SLEEPERS = 0x7fffffff;
/** On all architectures, since Linux 5.16. */
const FUTEX_WAITV_CALL = 449;
const FUTEX_32_BITS = 2;
const CLOCK_MONOTONIC = 1;
/** In words: the expected value, the address, flags, padding. */
const WAITV = { value: 0, address: 2, flags: 4, words: 6 };
const TIME_WORDS = 4;
const PROCESS_SHARED = 1;
const ROBUST = 1;
/** An endless sleep is one of a month: a longer one might overflow the kernel's clock. */
const SLEEP_US_MAX = 30 * 86_400e6;

const PROTECTION_READ_WRITE = 1 | 2;
const MAP_SHARED = 0x01;
const MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x02 | 0x20 | 0x4000;
const MAP_FIXED = 0x10;

const GET_LOCK = 36;
const SET_LOCK = 37;
const WRITE_LOCK = 1;
const UNLOCKED = 2;

/**
 * The block of structures, as 32-bit words of a little-endian machine with 64-bit `long`:
 *
 *   timespec  0 seconds  2 nanoseconds
 *   flock     4 type (16 bits), whence (16 bits)  6 start  8 length  10 pid
 */
const BLOCK = { seconds: 0, nanoseconds: 2, lock: 4, lockStart: 6, lockLength: 8, lockPid: 10 };
const BLOCK_WORDS = 12;

/** Node ends the process, without an exception, if a view is larger. */
export const MAPPING_BYTES_MAX = bufferConstants.MAX_LENGTH;

const { EINTR, EAGAIN, EACCES, ETIMEDOUT } = systemConstants.errno;

/** What ends a sleep on several words, besides being woken. Any other error says that there is no such sleep. */
const ENDS_OF_SLEEP: ReadonlySet<number> = new Set([EAGAIN, EINTR, ETIMEDOUT]);

let loaded: Native | undefined;

/** Loads koffi with the first call in this thread. */
export function native(): Native {
  loaded ??= bind(loadKoffi("memory: 'processes'"), futexCall());
  return loaded;
}

/** The error of a failed system call. @param errno  positive, or negative as in Node */
export function systemError(
  what: string,
  errno: number,
  options: TramErrorOptions = {},
): TramError {
  const [name, text] = getSystemErrorMap().get(-Math.abs(errno)) ?? [`error ${errno}`, 'unknown'];
  return new TramError('TRAM_SYSTEM', `${what}: ${text} (${name}).`, options);
}

function futexCall(): number {
  const call = process.platform === 'linux' ? FUTEX_CALL[process.arch] : undefined;
  if (call !== undefined) return call;
  throw new TramError(
    'TRAM_NATIVE_MISSING',
    `memory: 'processes' runs on Linux on x64 or arm64, and this is ${process.platform} on ${process.arch}.`,
    { hint: "Use memory: 'threads'." },
  );
}

function bind(koffi: Koffi, futex: number): Native {
  // The libc that Node itself has loaded. Variadic functions are declared with fixed parameters: on these architectures
  // arguments are passed in the same way, and koffi is faster.
  const libc = koffi.load(null);
  const posixFallocate = libc.func('posix_fallocate', 'int', ['int', 'int64_t', 'int64_t']);
  const mmap = libc.func('mmap', 'intptr_t', [
    'uintptr_t',
    'size_t',
    'int',
    'int',
    'int',
    'int64_t',
  ]);
  const munmap = libc.func('munmap', 'int', ['uintptr_t', 'size_t']);
  const fcntl = libc.func('fcntl', 'int', ['int', 'int', 'uintptr_t']);
  const wait = libc.func('syscall', 'int', ['int', 'uintptr_t', 'int', 'int', 'uintptr_t']);
  const wake = libc.func('syscall', 'int', ['int', 'uintptr_t', 'int', 'int']);
  const waitAny = libc.func('syscall', 'int', [
    'int',
    'uintptr_t',
    'int',
    'int',
    'uintptr_t',
    'int',
  ]);
  const mutexes = {
    initAttributes: libc.func('pthread_mutexattr_init', 'int', ['uintptr_t']),
    setShared: libc.func('pthread_mutexattr_setpshared', 'int', ['uintptr_t', 'int']),
    setRobust: libc.func('pthread_mutexattr_setrobust', 'int', ['uintptr_t', 'int']),
    init: libc.func('pthread_mutex_init', 'int', ['uintptr_t', 'uintptr_t']),
    lock: libc.func('pthread_mutex_lock', 'int', ['uintptr_t']),
    unlock: libc.func('pthread_mutex_unlock', 'int', ['uintptr_t']),
  };
  const schedYield = libc.func('sched_yield', 'int', []);

  const block = koffi.alloc('int32_t', BLOCK_WORDS);
  const words = new Int32Array(koffi.view(block, BLOCK_WORDS * 4)).fill(0);
  const timeAddress = Number(block) + BLOCK.seconds * 4;
  const lockAddress = Number(block) + BLOCK.lock * 4;

  // Unmap only when no view of the memory is left.
  const unreachable = new FinalizationRegistry(([address, bytes]: readonly [number, number]) =>
    munmap(address, bytes),
  );

  const mapAt = (address: number, bytes: number, flags: number, descriptor: number): number => {
    const mapped = mmap(address, bytes, PROTECTION_READ_WRITE, flags, descriptor, 0);
    if (mapped === -1) throw systemError(`Can't map ${bytes} bytes of memory`, koffi.errno());
    return mapped;
  };

  /** @returns 0 or the error number; the kernel writes its answer into the block */
  const lockCall = (descriptor: number, command: number, type: number, byte: number): number => {
    words[BLOCK.lock] = type;
    words[BLOCK.lockStart] = byte;
    words[BLOCK.lockLength] = 1;
    words[BLOCK.lockPid] = 0;
    return fcntl(descriptor, command, lockAddress) === 0 ? 0 : koffi.errno();
  };

  return {
    reserve: (descriptor, from, bytes) => {
      // An interrupted reservation is undone completely.
      for (;;) {
        const errno = posixFallocate(descriptor, from, bytes);
        if (errno !== EINTR) return errno;
      }
    },

    map: (descriptor, bytes) => {
      const address = mapAt(0, bytes, MAP_SHARED, descriptor);
      const buffer = koffi.view(address, bytes);
      unreachable.register(buffer, [address, bytes]);
      return {
        buffer,
        address,
        // The buffer cannot be detached, and a later access must not crash the process.
        unmap: () => mapAt(address, bytes, MAP_PRIVATE_ANONYMOUS_NORESERVE | MAP_FIXED, -1),
      };
    },

    tryLock: (descriptor, byte) => {
      const errno = lockCall(descriptor, SET_LOCK, WRITE_LOCK, byte);
      if (errno === 0) return true;
      if (errno === EAGAIN || errno === EACCES) return false;
      throw systemError("Can't lock the arena", errno);
    },

    unlock: (descriptor, byte) => {
      const errno = lockCall(descriptor, SET_LOCK, UNLOCKED, byte);
      if (errno !== 0) throw systemError("Can't unlock the arena", errno);
    },

    isLockedElsewhere: (descriptor, byte) => {
      const errno = lockCall(descriptor, GET_LOCK, WRITE_LOCK, byte);
      if (errno !== 0) throw systemError("Can't query a lock of the arena", errno);
      return (words[BLOCK.lock] & 0xffff) !== UNLOCKED;
    },

    futexWait: (address, expected, timeoutUs) => {
      if (!(timeoutUs > 0)) return;
      const us = Math.min(timeoutUs, SLEEP_US_MAX);
      words[BLOCK.seconds] = us / 1e6;
      words[BLOCK.nanoseconds] = (us % 1e6) * 1000;
      wait(futex, address, FUTEX_WAIT, expected, timeAddress);
    },

    futexWake: (address) => {
      wake(futex, address, FUTEX_WAKE, ALL_SLEEPERS);
    },

    sleeper: (addresses) => {
      const timeAt = addresses.length * WAITV.words;
      const memory = koffi.alloc('int32_t', timeAt + TIME_WORDS);
      const start = Number(memory);
      const entries = new Int32Array(koffi.view(memory, (timeAt + TIME_WORDS) * 4)).fill(0);
      addresses.forEach((address, i) => {
        entries[i * WAITV.words + WAITV.address] = address | 0;
        entries[i * WAITV.words + WAITV.address + 1] = Math.floor(address / 2 ** 32);
        entries[i * WAITV.words + WAITV.flags] = FUTEX_32_BITS;
      });
      return {
        wait: (expected, timeoutUs) => {
          if (!(timeoutUs > 0)) return true;
          for (let i = 0; i < addresses.length; i++) {
            entries[i * WAITV.words + WAITV.value] = expected[i];
          }
          // Unlike that of a simple sleep, the time is absolute. Both clocks are the kernel's monotonic one.
          const untilUs = Number(process.hrtime.bigint()) / 1e3 + Math.min(timeoutUs, SLEEP_US_MAX);
          entries[timeAt] = untilUs / 1e6;
          entries[timeAt + 2] = (untilUs % 1e6) * 1000;
          const timeout = start + timeAt * 4;
          const woken = waitAny(
            FUTEX_WAITV_CALL,
            start,
            addresses.length,
            0,
            timeout,
            CLOCK_MONOTONIC,
          );
          return woken >= 0 || ENDS_OF_SLEEP.has(koffi.errno());
        },
      };
    },

    lockRobust: (address) => {
      const attributes = koffi.alloc('int32_t', MUTEX_WORDS);
      const { initAttributes, setShared, setRobust, init, lock } = mutexes;
      const failed =
        initAttributes(attributes) ||
        setShared(attributes, PROCESS_SHARED) ||
        setRobust(attributes, ROBUST) ||
        init(address, attributes) ||
        lock(address);
      koffi.free(attributes);
      return failed === 0;
    },

    unlockRobust: (address) => {
      mutexes.unlock(address);
    },

    yieldProcessor: () => {
      schedYield();
    },
  };
}
