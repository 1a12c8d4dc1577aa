/** Uniform integrity: at most once in a life, only at a destination, only after the multicast. */

import type { GroupOrder } from './group-order.js';
import type { History, Stretch } from './history.js';
import type { Violation } from './properties.js';

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
  const positions = new Int32Array(history.messageCount);
  const deliveredInLife = new Int32Array(history.messageCount);
  let lives = 0;
  for (const { group, order } of orders) {
    positions.fill(order.length);
    for (let i = 0; i < order.length; i++) positions[order[i]] = i;
    for (const replica of history.replicasOf[group]) {
      for (const life of livesOf(history.stretchesOf[replica])) {
        const message = findRepetition(life, order.length, positions, deliveredInLife, ++lives);
        if (message === undefined) continue;
        return {
          property: 'uniform-integrity',
          kind: 'delivered-twice',
          message: history.messageIds[message],
          replica: history.replicaNames[replica],
        };
      }
    }
  }
  return undefined;
}

/** What a snapshot covers counts as delivered. @param mark  a value that no other life uses */
function findRepetition(
  life: readonly Stretch[],
  orderLength: number,
  positions: Int32Array,
  deliveredInLife: Int32Array,
  mark: number,
): number | undefined {
  let restored = 0;
  for (const stretch of life) {
    restored = Math.max(restored, Math.min(stretch.restored, orderLength));
    for (const message of stretch.delivered.view()) {
      if (positions[message] < restored || deliveredInLife[message] === mark) return message;
      deliveredInLife[message] = mark;
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

function livesOf(stretches: readonly Stretch[]): Stretch[][] {
  const lives: Stretch[][] = [];
  for (const stretch of stretches) {
    lives[stretch.life] ??= [];
    lives[stretch.life].push(stretch);
  }
  return lives;
}
