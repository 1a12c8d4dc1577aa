/** Describes violations in words, with the smallest evidence that a reader can check in the trace. */

import type { DeliveredStep, RealTimeStep, Violation } from './properties.js';

export function describeViolation(violation: Violation): string {
  switch (violation.property) {
    case 'validity': {
      const { message, client, missingAt } = violation;
      return `${message} was multicast by ${client}, which did not crash, but ${missingAt} never delivered it`;
    }
    case 'uniform-agreement': {
      const { message, deliveredAt, missingAt } = violation;
      return `${message} was delivered at ${deliveredAt}, but never at ${missingAt}`;
    }
    case 'uniform-integrity':
      return describeIntegrity(violation);
    case 'uniform-prefix-order': {
      const { groups, index, one, other } = violation;
      const scope =
        groups.length === 1
          ? `delivery ${index + 1} of group ${groups[0]}`
          : `message ${index + 1} addressed to both group ${groups[0]} and group ${groups[1]}`;
      return `${scope} is ${one.message} at ${one.replica}, but ${other.message} at ${other.replica}`;
    }
    case 'uniform-acyclic-order': {
      const steps = violation.cycle.map(
        ({ before, after, replica }) => `${before} < ${after} at ${replica}`,
      );
      return `${steps.join(', ')}: a cycle`;
    }
    case 'partial-genuineness': {
      const { message, destination, group, replica } = violation;
      const event = replica === undefined ? `group ${group} ordered it` : `${replica} delivered it`;
      return `${message} is addressed only to group ${destination}, but ${event}`;
    }
    case 'fifo-order': {
      const { client, entryGroup, replica, delivered, skipped } = violation;
      return `${client} multicast ${skipped} before ${delivered}, both with entry group ${entryGroup}, but ${replica} delivered ${delivered} without ${skipped} before it`;
    }
    case 'real-time-order':
      return describeRealTime(violation.cycle);
    case 'durability':
      return describeDurability(violation);
  }
}

/** What each replica and client saw, and when; the last clause is the delivery that contradicts the others. */
function describeRealTime(cycle: readonly (DeliveredStep | RealTimeStep)[]): string {
  const contradiction = cycle.findIndex(
    (step, i) => isDelivered(step) && !isDelivered(cycle.at(i - 1)!),
  );
  const steps = [...cycle.slice(contradiction + 1), ...cycle.slice(0, contradiction + 1)];
  const clauses = steps.map((step) => {
    const { before, after } = step;
    if (isDelivered(step)) return `${step.replica} delivered ${before} before ${after}`;
    const { receivedBy, answeredBy, receivedUs, multicastBy, multicastUs } = step;
    return `${receivedBy} received the reply of group ${answeredBy} to ${before}${at(receivedUs)}; then ${multicastBy} multicast ${after}${at(multicastUs)}`;
  });
  return `${clauses.slice(0, -1).join('; ')}; but ${clauses.at(-1)}`;
}

function isDelivered(step: DeliveredStep | RealTimeStep): step is DeliveredStep {
  return 'replica' in step;
}

function at(timeUs: number | undefined): string {
  return timeUs === undefined ? '' : ` at ${Number((timeUs / 1000).toFixed(6))} ms`;
}

function describeDurability(violation: Violation & { property: 'durability' }): string {
  switch (violation.kind) {
    case 'lost': {
      const { message, client, answeredBy, missingIn } = violation;
      return `${client} received the reply of group ${answeredBy} to ${message}, but in the end group ${missingIn} does not have ${message}`;
    }
    case 'undone': {
      const { message, client, group, index, before, after, replica } = violation;
      const instead = after === undefined ? 'there is none' : `it is ${after} at ${replica}`;
      return `delivery ${index + 1} of group ${group} was ${before} when ${client} received its reply to ${message}, but after a power cut ${instead}`;
    }
    case 'half': {
      const { message, keptBy, missingIn } = violation;
      return `after a power cut, group ${keptBy} has ${message}, but group ${missingIn} does not`;
    }
  }
}

function describeIntegrity(violation: Violation & { property: 'uniform-integrity' }): string {
  const { replica } = violation;
  switch (violation.kind) {
    case 'delivered-twice':
      return `${violation.message} was delivered twice at ${replica}`;
    case 'never-multicast':
      return `${violation.message} was delivered at ${replica}, but never multicast`;
    case 'before-multicast':
      return `${violation.message} was delivered at ${replica} before it was multicast`;
    case 'not-a-destination':
      return `${violation.message} was delivered at ${replica}, but is addressed to ${listGroups(violation.destinations)}`;
    case 'restored-unknown': {
      const { restored, group, deliveredByGroup } = violation;
      return `${replica} installed a snapshot of ${restored} deliveries, but the history has only ${deliveredByGroup} of group ${group}`;
    }
  }
}

function listGroups(groups: readonly number[]): string {
  if (groups.length === 0) return 'no group';
  return `${groups.length === 1 ? 'group' : 'groups'} ${groups.join(', ')}`;
}
