/**
 * What the protocol requires of a memory: simulated, threads, processes or machines.
 *
 * Every participant owns one **region** of 32-bit words. It reads and writes its own region directly (`own`).
 * Everything else is **posted**: `write` and `read` name a peer, return at once, and complete later, or never if the
 * peer has crashed. `poll` returns completions one by one.
 *
 * Every backend promises:
 *
 * 1. *Order.* Operations that one participant posts to one peer take effect in the order of posting, and complete
 *    in that order. There is no order between two peers.
 * 2. *Words.* A 32-bit word is read whole. A posted write of several words may be seen in part, and its words may
 *    land in any order. A reader that needs several words copies them and checks the copy (`record.ts`), or waits for a
 *    word that was posted after them, as follows.
 *    - It loads the later word by `Atomics.load`: everything that is loaded after that is at least as new as the word.
 *      (It may look with a plain load first, to see whether there is anything new: that can only be late.)
 *    - If what it loaded may have been overwritten meanwhile, it calls `readFence`, and then loads a word that was to
 *      change before anything was overwritten.
 *    Plain loads alone have no order: compilers and processors move them.
 * 3. *Outcome.* A completion is `ok` (the whole operation has taken effect), `refused` (the peer did not permit it)
 *    or `lost` (the connection broke). Of writes that are not `ok`, or have not completed, any prefix in the order
 *    of posting may have landed; of those refused or not completed, more may still land. After a loss, all posts to
 *    that peer are lost until the participant has polled the completions of everything that was lost. So it never
 *    writes on over a gap that it does not know. Unguarded writes with `NO_TAG` are fire-and-forget: backends need not
 *    report their completion.
 * 4. *Permission.* A write posted with a `guard` other than `OPEN` is `ok` only if, after its last word landed, the
 *    peer still permitted exactly that guard. `permit(guard)` grants to one writer and revokes from all others in one
 *    step: once it has returned, no write with another guard can become `ok` unless all of its words can already be
 *    read in `own`. That makes a seal: permit first, read second, and every write that succeeded is there. (Testing
 *    the permission *before* writing would not be enough.)
 * 5. *Restart.* A participant that restarts has a higher incarnation, and no write of its earlier incarnation lands
 *    after that. Either its region has been emptied: then `RETIRED` was permitted before the first word changed, the
 *    words of the row were the first to change, and earlier posts of others may still land. Or it *resumes*: region
 *    and permission are as they were, and writes of others have continued to land and to succeed.
 *
 * On machines, a region is out of reach while its host is down: operations posted to it are lost, and a participant
 * that resumes finds none of them. A write of an earlier incarnation may be in flight for longer than its host is
 * down: it lands at a peer before anything of the next incarnation, or never.
 *
 * Three operations are hints and may be late, wrong or missing: `markUrgent`, `wake` and `hasEnded`. No safety property
 * depends on them.
 */
export type ParticipantId = number;

/** The guard of a write that needs no permission. */
export const OPEN = 0;

/** The permission of a participant to which no leader may write: no key has this value. */
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
  peer: ParticipantId;
  /** As given to `write` or `read`: tells the poster what this was. */
  tag: number;
  guard: number;
  outcome: Outcome;
}

export interface Memory {
  readonly self: ParticipantId;

  /** This participant's region. Words written by peers appear in it at any time. */
  readonly own: Int32Array;

  /** All loads before this are executed before all loads after it: neither compiler nor processor moves one over it. */
  readFence(): void;

  /** Private words of this participant, all zero. Posting from here is fastest. */
  scratch(words: number): Int32Array;

  /** From now on only writes with this guard succeed here (promise 4). */
  permit(guard: number): void;

  /** The guard permitted now. */
  permitted(): number;

  /** Posts `count` words, `source[from …]`, to `peer`'s region at `to`. The source is copied. */
  write(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void;

  /**
   * Posts like `write`. True if it is known at once that this write, and every one that was posted to the peer with this
   * guard before, is `ok`. Then no completion of this one is reported. Otherwise it must be polled, as usual.
   *
   * @param guard  not `OPEN`
   * @param tag  one for which `reportsSuccess` holds
   */
  writeAtOnce(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): boolean;

  /** Posts a single word. */
  writeWord(peer: ParticipantId, to: number, value: number, guard: number, tag: number): void;

  /**
   * Posts a read of `count` words of `peer`'s region at `at`. They are in `into[intoAt …]` once it completes.
   *
   * @param tag  one for which `reportsSuccess` holds
   */
  read(
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void;

  /** Marks the posts to `peer` as urgent. Other posts may be batched for a moment. */
  markUrgent(peer: ParticipantId): void;

  /**
   * Returns true if `completion` now holds the next completion. Successful writes may be left out unless
   * `reportsSuccess` holds for their tag, and unguarded writes with `NO_TAG` may be left out in any case.
   */
  poll(): boolean;

  readonly completion: Completion;

  /**
   * Tells `peer` that its memory has changed. If that is `urgent`, a parked host is woken; otherwise the peer looks
   * when its host wakes up by itself.
   */
  wake(peer: ParticipantId, urgent: boolean): void;

  /** Does the platform know that `peer` has ended and not restarted? */
  hasEnded(peer: ParticipantId): boolean;
}
