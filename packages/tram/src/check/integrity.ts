/** Uniform integrity: at most once per incarnation, only at a destination, only after the multicast. */

import type { GroupOrder } from './group-order.js';
import type { History } from './history.js';
import type { Violation } from './properties.js';
import type { Stretch } from './stretch.js';

export function findIntegrityViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  return (
    findDeliveryWithoutMulticast(history) ??
    findForeignDelivery(history) ??
    findSecondDelivery(history, orders) ??
    findUnfoundedRestore(history, orders)
  );
}

function findDeliveryWithoutMulticast(history: History): Violation | undefined {
  if (history.earlyDelivery === undefined) return undefined;
  const { message, replica } = history.earlyDelivery;
  return {
    property: 'uniform-integrity',
    kind: history.isMulticast(message) ? 'before-multicast' : 'never-multicast',
    message: history.messageIds[message],
    replica: history.replicaNames[replica],
  };
}

function findForeignDelivery(history: History): Violation | undefined {
  for (const [replica, stretches] of history.stretchesOf.entries()) {
    const group = history.groupOfReplica[replica];
    for (const stretch of stretches) {
      for (const message of stretch.delivered.view()) {
        if (history.isAddressedTo(message, group)) continue;
        const destinations = history.destinationsOf(message);
        return {
          property: 'uniform-integrity',
          kind: 'not-a-destination',
          message: history.messageIds[message],
          replica: history.replicaNames[replica],
          destinations: Array.from(destinations, (index) => history.groupNumbers[index]),
        };
      }
    }
  }
  return undefined;
}

function findSecondDelivery(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  const deliveredIn = new Int32Array(history.messageCount);
  let mark = 0;
  for (const { group, repetition } of orders) {
    if (repetition !== undefined) {
      return deliveredTwice(history, repetition.replica, repetition.message);
    }
    for (const replica of history.replicasOf[group]) {
      for (const incarnation of incarnationsOf(history.stretchesOf[replica])) {
        const message = findRepetition(incarnation, deliveredIn, ++mark);
        if (message !== undefined) return deliveredTwice(history, replica, message);
      }
    }
  }
  return undefined;
}

function deliveredTwice(history: History, replica: number, message: number): Violation {
  return {
    property: 'uniform-integrity',
    kind: 'delivered-twice',
    message: history.messageIds[message],
    replica: history.replicaNames[replica],
  };
}

/** @param mark  unique to this incarnation */
function findRepetition(
  incarnation: readonly Stretch[],
  deliveredIn: Int32Array,
  mark: number,
): number | undefined {
  for (const { delivered } of incarnation) {
    for (const message of delivered.view()) {
      if (deliveredIn[message] === mark) return message;
      deliveredIn[message] = mark;
    }
  }
  return undefined;
}

function findUnfoundedRestore(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  for (const { group, unfounded } of orders) {
    if (unfounded === undefined) continue;
    return {
      property: 'uniform-integrity',
      kind: 'restored-unknown',
      replica: history.replicaNames[unfounded.stretch.replica],
      group: history.groupNumbers[group],
      restored: unfounded.stretch.restored,
      deliveredByGroup: unfounded.delivered,
    };
  }
  return undefined;
}

function incarnationsOf(stretches: readonly Stretch[]): Stretch[][] {
  const incarnations: Stretch[][] = [];
  for (const stretch of stretches) {
    incarnations[stretch.incarnation] ??= [];
    incarnations[stretch.incarnation].push(stretch);
  }
  return incarnations;
}
