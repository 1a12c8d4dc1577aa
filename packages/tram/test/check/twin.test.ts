/** The judge against its naive twin, on small runs that are correct but for a few accidents. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MalformedTraceError, type TraceEvent } from '../../src/check/events.js';
import { judge } from '../../src/check/judge.js';
import { PROPERTIES } from '../../src/check/properties.js';
import { deliver, multicast, tree } from './events.js';
import { judgeNaively } from './naive.js';

interface Draw {
  sizes: number[];
  withTree: boolean;
  messages: { destinations: number[]; client: number }[];
  /** Decides which process makes the next step. */
  schedule: number[];
  accidents: { kind: number; at: number; pick: number; count: number }[];
  quiescent: boolean;
}

const draws: fc.Arbitrary<Draw> = fc.record({
  sizes: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 3, maxLength: 3 }),
  withTree: fc.boolean(),
  messages: fc.array(
    fc.record({
      destinations: fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 3 }),
      client: fc.nat(2),
    }),
    { maxLength: 7 },
  ),
  schedule: fc.array(fc.nat(9), { minLength: 70, maxLength: 70 }),
  accidents: fc.array(
    fc.record({ kind: fc.nat(9), at: fc.nat(199), pick: fc.nat(199), count: fc.nat(6) }),
    { maxLength: 4 },
  ),
  quiescent: fc.boolean(),
});

/** A correct run: every group delivers in multicast order; processes interleave by the schedule. */
function correctRun({ sizes, messages, schedule, withTree }: Draw): TraceEvent[] {
  const start = tree([-1, 0, 0], ...sizes);
  const processes: TraceEvent[][] = [];
  for (const [group, size] of sizes.entries()) {
    const ids = messages.flatMap((m, i) => (m.destinations.includes(group) ? [`m${i}`] : []));
    for (let member = 0; member < size; member++) {
      processes.push(deliver(`${group}/${member}`, ...ids));
    }
  }
  const events: TraceEvent[] = [
    withTree || start.event !== 'groups' ? start : { event: 'groups', groups: start.groups },
    ...messages.map((m, i) => multicast(`m${i}`, m.destinations, `c${m.client}`)),
  ];
  for (let step = 0; processes.some((rest) => rest.length > 0); step++) {
    const alive = processes.filter((rest) => rest.length > 0);
    events.push(alive[(schedule[step] ?? 0) % alive.length].shift()!);
  }
  return events;
}

function withAccidents(events: TraceEvent[], draw: Draw): TraceEvent[] {
  const replicas = draw.sizes.flatMap((size, group) =>
    Array.from({ length: size }, (_, member) => `${group}/${member}`),
  );
  for (const { kind, at, pick, count } of draw.accidents) {
    const i = 1 + (at % Math.max(1, events.length - 1));
    const j = 1 + (pick % Math.max(1, events.length - 1));
    const replica = replicas[pick % replicas.length];
    const from = replicas.find((other) => other[0] === replica[0])!;
    const message = `m${count}`;
    switch (kind) {
      case 0: // A delivery, or the multicast, is lost.
        events.splice(i, 1);
        break;
      case 1: // Two events change places.
        if (events[i] && events[j]) [events[i], events[j]] = [events[j], events[i]];
        break;
      case 2:
        events.splice(i, 0, ...deliver(replica, message));
        break;
      case 3:
        events.splice(i, 0, { event: 'crash', replica });
        break;
      case 4:
        events.splice(i, 0, { event: 'restart', replica });
        break;
      case 5:
        events.splice(
          i,
          0,
          { event: 'restart', replica },
          { event: 'restore', replica, from, count },
        );
        break;
      case 6:
        events.splice(i, 0, { event: 'restore', replica, from, count });
        break;
      case 7:
        events.splice(i, 0, { event: 'client-crash', client: `c${pick % 3}` });
        break;
      case 8:
        events.splice(i, 0, { event: 'touch', id: message, group: pick % 3 });
        break;
      case 9: // A replica stops early, or recovers nothing.
        events = events.filter(
          (event, k) => k < i || event.event !== 'deliver' || event.replica !== replica,
        );
        break;
    }
  }
  return [...events, { event: 'end', quiescent: draw.quiescent }];
}

test('the judge and its naive twin agree on every property', () => {
  const met = new Map<string, number>();
  fc.assert(
    fc.property(draws, (draw) => {
      const events = withAccidents(correctRun(draw), draw);
      let verdict: ReturnType<typeof judge>;
      try {
        verdict = judge(events);
      } catch (error) {
        if (error instanceof MalformedTraceError) return fc.pre(false);
        throw error;
      }
      const outcomes = Object.fromEntries(verdict.properties.map((p) => [p.property, p.outcome]));
      for (const [property, outcome] of Object.entries(outcomes)) {
        const key = `${property} ${outcome}`;
        met.set(key, (met.get(key) ?? 0) + 1);
      }
      expect(outcomes).toEqual(judgeNaively(events));
    }),
    { numRuns: 5_000 },
  );
  // The comparison means something only if it has seen both sides of every property.
  for (const property of PROPERTIES) {
    expect(met.get(`${property} holds`), `${property} holds`).toBeGreaterThan(0);
    expect(met.get(`${property} violated`), `${property} violated`).toBeGreaterThan(0);
  }
});

test('orders that are drawn at random, where cycles of every length occur', () => {
  const orders = fc.array(fc.shuffledSubarray(['a', 'b', 'c', 'd', 'e', 'f']), {
    minLength: 5,
    maxLength: 5,
  });
  let longest = 0;
  fc.assert(
    fc.property(orders, (delivered) => {
      const events: TraceEvent[] = [tree([-1, 0, 0, 0, 0], 1, 1, 1, 1, 1)];
      for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const destinations = delivered.flatMap((ids, group) => (ids.includes(id) ? [group] : []));
        if (destinations.length > 0) events.push(multicast(id, destinations, `client of ${id}`));
      }
      for (const [group, ids] of delivered.entries()) events.push(...deliver(`${group}/0`, ...ids));
      const verdict = judge(events);
      const outcomes = Object.fromEntries(verdict.properties.map((p) => [p.property, p.outcome]));
      expect(outcomes).toEqual(judgeNaively(events));

      const acyclic = verdict.properties.find((p) => p.property === 'uniform-acyclic-order')!;
      if (acyclic.outcome !== 'violated') return;
      const { violation } = acyclic;
      if (violation.property !== 'uniform-acyclic-order') throw new Error('the wrong violation');
      const { cycle } = violation;
      for (const [i, { before, after, replica }] of cycle.entries()) {
        const ids = delivered[Number(replica.split('/')[0])];
        expect(ids.indexOf(before)).toBeGreaterThanOrEqual(0);
        expect(ids.indexOf(before)).toBeLessThan(ids.indexOf(after));
        expect(cycle[(i + 1) % cycle.length].before).toBe(after);
      }
      expect(cycle.length).toBe(shortestCycleLength(delivered));
      longest = Math.max(longest, cycle.length);
    }),
    { numRuns: 5_000 },
  );
  expect(longest).toBeGreaterThanOrEqual(3);
});

/** By powers of the relation: the least n with something n steps before itself. */
function shortestCycleLength(sequences: readonly (readonly string[])[]): number {
  const step = (id: string) =>
    sequences.flatMap((ids) => (ids.includes(id) ? ids.slice(ids.indexOf(id) + 1) : []));
  const ids = [...new Set(sequences.flat())];
  let reached = new Map(ids.map((id) => [id, new Set(step(id))]));
  for (let length = 1; length <= ids.length; length++) {
    if (ids.some((id) => reached.get(id)!.has(id))) return length;
    reached = new Map(ids.map((id) => [id, new Set([...reached.get(id)!].flatMap(step))]));
  }
  return Number.POSITIVE_INFINITY;
}
