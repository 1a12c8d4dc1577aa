/**
 * The operating system, as far as Node does not offer it: mapped files, futexes and locks that die with
 * their process. Called by `processes.ts` alone.
 *
 * koffi calls libc; it is loaded with the first use. Structures lie in one block outside of the heap: a call
 * allocates nothing and costs koffi 40 to 60 ns, the kernel the rest.
 */
import { constants as bufferConstants } from 'node:buffer';
import { constants as systemConstants } from 'node:os';
import { getSystemErrorMap } from 'node:util';
import { TramError, type TramErrorOptions } from '../../errors.js';
import { type Koffi, loadKoffi } from '../koffi.js';

/** A file in this process's memory. */
export interface Mapping {
  readonly buffer: ArrayBuffer;
  /** Where the buffer starts. */
  readonly address: number;
  /** Let go of the file. The buffer stays readable and writable, but is nobody else's any more. */
  unmap(): void;
}

export interface Native {
  /** Give a file space for these bytes now, and at least that size. Returns 0, or the number of the error. */
  reserve(descriptor: number, from: number, bytes: number): number;
  /** @param bytes  not more than the file has (touching what is beyond ends the process), nor `MAPPING_BYTES_MAX` */
  map(descriptor: number, bytes: number): Mapping;

  /**
   * Lock one byte of a file, without waiting; false if another descriptor holds it. The lock belongs
   * to the open descriptor: it ends with it, so at the latest with the process.
   */
  tryLock(descriptor: number, byte: number): boolean;
  unlock(descriptor: number, byte: number): void;
  /** Does *another* descriptor hold the lock? Here or in any process. */
  isLockedElsewhere(descriptor: number, byte: number): boolean;

  /**
   * Sleep if the word at `address` is `expected`, until woken or until the time is over. May also
   * return for no reason (a signal).
   */
  futexWait(address: number, expected: number, timeoutUs: number): void;
  /** Wake all who sleep on the word at `address`, in whichever process. */
  futexWake(address: number): void;

  /** Let another thread that is ready run on this core. */
  yieldProcessor(): void;
}

/** `SYS_futex`, where we know it. */
const FUTEX_CALL: Partial<Record<NodeJS.Architecture, number>> = { x64: 202, arm64: 98 };
/** Not the private ones: those don't reach other processes. */
const FUTEX_WAIT = 0;
const FUTEX_WAKE = 1;
const ALL_SLEEPERS = 0x7fffffff;
/** A sleep without end is one of a month: longer ones need not fit the kernel's clock. */
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

/** Node ends the process, without an exception, at the attempt to view more. */
export const MAPPING_BYTES_MAX = bufferConstants.MAX_LENGTH;

const { EINTR, EAGAIN, EACCES } = systemConstants.errno;

let loaded: Native | undefined;

/** Loads koffi the first time (in each thread). */
export function native(): Native {
  loaded ??= bind(loadKoffi("memory: 'processes'"), futexCall());
  return loaded;
}

/** The operating system refused `what`. @param errno  positive, or negative as Node has it */
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
  // Whatever libc Node itself runs on. None of these is called with its variable arguments as such:
  // on these machines they travel like others, and koffi is faster without.
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
  const schedYield = libc.func('sched_yield', 'int', []);

  const block = koffi.alloc('int32_t', BLOCK_WORDS);
  const words = new Int32Array(koffi.view(block, BLOCK_WORDS * 4)).fill(0);
  const timeAddress = Number(block) + BLOCK.seconds * 4;
  const lockAddress = Number(block) + BLOCK.lock * 4;

  // Only once no view is left that could touch the addresses.
  const unreachable = new FinalizationRegistry(([address, bytes]: readonly [number, number]) =>
    munmap(address, bytes),
  );

  const mapAt = (address: number, bytes: number, flags: number, descriptor: number): number => {
    const mapped = mmap(address, bytes, PROTECTION_READ_WRITE, flags, descriptor, 0);
    if (mapped === -1) throw systemError(`Can't map ${bytes} bytes of memory`, koffi.errno());
    return mapped;
  };

  /** @returns 0 or the number of the error; the kernel's answer is in the block */
  const lockCall = (descriptor: number, command: number, type: number, byte: number): number => {
    words[BLOCK.lock] = type;
    words[BLOCK.lockStart] = byte;
    words[BLOCK.lockLength] = 1;
    words[BLOCK.lockPid] = 0;
    return fcntl(descriptor, command, lockAddress) === 0 ? 0 : koffi.errno();
  };

  return {
    reserve: (descriptor, from, bytes) => {
      // An interrupted reservation is undone as a whole.
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
        // The buffer can't be detached, and whoever still touches it must not crash the process.
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
      if (errno !== 0) throw systemError("Can't ask for a lock of the arena", errno);
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

    yieldProcessor: () => {
      schedYield();
    },
  };
}
