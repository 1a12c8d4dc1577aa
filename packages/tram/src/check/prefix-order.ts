/**
 * Uniform prefix order. Two sequences without repetition satisfy the paper's definition exactly if
 * one is a prefix of the other: at the first position where they differ, neither replica delivered
 * the other's message before its own.
 *
 * Within a group, `group-order.ts` has compared everybody already. If nobody strayed, every sequence
 * of group g is a prefix of g's order, and so it is enough to compare the orders, pair by pair.
 */

import { type GroupOrder, replicaHolding } from './group-order.js';
import type { History } from './history.js';
import type { Violation } from './properties.js';

export function findPrefixViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  for (const order of orders) {
    const violation = findDisagreementWithin(history, order);
    if (violation !== undefined) return violation;
  }
  for (const order of orders) {
    const violation = findDisagreementWithLaterGroups(history, orders, order);
    if (violation !== undefined) return violation;
  }
  return undefined;
}

function findDisagreementWithin(history: History, group: GroupOrder): Violation | undefined {
  let index = Number.POSITIVE_INFINITY;
  let first: GroupOrder['strays'][number] | undefined;
  for (const stray of group.strays) {
    if (stray.divergesAt === undefined || stray.divergesAt >= index) continue;
    index = stray.divergesAt;
    first = stray;
  }
  if (first === undefined) return undefined;
  return {
    property: 'uniform-prefix-order',
    groups: [history.groupNumbers[group.group]],
    index,
    one: {
      replica: history.replicaNames[replicaHolding(group, index)],
      message: history.messageIds[group.order[index]],
    },
    other: {
      replica: history.replicaNames[first.replica],
      message: history.messageIds[first.sequence[index]],
    },
  };
}

/** Walks g's order once, with a cursor into the order of every group that shares messages with g. */
function findDisagreementWithLaterGroups(
  history: History,
  orders: readonly GroupOrder[],
  one: GroupOrder,
): Violation | undefined {
  const cursors = new Int32Array(orders.length);
  const compared = new Int32Array(orders.length);
  for (let index = 0; index < one.order.length; index++) {
    const message = one.order[index];
    for (const group of history.destinationsOf(message)) {
      if (group <= one.group) continue;
      const other = orders[group];
      let cursor = cursors[group];
      while (
        cursor < other.order.length &&
        !history.isAddressedTo(other.order[cursor], one.group)
      ) {
        cursor++;
      }
      cursors[group] = cursor + 1;
      if (cursor >= other.order.length || other.order[cursor] === message) {
        compared[group]++;
        continue;
      }
      return {
        property: 'uniform-prefix-order',
        groups: [history.groupNumbers[one.group], history.groupNumbers[group]],
        index: compared[group],
        one: {
          replica: history.replicaNames[replicaHolding(one, index)],
          message: history.messageIds[message],
        },
        other: {
          replica: history.replicaNames[replicaHolding(other, cursor)],
          message: history.messageIds[other.order[cursor]],
        },
      };
    }
  }
  return undefined;
}
