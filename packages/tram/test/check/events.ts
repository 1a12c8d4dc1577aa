/** Short forms for writing histories in tests. */

import type { TraceEvent } from '../../src/check/events.js';
import { judge, type Verdict } from '../../src/check/judge.js';
import type { Property } from '../../src/check/properties.js';

/** `groups(3, 3)`: group 0 with replicas 0/0, 0/1, 0/2, and group 1 likewise. */
export function groups(...sizes: number[]): TraceEvent {
  return { event: 'groups', groups: membership(sizes) };
}

/** The same with the overlay tree. */
export function tree(parents: number[], ...sizes: number[]): TraceEvent {
  return { event: 'groups', groups: membership(sizes), parents };
}

/** The same run, which promises real-time order. */
export function strict(event: TraceEvent): TraceEvent {
  if (event.event !== 'groups') throw new Error('only the groups promise an order');
  return { ...event, order: 'strict' };
}

function membership(sizes: number[]): Record<string, string[]> {
  return Object.fromEntries(
    sizes.map((size, group) => [
      String(group),
      Array.from({ length: size }, (_, member) => `${group}/${member}`),
    ]),
  );
}

export function multicast(
  id: string,
  destinations: number[],
  client = 'c1',
  entryGroup?: number,
): TraceEvent {
  return {
    event: 'multicast',
    id,
    client,
    destinations,
    ...(entryGroup !== undefined && { entryGroup }),
  };
}

/** The same event, with a time. */
export function at(timeUs: number, event: TraceEvent): TraceEvent {
  if (event.event !== 'multicast' && event.event !== 'answered') throw new Error('it has no time');
  return { ...event, timeUs };
}

/** The replica delivers these, in this order. */
export function deliver(replica: string, ...ids: string[]): TraceEvent[] {
  const group = Number(replica.split('/')[0]);
  return ids.map((id) => ({ event: 'deliver', id, group, replica }));
}

/** Every member of the group delivers these. */
export function deliverAll(group: number, size: number, ...ids: string[]): TraceEvent[] {
  return Array.from({ length: size }, (_, member) => deliver(`${group}/${member}`, ...ids)).flat();
}

export const clientStart = (client: string, clock: string): TraceEvent => ({
  event: 'client-start',
  client,
  clock,
});
export const era = (
  number: number,
  durability: 'none' | 'everySecond' | 'always' = 'always',
): TraceEvent => ({ event: 'era', era: number, durability });
/** The replica restarts, and delivers again what its group has recovered. */
export const recover = (replica: string, ...ids: string[]): TraceEvent[] => [
  restart(replica),
  ...deliver(replica, ...ids),
  opened(replica),
];
export const opened = (replica: string): TraceEvent => ({ event: 'opened', replica });
export const answered = (id: string, group: number): TraceEvent => ({
  event: 'answered',
  id,
  group,
});
export const touch = (id: string, group: number): TraceEvent => ({ event: 'touch', id, group });
export const crash = (replica: string): TraceEvent => ({ event: 'crash', replica });
export const restart = (replica: string): TraceEvent => ({ event: 'restart', replica });
export const restore = (replica: string, from: string, count: number): TraceEvent => ({
  event: 'restore',
  replica,
  from,
  count,
});
export const clientCrash = (client: string): TraceEvent => ({ event: 'client-crash', client });
export const end = (quiescent = true): TraceEvent => ({ event: 'end', quiescent });

export function judgeEvents(...events: (TraceEvent | TraceEvent[])[]): Verdict {
  return judge(events.flat());
}

/** The properties that are violated, with their witnesses. */
export function witnesses(verdict: Verdict): Partial<Record<Property, string>> {
  const found: Partial<Record<Property, string>> = {};
  for (const property of verdict.properties) {
    if (property.outcome === 'violated') found[property.property] = property.witness;
  }
  return found;
}
