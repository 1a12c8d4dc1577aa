/**
 * Lifelines: how hosts learn at once that another host has died.
 *
 * A host holds its *lifeline* while it runs: a robust mutex in its line of the arena, locked by the thread that runs its
 * replicas. When this thread ends, however it ends, the kernel sets its owner-died bit. It does so before it takes the process down:
 * after a tenth of a millisecond, where the lock on the file is free only once all memory is released, 5 to 17 ms later.
 * It is a bit of a shared word, so a host that runs sees it without a system call. A host that sleeps is woken by it.
 *
 * The bit says that the thread writes nothing any more. It does not say that its process is gone: the process that starts the host
 * again needs the lock on the file.
 *
 * Where the C library has no robust mutex, or one whose first word is not its owner, the word stays 0. Then the lock on the
 * file shows the death, later.
 */
import type { Parking } from '../arena.js';
import type { Native, Sleeper } from './native.js';

/** The first word of a robust mutex, as the kernel defines it for robust futexes: the id of the owner, and two flags. */
const WAITERS = 0x80000000 | 0;
const OWNER_DIED = 0x40000000;
/** A host that sleeps is woken by the deaths of at most so many others. */
const SLEEPER_LIFELINES_MAX = 8;

/** Has the thread that held the lifeline ended without releasing it? */
export function isCut(words: Int32Array, lifeline: number): boolean {
  return (Atomics.load(words, lifeline) & OWNER_DIED) !== 0;
}

/**
 * Hold a lifeline that nobody holds, for this thread, which must be the first one of its process: its id is that of the
 * process.
 * @param address  of `words`
 * @returns releases it; undefined if this system has no suitable mutex
 */
export function holdLifeline(
  system: Native,
  words: Int32Array,
  address: number,
  lifeline: number,
): (() => void) | undefined {
  const mutex = address + lifeline * 4;
  if (!system.lockRobust(mutex)) return undefined;
  const release = (): void => system.unlockRobust(mutex);
  if (Atomics.load(words, lifeline) === process.pid) return release;
  release();
  return undefined;
}

/** The lifelines of other hosts, and a sleep that ends when one of them is cut. */
export class Lifelines {
  /** As last seen. */
  private readonly seen: Int32Array;
  private readonly expected: Int32Array;
  private readonly sleeper: Sleeper;
  private canSleep = true;
  readonly parking: Parking;

  constructor(
    system: Native,
    private readonly words: Int32Array,
    address: number,
    /** Those that come first wake a sleeping host. */
    private readonly lifelines: readonly number[],
    /** The word that the host sleeps on. */
    parked: number,
    /** Sleeps on this word alone. */
    plain: Parking,
  ) {
    this.seen = new Int32Array(lifelines.length);
    const watched = [parked, ...lifelines.slice(0, SLEEPER_LIFELINES_MAX)];
    this.expected = new Int32Array(watched.length);
    this.sleeper = system.sleeper(watched.map((at) => address + at * 4));
    this.parking = {
      wait: (at, expected, timeoutUs) => {
        if (this.canSleep) this.canSleep = this.sleep(expected, timeoutUs);
        if (!this.canSleep) plain.wait(at, expected, timeoutUs);
      },
      wake: plain.wake,
    };
  }

  /** Has one of them been cut, held or released since the last call? */
  haveChanged(): boolean {
    const { words, lifelines, seen } = this;
    let haveChanged = false;
    for (let i = 0; i < lifelines.length; i++) {
      const now = words[lifelines[i]] & ~WAITERS;
      if (now !== seen[i]) haveChanged = true;
      // Not only then: the engine would not compile what never happens before a death, and drop all code around it.
      seen[i] = now;
    }
    return haveChanged;
  }

  private sleep(parked: number, timeoutUs: number): boolean {
    const { words, lifelines, seen, expected } = this;
    expected[0] = parked;
    for (let i = 1; i < expected.length; i++) {
      const at = lifelines[i - 1];
      const last = seen[i - 1];
      // The kernel wakes a sleeper only if this flag asks for it. A lifeline that nobody holds wakes nobody.
      const isHeld = last !== 0 && (last & OWNER_DIED) === 0;
      expected[i] = isHeld ? last | WAITERS : last;
      const found = Atomics.compareExchange(words, at, last, expected[i]);
      // It has changed since it was looked at.
      if (found !== last && found !== expected[i]) return true;
    }
    return this.sleeper.wait(expected, timeoutUs);
  }
}
