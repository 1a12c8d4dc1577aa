/** Partial genuineness: only its destination orders or delivers a message to one group (paper §2.3). */

import type { History } from './history.js';
import type { Violation } from './properties.js';

export function findGenuinenessViolation(history: History): Violation | undefined {
  for (const [replica, stretches] of history.stretchesOf.entries()) {
    const group = history.groupOfReplica[replica];
    for (const stretch of stretches) {
      for (const message of stretch.delivered.view()) {
        if (isForeign(history, message, group)) return involved(history, message, group, replica);
      }
    }
  }
  const touches = history.touches.view();
  for (let i = 0; i < touches.length; i += 2) {
    if (isForeign(history, touches[i], touches[i + 1])) {
      return involved(history, touches[i], touches[i + 1]);
    }
  }
  return undefined;
}

function isForeign(history: History, message: number, group: number): boolean {
  const destinations = history.destinationsOf(message);
  return destinations.length === 1 && destinations[0] !== group;
}

function involved(history: History, message: number, group: number, replica?: number): Violation {
  return {
    property: 'partial-genuineness',
    message: history.messageIds[message],
    destination: history.groupNumbers[history.destinationsOf(message)[0]],
    group: history.groupNumbers[group],
    ...(replica !== undefined && { replica: history.replicaNames[replica] }),
  };
}
