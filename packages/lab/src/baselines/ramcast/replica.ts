/**
 * One replica of RamCast (Le et al., Middleware 2021) without failures: a genuine atomic multicast with Skeen's timestamps. A
 * group is a leader and followers, and all communication is one-sided writes.
 *
 *   client   writes its message into its inbox at every replica of every destination       client.ts
 *   leader   gives it a timestamp, and writes that to all these replicas                   leader.ts, proposals.ts
 *            confirms to them the timestamps that f+1 of each destination hold             or acks.ts
 *            delivers by final timestamps, and replies                                     ordering.ts, replies.ts
 *   follower delivers the same messages, as far as its leader has                          follower.ts
 *
 * A replica is an agent of a duty cycle (`hosting/duty.ts`), or of a simulator: `doWork` does a bounded amount of work, never
 * waits, and returns the amount. The data path does not allocate.
 */
import { AcknowledgedOrdering, Acks } from './acks.js';
import { Clock } from './clock.js';
import type { Application, Edges } from './edges.js';
import { Follower } from './follower.js';
import { LEADER } from './layout.js';
import { Leader } from './leader.js';
import { Ordering } from './ordering.js';

export interface Replica {
  doWork(): number;
  /** The number of delivered messages, modulo 2³². */
  readonly delivered: number;
}

/** The parts that decide the order; tests plant errors in them. */
export interface Parts {
  readonly ordering: Ordering;
  readonly clock: Clock;
}

export function soundParts(edges: Edges, group: number, member: number): Parts {
  const { slots, sizes } = edges.layout;
  const ordering = sizes.acknowledges
    ? new AcknowledgedOrdering(edges, group, member === LEADER)
    : new Ordering(slots);
  return { ordering, clock: new Clock(group, sizes.firstIndex) };
}

export function newReplica(
  edges: Edges,
  group: number,
  member: number,
  application: Application,
  parts: Parts = soundParts(edges, group, member),
): Replica {
  const { memory, layout } = edges;
  const { firstIndex } = layout.sizes;
  // Before any peer writes: all counts start at the same value.
  if (firstIndex !== 0) memory.own.fill(firstIndex, 0, layout.inbox(0));
  const { ordering } = parts;
  const isAcknowledged = ordering instanceof AcknowledgedOrdering;
  const acks = isAcknowledged ? new Acks(edges, group, ordering) : undefined;
  return member === LEADER
    ? new Leader(edges, group, application, parts, acks)
    : new Follower(edges, group, application, parts, acks);
}
