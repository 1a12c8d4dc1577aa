/**
 * Checks recoveries. Each opens an era, in which every group starts with a sequence of messages: a part of what it had
 * delivered before the power cut, and what its parent passes on to it again. Hosts that prepare an era report the
 * sequence that they replay; once the era is open, it is compared with everything that had happened before:
 *
 * - Nothing that clients have seen with `always` is lost, and nothing that was recoverable in any mode. Both lie in a
 *   prefix of what a group had delivered, which stays as it was.
 * - A message is in the sequences of all its destinations or of none, and only once.
 * - What a group has behind that prefix has come from its parent.
 * - The sequences have one order: there is no cycle.
 *
 * Called by `power.ts`, which drives recoveries.
 */
import type { Delivery } from 'tram-multicast/internal/protocol/edges.js';
import { type Ledger, type Sent, SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';

/** What an era starts with, as far as hosts have prepared it. */
class Opening {
  readonly orders: Sent[][];
  /** By group: the number of its messages, once a host has replayed them all. */
  readonly counts: (number | undefined)[];
  /** By group: the digest of the state that its members start with. */
  readonly digests: (number | undefined)[];

  constructor(groups: number) {
    this.orders = Array.from({ length: groups }, () => []);
    this.counts = new Array(groups).fill(undefined);
    this.digests = new Array(groups).fill(undefined);
  }
}

/** Follows the replay of one group at one host. */
export interface Replay {
  deliver(group: number, member: number, count: number, delivery: Delivery): void;
  /** All is replayed. @param count  how many messages the state is made of; @param digest  of the state */
  end(count: number, digest: number): void;
}

export class Eras {
  /** The era that is open; 0 before the first. */
  current = 0;
  /** Of the eras that were open and that are: what each group has delivered up to its end. */
  private readonly orders = new Map<number, readonly (readonly Sent[])[]>();
  private readonly openings = new Map<number, Opening>();
  /** By group: so many of its deliveries must not be lost. */
  private required: number[];

  constructor(
    private readonly plan: Plan,
    private readonly ledger: Ledger,
  ) {
    this.required = plan.parents.map(() => 0);
    this.orders.set(0, ledger.orders);
  }

  /** A client has received the reply of a group: it has seen the message, and all that the group had delivered before. */
  replied(sent: Sent, group: number): void {
    if (this.plan.durability?.mode !== 'always') return;
    this.require(group, this.ledger.orders[group].lastIndexOf(sent) + 1);
  }

  /** What a group has delivered from entries below this index must not be lost. */
  requireBelow(group: number, index: number): void {
    this.require(group, this.ledger.deliveredBelow(group, index));
  }

  private require(group: number, count: number): void {
    this.required[group] = Math.max(this.required[group], count);
  }

  /** A host prepares `era`: it replays what its group has of `fromEra`. */
  replay(era: number, fromEra: number, group: number, host: number): Replay {
    const opening = this.openings.get(era) ?? new Opening(this.plan.parents.length);
    this.openings.set(era, opening);
    const order = opening.orders[group];
    const earlier = (this.openings.get(fromEra)?.orders ?? [])[group];
    const before = this.orders.get(fromEra)?.[group] ?? earlier ?? [];
    const fillUpTo = (count: number): void => {
      if (before.length < count)
        fail(
          `host ${host} restores ${count} messages of group ${group}, and there are only ${before.length}`,
        );
      for (let i = order.length; i < count; i++) order.push(before[i]);
    };
    return {
      deliver: (_, member, count, delivery) => {
        const sent = this.ledger.requireSent(group, member, delivery);
        if (order.length < count) fillUpTo(count);
        if (order.length === count) order.push(sent);
        if (order[count] === sent) return;
        fail(
          `era ${era} starts group ${group} with ${sent.id} as number ${count} at host ${host}, and with ${order[count].id} at another host`,
        );
      },
      end: (count, digest) => {
        if (order.length < count) fillUpTo(count);
        opening.counts[group] ??= count;
        opening.digests[group] ??= digest;
        if (opening.counts[group] !== count) {
          fail(
            `era ${era} starts group ${group} with ${count} messages at host ${host}, and with ${opening.counts[group]} at another host`,
          );
        }
        if (opening.digests[group] === digest) return;
        fail(`era ${era} starts group ${group} at host ${host} with another state than elsewhere`);
      },
    };
  }

  /** The era is open: compare it with what was before, and go on from it. */
  open(era: number): void {
    const opening = this.openings.get(era);
    const after = this.plan.parents.map((_, group) => {
      const count = opening?.counts[group];
      if (count === undefined) fail(`era ${era} is open, and no host has prepared group ${group}`);
      return opening!.orders[group].slice(0, count);
    });
    requireSound(this.plan.parents, this.ledger.orders, after, this.required);
    this.orders.set(this.current, this.ledger.orders);
    this.ledger.openEra(era, this.plan.durability!.mode, after);
    this.current = era;
    this.orders.set(era, this.ledger.orders);
    this.required = after.map((order) => order.length);
  }
}

/**
 * Is this a sound recovery?
 * @param before  by group, all that it had delivered
 * @param after  by group, what it starts with
 * @param required  by group, how many of its deliveries must not be lost
 */
export function requireSound(
  parents: readonly number[],
  before: readonly (readonly Sent[])[],
  after: readonly (readonly Sent[])[],
  required: readonly number[],
): void {
  const sets = after.map((order) => new Set(order));
  after.forEach((order, group) => {
    if (sets[group].size < order.length) fail(`group ${group} has a message twice`);
    const kept = commonPrefix(before[group], order);
    if (kept < required[group]) {
      fail(
        `group ${group} has lost ${before[group][kept].id}, which was its number ${kept} of ${required[group]} that must not be lost`,
      );
    }
    for (const sent of order.slice(kept)) {
      if (!comesFromParent(parents, sent, group)) {
        fail(`group ${group} has ${sent.id} behind the ${kept} messages that it has kept`);
      }
    }
    for (const sent of order) {
      const lacking = sets.findIndex((set, other) => sent.isFor(other) && !set.has(sent));
      if (lacking >= 0) fail(`group ${group} has ${sent.id}, and group ${lacking} lacks it`);
    }
  });
  if (hasCycle(after)) fail('the orders of the groups contradict each other');
}

/** Does the message enter the tree above this group? */
function comesFromParent(parents: readonly number[], { entryGroup }: Sent, group: number): boolean {
  for (let above = parents[group]; above >= 0; above = parents[above]) {
    if (above === entryGroup) return true;
  }
  return false;
}

function commonPrefix(before: readonly Sent[], after: readonly Sent[]): number {
  let count = 0;
  while (count < before.length && before[count] === after[count]) count++;
  return count;
}

/** Take away, again and again, a message that is the next one in all orders that have it. Is anything left? */
function hasCycle(orders: readonly (readonly Sent[])[]): boolean {
  const next = orders.map(() => 0);
  for (let isDone = false; !isDone; ) {
    isDone = true;
    orders.forEach((order, group) => {
      for (;;) {
        const sent = order[next[group]];
        if (sent === undefined) return;
        const groups = orders.flatMap((_, other) => (sent.isFor(other) ? [other] : []));
        if (!groups.every((other) => orders[other][next[other]] === sent)) return;
        for (const other of groups) next[other]++;
        isDone = false;
      }
    });
  }
  return orders.some((order, group) => next[group] < order.length);
}

function fail(message: string): never {
  throw new SimulationFailure('recovery', message);
}
