/**
 * Real-time order. "Some replica delivers m before m′" and "a reply to m was received before m′ was
 * multicast" have no cycle together exactly if all deliveries and all timelines can be merged.
 *
 * Two events can be compared in time if they are of the same client, or if their clients read the same
 * clock and the times differ. So there is a timeline for each client and one for each clock. Only the
 * first reply to a message is in them: a later reply precedes nothing that the first one does not.
 */

import { Deliveries } from './acyclic-order.js';
import type { GroupOrder } from './group-order.js';
import type { History } from './history.js';
import { findCycle, type Step } from './merge.js';
import type { RealTimeStep, Violation } from './properties.js';

export function findRealTimeViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  const deliveries = new Deliveries(history, orders);
  const timelines = [...timelinesOfClients(history), ...timelinesOfClocks(history)];
  const cycle = findCycle(deliveries.sequences, timelines, history.messageCount);
  if (cycle === undefined) return undefined;
  const isDelivered = ({ sequence }: Step) => sequence < deliveries.sequences.length;
  return {
    property: 'real-time-order',
    cycle: cycle.map((step) =>
      isDelivered(step) ? deliveries.describe(step) : describeStep(history, step),
    ),
  };
}

/** How many clocks the clients read. A client whose events have no times counts as a clock of its own. */
export function countClocks(history: History): number {
  const withoutTimes = new Set<number>();
  const clocks = new Set<string | undefined>();
  for (const message of history.multicasts.view()) {
    const client = history.clientOf(message);
    if (history.hasTimes(client)) clocks.add(history.clockOf[client]);
    else withoutTimes.add(client);
  }
  return clocks.size + withoutTimes.size;
}

function timelinesOfClients(history: History): Int32Array[] {
  const events: number[][] = history.clientNames.map(() => []);
  for (const event of history.clientEvents.view()) events[clientOf(history, event)].push(event);
  return events.map((timeline) => Int32Array.from(timeline));
}

function timelinesOfClocks(history: History): Int32Array[] {
  const { clientEventUs } = history;
  const events = history.clientEvents.view();
  const placesOf = new Map<string | undefined, number[]>();
  events.forEach((event, place) => {
    const client = clientOf(history, event);
    if (!history.hasTimes(client)) return;
    const clock = history.clockOf[client];
    const places = placesOf.get(clock);
    if (places === undefined) placesOf.set(clock, [place]);
    else places.push(place);
  });
  // At the same time, multicasts come first: a reply that comes with them does not precede them.
  const byTime = (one: number, other: number) =>
    clientEventUs[one] - clientEventUs[other] ||
    Number(events[one] < 0) - Number(events[other] < 0);
  return [...placesOf.values()].map((places) =>
    // The events of each client are sorted already; this sort merges such runs.
    Int32Array.from(places.sort(byTime), (place) => events[place]),
  );
}

function clientOf(history: History, event: number): number {
  return history.clientOf(event < 0 ? ~event : event);
}

function describeStep(history: History, { before, after }: Step): RealTimeStep {
  const timeOf = (event: number): number | undefined => {
    const timeUs = history.clientEventUs[history.clientEvents.view().indexOf(event)];
    return Number.isNaN(timeUs) ? undefined : timeUs;
  };
  return {
    before: history.messageIds[before],
    after: history.messageIds[after],
    answeredBy: history.groupNumbers[history.answeringGroupOf(before)],
    receivedBy: history.clientNames[history.clientOf(before)],
    receivedUs: timeOf(~before),
    multicastBy: history.clientNames[history.clientOf(after)],
    multicastUs: timeOf(after),
  };
}
