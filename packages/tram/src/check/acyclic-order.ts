/**
 * Uniform acyclic order. "Some replica delivers m before m′" has no cycle exactly if all sequences
 * can be merged into one.
 */

import { type GroupOrder, replicaHolding } from './group-order.js';
import type { History } from './history.js';
import { findCycle, type Step } from './merge.js';
import type { DeliveredStep, Violation } from './properties.js';

export function findAcyclicViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  const deliveries = new Deliveries(history, orders);
  const cycle = findCycle(deliveries.sequences, [], history.messageCount);
  return (
    cycle && {
      property: 'uniform-acyclic-order',
      cycle: cycle.map((step) => deliveries.describe(step)),
    }
  );
}

/** All sequences that constrain the order of deliveries: one for each group, and those of strays. */
export class Deliveries {
  readonly sequences: readonly Int32Array[];
  private readonly strays: GroupOrder['strays'];

  constructor(
    private readonly history: History,
    private readonly orders: readonly GroupOrder[],
  ) {
    // A sequence that is not a stray is a prefix of its group's order, so it adds no constraint.
    this.strays = orders.flatMap((order) => order.strays);
    this.sequences = [
      ...orders.map(({ order }) => order),
      ...this.strays.map(({ sequence }) => sequence),
    ];
  }

  describe(step: Step): DeliveredStep {
    const { messageIds, replicaNames } = this.history;
    return {
      before: messageIds[step.before],
      after: messageIds[step.after],
      replica: replicaNames[this.replicaOf(step)],
    };
  }

  private replicaOf({ before, after, sequence }: Step): number {
    const group = this.orders[sequence];
    if (group === undefined) return this.strays[sequence - this.orders.length].replica;
    return replicaHolding(group, group.order.indexOf(before), group.order.indexOf(after));
  }
}
