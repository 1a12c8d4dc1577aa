/**
 * The order of one group: the sequence of which the sequence of every member should be a prefix.
 *
 * It is assembled from the stretches of all members, because a snapshot covers deliveries that only
 * other members recorded. Stretches are sorted by where they begin, then longest first. Each is
 * compared with the order so far, and extends it if it is longer. A stretch that contradicts the order
 * becomes a *stray*, with a sequence of its own. Strays are rare, so the checks of the properties
 * mostly read this one order instead of the sequence of every replica.
 */

import type { History, Stretch } from './history.js';
import { IntList } from './int-list.js';

/** A stretch that is not part of the group's order. */
export interface Stray {
  readonly replica: number;
  readonly sequence: Int32Array;
  /** Where it contradicts the order; `undefined` if its position is unknown (see `unfounded`). */
  readonly divergesAt: number | undefined;
}

/** The part of a member's sequence that it delivered itself: `[from, end)` of the group's order. */
interface Holding {
  readonly replica: number;
  readonly from: number;
  readonly end: number;
}

export interface GroupOrder {
  readonly group: number;
  /** Sound deliveries, each message once. */
  readonly order: Int32Array;
  readonly strays: readonly Stray[];
  /** A snapshot that covers more deliveries than the history has of this group. */
  readonly unfounded: { readonly stretch: Stretch; readonly delivered: number } | undefined;
  readonly holdings: readonly Holding[];
}

export function orderGroups(history: History): GroupOrder[] {
  const scratch: Scratch = {
    positions: new Int32Array(history.messageCount),
    seenIn: new Int32Array(history.messageCount),
    stretches: 0,
  };
  return history.groupNumbers.map((_, group) => orderGroup(history, group, scratch));
}

/** Arrays with one element per message, allocated once. */
interface Scratch {
  /** The index of the message in the group's order, or -1. */
  readonly positions: Int32Array;
  /** The number of the last stretch that contained the message. */
  readonly seenIn: Int32Array;
  stretches: number;
}

function orderGroup(history: History, group: number, scratch: Scratch): GroupOrder {
  const { positions } = scratch;
  const candidates = history.replicasOf[group]
    .flatMap((replica) => history.stretchesOf[replica])
    .filter((stretch) => stretch.restored > 0 || stretch.delivered.length > 0)
    .map((stretch) => ({ stretch, own: soundDeliveries(history, group, stretch, scratch) }))
    .sort((a, b) => a.stretch.restored - b.stretch.restored || b.own.length - a.own.length);

  const order = new IntList();
  const strays: Stray[] = [];
  const holdings: Holding[] = [];
  let unfounded: GroupOrder['unfounded'];
  let delivered = 0; // All positions below were delivered by some member, strays included.
  positions.fill(-1);

  for (const { stretch, own } of candidates) {
    const { replica, restored } = stretch;
    if (restored > delivered) unfounded ??= { stretch, delivered };
    else delivered = Math.max(delivered, restored + own.length);
    if (restored > order.length) {
      strays.push({ replica, sequence: own, divergesAt: undefined });
      continue;
    }
    const isNew = (message: number) => positions[message] === -1 || positions[message] >= restored;
    const fresh = own.every(isNew) ? own : own.filter(isNew);
    const agreed = Math.min(fresh.length, order.length - restored);
    let index = 0;
    while (index < agreed && order.get(restored + index) === fresh[index]) index++;
    if (index < agreed) {
      const sequence = concatenate(order.view().subarray(0, restored), fresh);
      strays.push({ replica, sequence, divergesAt: restored + index });
      continue;
    }
    for (; index < fresh.length; index++) {
      positions[fresh[index]] = order.length;
      order.push(fresh[index]);
    }
    holdings.push({ replica, from: restored, end: restored + fresh.length });
  }
  return { group, order: order.view(), strays, unfounded, holdings };
}

/** A replica that delivered both positions itself; else one that has the first from a snapshot. */
export function replicaHolding(order: GroupOrder, first: number, second = first): number {
  const both = order.holdings.find(({ from, end }) => from <= first && second < end);
  return (both ?? order.holdings.find(({ from, end }) => from <= second && second < end)!).replica;
}

/** Deliveries at a destination, each the first of its message in this stretch. */
function soundDeliveries(
  history: History,
  group: number,
  stretch: Stretch,
  scratch: Scratch,
): Int32Array {
  const all = stretch.delivered.view();
  const { seenIn } = scratch;
  const mark = ++scratch.stretches;
  let kept = 0;
  let copy: Int32Array | undefined;
  for (let i = 0; i < all.length; i++) {
    const message = all[i];
    if (seenIn[message] === mark || !history.isAddressedTo(message, group)) {
      copy ??= all.slice();
      continue;
    }
    seenIn[message] = mark;
    if (copy !== undefined) copy[kept] = message;
    kept++;
  }
  return copy === undefined ? all : copy.subarray(0, kept);
}

function concatenate(head: Int32Array, tail: Int32Array): Int32Array {
  const all = new Int32Array(head.length + tail.length);
  all.set(head);
  all.set(tail, head.length);
  return all;
}
