/**
 * One replica of RamCast (Le et al., Middleware 2021), in the absence of failures: a genuine atomic multicast by
 * Skeen's timestamps, in which groups are a leader and followers, and all communication is one-sided writes.
 *
 *   client   writes its message into its inbox at every replica of every destination       client.ts
 *   leader   gives it a timestamp, and writes that to all these replicas                   leader.ts, proposals.ts
 *            confirms, to the same, what f+1 of each destination hold                      or acks.ts
 *            delivers by final timestamps, and replies                                     ordering.ts, replies.ts
 *   follower does the same with what was written to it, as far as its leader has got       follower.ts
 *
 * A replica is run by whoever runs agents (runtime/duty.ts), or by a simulator: `doWork` does a bounded amount of
 * work, never waits, and returns how much it was. Nothing is allocated on the way of a message.
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
  /** How many messages were delivered, modulo 2³². */
  readonly delivered: number;
}

/** What decides the order; tests put errors in here. */
export interface Parts {
  readonly ordering: Ordering;
  readonly clock: Clock;
}

export function soundParts(edges: Edges, group: number, member: number): Parts {
  const { slots, sizes } = edges.layout;
  const ordering = sizes.acknowledges
    ? new AcknowledgedOrdering(edges, group, member === LEADER)
    : new Ordering(slots);
  return { ordering, clock: new Clock(group, sizes.origin) };
}

export function newReplica(
  edges: Edges,
  group: number,
  member: number,
  application: Application,
  parts: Parts = soundParts(edges, group, member),
): Replica {
  const { memory, layout } = edges;
  const { origin } = layout.sizes;
  // Before anybody writes: counts of others start where ours do.
  if (origin !== 0) memory.own.fill(origin, 0, layout.inbox(0));
  const { ordering } = parts;
  const isAcknowledged = ordering instanceof AcknowledgedOrdering;
  const acks = isAcknowledged ? new Acks(edges, group, ordering) : undefined;
  return member === LEADER
    ? new Leader(edges, group, application, parts, acks)
    : new Follower(edges, group, application, parts, acks);
}
