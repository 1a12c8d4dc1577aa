/**
 * Locks, and a store that they protect.
 *
 * - Waiting is fair. If a lock is taken, the service defers the reply to `acquire`: the call waits, and the client need not
 *   ask again. Clients get a lock in the order in which they have asked for it.
 * - A lock is held for a limited time, its *lease*, unless the holder renews it. So a holder that crashes or hangs does not
 *   keep the lock. Leases end by ordered time, at the same place in the order at every replica.
 * - When a client gives up or ends while it waits, `abandoned` removes it from the queue.
 *
 * A lease does not suffice. A holder may be paused, continue after its lease has run out, and believe that it still holds the
 * lock. So each grant of a lock has a number, higher than all before it: the *fencing number*. The holder sends it with every
 * request that it makes under the lock, and the store refuses numbers that are lower than the highest that it has seen. The
 * store may be anything that can compare two numbers. Here it is a group of the same cluster.
 */
import {
  type Deferred,
  type DeferringContext,
  defineService,
  type ReplyContext,
} from 'tram-multicast';

export type Command =
  | { readonly type: 'acquire'; readonly lock: string; readonly leaseMs: number }
  | {
      readonly type: 'renew';
      readonly lock: string;
      readonly fence: number;
      readonly leaseMs: number;
    }
  | { readonly type: 'release'; readonly lock: string; readonly fence: number }
  | { readonly type: 'look'; readonly lock: string }
  | { readonly type: 'write'; readonly fence: number; readonly text: string };

export interface Reply {
  /** False if the lock is no longer the caller's, or the store has seen a higher number. */
  readonly accepted: boolean;
  /** The fencing number of the holder, or 0 if there is none; for `write`, the highest that the store has seen. */
  readonly fence: number;
  /** How many clients wait for the lock. */
  readonly waiting: number;
}

interface Waiter {
  readonly id: string;
  readonly leaseMs: number;
}

interface Lock {
  fence: number;
  untilMs: number;
  waiters: Waiter[];
}

interface State {
  /** The last fencing number of this group. */
  lastFence: number;
  /** The locks that are held. */
  readonly locks: Record<string, Lock>;
  /** What was written under locks, and the highest number that it was written with. */
  readonly store: { fence: number; readonly texts: string[] };
}

export default defineService<Command, Reply, State>({
  initial: () => ({ lastFence: 0, locks: {}, store: { fence: 0, texts: [] } }),

  deliver(state, command, context) {
    switch (command.type) {
      case 'acquire':
        return acquire(state, command.lock, command.leaseMs, context);
      case 'renew': {
        const lock = heldBy(state, command.lock, command.fence);
        if (lock !== undefined) lock.untilMs = context.nowMs + command.leaseMs;
        return look(state, command.lock, lock !== undefined);
      }
      case 'release': {
        const isHeld = heldBy(state, command.lock, command.fence) !== undefined;
        if (isHeld) passOn(state, command.lock, context);
        return look(state, command.lock, isHeld);
      }
      case 'look':
        return look(state, command.lock, true);
      case 'write':
        return write(state, command.fence, command.text);
    }
  },

  ticks: { everyMs: 20 },

  tick(state, context) {
    for (const [name, { untilMs }] of Object.entries(state.locks)) {
      if (untilMs <= context.nowMs) passOn(state, name, context);
    }
  },

  abandoned(state, id) {
    for (const lock of Object.values(state.locks)) {
      lock.waiters = lock.waiters.filter((waiter) => waiter.id !== id);
    }
  },
});

function acquire(
  state: State,
  name: string,
  leaseMs: number,
  context: DeferringContext<Reply>,
): Reply | Deferred {
  const lock = state.locks[name];
  if (lock !== undefined) {
    lock.waiters.push({ id: context.id, leaseMs });
    return context.defer();
  }
  const fence = ++state.lastFence;
  state.locks[name] = { fence, untilMs: context.nowMs + leaseMs, waiters: [] };
  return look(state, name, true);
}

/** The holder has released the lock, or its lease has run out: the next client in the queue gets it. */
function passOn(state: State, name: string, context: ReplyContext<Reply>): void {
  const lock = state.locks[name];
  const next = lock?.waiters.shift();
  if (lock === undefined || next === undefined) {
    delete state.locks[name];
    return;
  }
  lock.fence = ++state.lastFence;
  lock.untilMs = context.nowMs + next.leaseMs;
  context.reply(next.id, look(state, name, true));
}

function heldBy(state: State, name: string, fence: number): Lock | undefined {
  const lock = state.locks[name];
  return lock?.fence === fence ? lock : undefined;
}

function look({ locks }: State, name: string, accepted: boolean): Reply {
  const lock = locks[name];
  return { accepted, fence: lock?.fence ?? 0, waiting: lock?.waiters.length ?? 0 };
}

function write({ store }: State, fence: number, text: string): Reply {
  const accepted = fence >= store.fence;
  if (accepted) {
    store.fence = fence;
    store.texts.push(text);
  }
  return { accepted, fence: store.fence, waiting: 0 };
}
