/**
 * What the protocol asks of a memory, whichever it is: simulated, threads, processes or hosts.
 *
 * Every process owns one **region** of 32-bit words. It reads and writes its own region directly
 * (`own`); everything else is **posted**: `write` and `read` name a peer, return at once, and
 * complete later, or never if the peer has crashed. `poll` hands out completions one by one.
 *
 * Every backend promises:
 *
 * 1. *Order.* What one process posts to one peer takes effect in the order of posting, and its
 *    completions come in that order. Nothing is promised between two peers.
 * 2. *Words.* A 32-bit word is read whole. A posted write of several words may be seen half-way, and
 *    nothing is promised of the order in which its words land. Whoever needs more than a word checks
 *    both ends of a record (`window.ts`), or waits for a word that was posted after it; and if it then
 *    depends on what was posted before, it calls `readFence` in between.
 * 3. *Outcome.* A completion says `ok` (all of it has landed), `refused` (the peer did not permit
 *    it) or `lost` (the connection broke). Of writes that were not `ok`, or have not completed, any
 *    prefix in the order of posting may have landed; of those refused or not completed, more may
 *    still land. After a loss, whatever is posted to that peer is lost as well until its poster has
 *    polled the completions of all that was lost: it never writes on over a gap that it does not know.
 *    (Unguarded writes with NO_TAG are fire-and-forget: backends need not report their completion.)
 * 4. *Permission.* A write posted with a `guard` other than `OPEN` is `ok` only if, after its last
 *    word landed, the peer still permitted exactly that guard. `permit(guard)` grants to one and
 *    revokes from all others in one step: once it has returned, no write with another guard can
 *    become `ok` unless all of its words can already be read in `own`. That is what makes a seal:
 *    permit first, read second, and whatever succeeded is there. (Testing the permission *before*
 *    writing would not do.)
 * 5. *Restart.* A process that comes back has a higher incarnation, and nothing that its earlier life
 *    posted lands after that. Either its region has been emptied: then `RETIRED` was permitted before
 *    the first word changed, the words of the row were the first to change, and what others posted
 *    before may still land. Or it *resumes*: region and permission are as they were, and writes to it
 *    have gone on landing and succeeding.
 *
 * Where each host has memory of its own, the region of a process is out of reach while its host is not there: what is
 * posted to it then is lost, and whoever resumes finds none of it. And what a life has posted may be on its way for longer
 * than its host is gone: it lands at a peer before anything of the next life does, or never.
 *
 * Three things are hints and may be wrong for a while, or missing: `hurry`, `wake` and `hasEnded`. Nothing that must
 * hold depends on them.
 */
export type ProcessId = number;

/** The guard of a write that needs no permission. */
export const OPEN = 0;

/** The permission of a process that must not be written to by any leader: above every ballot. */
export const RETIRED = 0x7fffffff;

/** The tag of a write whose success nobody waits for. */
export const NO_TAG = 0;

/** A bit of a tag: the poster wants to know if the write fails, and need not be told if it succeeds. */
export const FAILURES_ONLY = 1 << 30;

/** Must a write with this tag be reported if it is `ok`? */
export function reportsSuccess(tag: number): boolean {
  return tag !== NO_TAG && (tag & FAILURES_ONLY) === 0;
}

export type Outcome = 'ok' | 'refused' | 'lost';

/** One finished operation. The object is reused: it is valid until the next `poll`. */
export interface Completion {
  peer: ProcessId;
  /** As given to `write` or `read`: the poster's own note of what this was. */
  tag: number;
  guard: number;
  outcome: Outcome;
}

export interface Memory {
  readonly self: ProcessId;

  /** This process's region. Words written by peers appear in it at any time. */
  readonly own: Int32Array;

  /** What was read from `own` before this is no newer than what is read after it. Some machines must be told. */
  readFence(): void;

  /** Words of this process's own, zero, that nobody else looks at: what is posted from here goes fastest. */
  scratch(words: number): Int32Array;

  /** From now on only writes guarded by `guard` succeed here (promise 4). */
  permit(guard: number): void;

  /** The guard permitted now. */
  permitted(): number;

  /** Post `count` words, `source[from …]`, to `peer`'s region at `to`. The source is copied. */
  write(
    peer: ProcessId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void;

  /** Post a single word. */
  writeWord(peer: ProcessId, to: number, value: number, guard: number, tag: number): void;

  /**
   * Post a read of `count` words of `peer`'s region at `at`; they are in `into[intoAt …]` once it completes.
   *
   * @param tag  one for which `reportsSuccess` holds
   */
  read(
    peer: ProcessId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void;

  /** Somebody waits for what was posted to `peer`. Else it may set out a moment later, with more. */
  hurry(peer: ProcessId): void;

  /**
   * True if `completion` now holds the next finished operation. Writes that are `ok` and for which `reportsSuccess`
   * does not hold need not be among them, nor writes with NO_TAG and without a guard, whatever became of them.
   */
  poll(): boolean;

  readonly completion: Completion;

  /**
   * There is something for `peer` in its memory. It may be asleep: it is woken if that is `urgent`, and
   * else looks when it wakes by itself.
   */
  wake(peer: ProcessId, urgent: boolean): void;

  /** Does the platform know that `peer` has ended, and not come back? */
  hasEnded(peer: ProcessId): boolean;
}
