/**
 * Uniform prefix order. Take two sequences without repetition, restricted to the messages addressed
 * to both groups. They satisfy the definition exactly if one is a prefix of the other: where they
 * first differ, neither replica has delivered the other's message before its own.
 *
 * `group-order.ts` has compared all sequences of a group with the group's order already. If there are
 * no strays, every sequence is a prefix of that order, so comparing the orders pairwise is enough.
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

function findDisagreementWithin(
  { messageIds, replicaNames, groupNumbers }: History,
  { group, disagreement }: GroupOrder,
): Violation | undefined {
  if (disagreement === undefined) return undefined;
  const { index, one, other } = disagreement;
  return {
    property: 'uniform-prefix-order',
    groups: [groupNumbers[group]],
    index,
    one: { replica: replicaNames[one.replica], message: messageIds[one.message] },
    other: { replica: replicaNames[other.replica], message: messageIds[other.message] },
  };
}

/** Walks the order of one group once, with a cursor into the order of every group with a higher index. */
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
