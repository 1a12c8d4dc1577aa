/**
 * Validity and uniform agreement. Both require that every correct replica of every destination has
 * delivered a set of messages, the *owed* ones: for validity those of correct clients, for agreement
 * those that any replica has delivered. Only a drained run can be judged: in any other, a missing
 * delivery may still be under way.
 */

import type { GroupOrder } from './group-order.js';
import type { History } from './history.js';
import type { Violation } from './properties.js';

export function findValidityViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  const owed = new Uint8Array(history.messageCount);
  for (const message of history.multicasts.view()) {
    if (history.isCorrectClient(history.clientOf(message))) owed[message] = 1;
  }
  const missing = findMissingDelivery(history, orders, owed);
  return (
    missing && {
      property: 'validity',
      message: history.messageIds[missing.message],
      client: history.clientNames[history.clientOf(missing.message)],
      missingAt: history.replicaNames[missing.replica],
    }
  );
}

export function findAgreementViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  const owed = new Uint8Array(history.messageCount);
  for (const { order } of orders) for (const message of order) owed[message] = 1;
  for (const { era, delivered } of history.stretchesOf.flat()) {
    // What was delivered in earlier eras is in the order, unless a power cut has undone it.
    if (era < history.lastEra) continue;
    for (const message of delivered.view()) owed[message] = 1;
  }
  const missing = findMissingDelivery(history, orders, owed);
  return (
    missing && {
      property: 'uniform-agreement',
      message: history.messageIds[missing.message],
      deliveredAt: history.replicaNames[findDeliverer(history, missing.message)],
      missingAt: history.replicaNames[missing.replica],
    }
  );
}

/** A correct replica that lacks an owed message, and the first such message in multicast order. */
function findMissingDelivery(
  history: History,
  orders: readonly GroupOrder[],
  owed: Uint8Array,
): { message: number; replica: number } | undefined {
  const owedToGroup = new Int32Array(history.groupCount);
  const multicasts = history.multicasts.view();
  for (const message of multicasts) {
    if (owed[message] === 0) continue;
    for (const group of history.destinationsOf(message)) owedToGroup[group]++;
  }
  const deliveredBy = new Int32Array(history.messageCount).fill(-1);
  for (const { group, order } of orders) {
    for (const replica of history.replicasOf[group]) {
      if (!history.isUp(replica)) continue;
      let covered = 0;
      const cover = (messages: Int32Array) => {
        for (const message of messages) {
          if (deliveredBy[message] === replica) continue;
          deliveredBy[message] = replica;
          if (owed[message] === 1 && history.isAddressedTo(message, group)) covered++;
        }
      };
      const stretches = history.stretchesOf[replica];
      const { incarnation } = stretches.at(-1)!;
      for (const stretch of stretches) {
        if (stretch.incarnation !== incarnation) continue;
        cover(order.subarray(0, stretch.restored));
        cover(stretch.delivered.view());
      }
      if (covered === owedToGroup[group]) continue;
      const message = multicasts.find(
        (candidate) =>
          owed[candidate] === 1 &&
          deliveredBy[candidate] !== replica &&
          history.isAddressedTo(candidate, group),
      )!;
      return { message, replica };
    }
  }
  return undefined;
}

function findDeliverer(history: History, message: number): number {
  return history.stretchesOf.flat().find(({ delivered }) => delivered.view().includes(message))!
    .replica;
}
