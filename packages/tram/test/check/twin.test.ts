/** The judge against its naive twin, on small runs that are correct but for a few accidents. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MalformedTraceError, type TraceEvent } from '../../src/check/events.js';
import { judge } from '../../src/check/judge.js';
import { PROPERTIES, type Property } from '../../src/check/properties.js';
import {
  answered,
  at,
  clientCrash,
  clientStart,
  deliver,
  end,
  era,
  groups,
  multicast,
  opened,
  recover,
  restart,
  restore,
  strict,
  tree,
} from './events.js';
import { judgeNaively } from './naive.js';

interface Draw {
  sizes: number[];
  withTree: boolean;
  messages: { destinations: number[]; client: number }[];
  /** Decides which process makes the next step. */
  schedule: number[];
  accidents: { kind: number; at: number; pick: number; count: number }[];
  quiescent: boolean;
  isStrict: boolean;
  /** What each era promises; if undefined, there are no eras. */
  durability: 'everySecond' | 'always' | undefined;
  /** At an event, all replicas restart, and deliver again what they had, or the first so many of that. One may not open the era. */
  cuts: { at: number; count: number; skips: number }[];
  /** For each client: the clock that it reads, 0 for none. Clock 1 needs no name. */
  clocks: number[];
  /** So many events happen at the same time. */
  eventsPerUs: number;
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
  isStrict: fc.boolean(),
  durability: fc.constantFrom(undefined, 'everySecond' as const, 'always' as const),
  cuts: fc.array(fc.record({ at: fc.nat(99), count: fc.nat(9), skips: fc.nat(12) }), {
    maxLength: 2,
  }),
  clocks: fc.oneof(
    fc.array(fc.constant(1), { minLength: 3, maxLength: 3 }),
    fc.array(fc.nat(3), { minLength: 3, maxLength: 3 }),
  ),
  eventsPerUs: fc.integer({ min: 1, max: 4 }),
});

/**
 * A correct run: every group delivers in multicast order; replicas interleave by the schedule. A message
 * is multicast no earlier than necessary, and a group answers when it delivers.
 */
function correctRun({ sizes, messages, schedule, withTree, isStrict }: Draw): TraceEvent[] {
  const start = tree([-1, 0, 0], ...sizes);
  const processes: TraceEvent[][] = [];
  for (const [group, size] of sizes.entries()) {
    const ids = messages.flatMap((m, i) => (m.destinations.includes(group) ? [`m${i}`] : []));
    for (let member = 0; member < size; member++) {
      processes.push(deliver(`${group}/${member}`, ...ids));
    }
  }
  const shape = withTree || start.event !== 'groups' ? start : groupsWithout(start);
  const events: TraceEvent[] = [isStrict ? strict(shape) : shape];
  let multicasts = 0;
  const hasAnswered = new Set<string>();
  for (let step = 0; processes.some((rest) => rest.length > 0); step++) {
    const alive = processes.filter((rest) => rest.length > 0);
    const event = alive[(schedule[step] ?? 0) % alive.length].shift()!;
    if (event.event !== 'deliver') throw new Error('replicas only deliver');
    for (; multicasts <= Number(event.id.slice(1)); multicasts++) {
      const { destinations, client } = messages[multicasts];
      events.push(multicast(`m${multicasts}`, destinations, `c${client}`));
    }
    events.push(event);
    const answer = `${event.id} of ${event.group}`;
    if (!hasAnswered.has(answer)) events.push(answered(event.id, event.group));
    hasAnswered.add(answer);
  }
  return events;
}

function groupsWithout({ groups }: TraceEvent & { event: 'groups' }): TraceEvent {
  return { event: 'groups', groups };
}

/** The clocks of clients, and the times that they read there. */
function withTimes(events: TraceEvent[], { clocks, eventsPerUs, messages }: Draw): TraceEvent[] {
  const clockOf = (id: string) => clocks[messages[Number(id.slice(1))]?.client ?? 0];
  const [start, ...rest] = events;
  const eras = rest[0]?.event === 'era' ? rest.splice(0, 1) : [];
  const timed = rest.map((event, i) => {
    if (event.event !== 'multicast' && event.event !== 'answered') return event;
    return clockOf(event.id) === 0 ? event : at(Math.floor(i / eventsPerUs), event);
  });
  const named = clocks.flatMap((clock, client) =>
    clock > 1 ? [clientStart(`c${client}`, `clock ${clock}`)] : [],
  );
  return [start, ...eras, ...named, ...timed];
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

/** The eras of a run, each of which begins after a power cut. */
function withEras(events: TraceEvent[], { durability, cuts, sizes }: Draw): TraceEvent[] {
  if (durability === undefined) return events;
  const [start, ...rest] = events;
  const places = cuts.map(({ at }) => at % (rest.length + 1));
  const replicas = sizes.flatMap((size, group) =>
    Array.from({ length: size }, (_, member) => `${group}/${member}`),
  );
  const result = [start, era(1, durability)];
  for (const [i, event] of [...rest, undefined].entries()) {
    for (const [cut, place] of places.entries()) {
      if (place !== i) continue;
      const { count, skips } = cuts[cut];
      const recovered = replicas.map((replica, k) => {
        const kept = deliveredBy(result, replica).slice(0, count);
        const events = recover(replica, ...kept);
        return k === skips ? events.slice(0, -1) : events;
      });
      const number = result.filter((earlier) => earlier.event === 'era').length + 1;
      result.push(era(number, durability), ...recovered.flat());
    }
    if (event !== undefined) result.push(event);
  }
  return result;
}

/** In its last incarnation, without snapshots. */
function deliveredBy(events: readonly TraceEvent[], replica: string): string[] {
  const start = events.findLastIndex((e) => e.event === 'restart' && e.replica === replica);
  return events
    .slice(start + 1)
    .flatMap((e) => (e.event === 'deliver' && e.replica === replica ? [e.id] : []));
}

test('the judge and its naive twin agree on every property', () => {
  const met = new Map<string, number>();
  fc.assert(
    fc.property(draws, (draw) => {
      const events = withTimes(withAccidents(withEras(correctRun(draw), draw), draw), draw);
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
  for (const outcome of ['unknown', 'not-promised']) {
    expect(met.get(`real-time-order ${outcome}`), outcome).toBeGreaterThan(0);
    expect(met.get(`durability ${outcome}`), outcome).toBeGreaterThan(0);
  }
});

const FOUND: [found: string, property: Property, events: TraceEvent[]][] = [
  [
    'what a group keeps counts, even if its members begin beyond all that is known of it',
    'uniform-prefix-order',
    // Group 0 has a: its snapshot covers a, and a delivery that nobody knows.
    [
      groups(1, 1),
      era(1),
      multicast('a', [0, 1]),
      multicast('b', [0, 1], 'c2'),
      ...deliver('0/0', 'a'),
      era(2),
      restart('0/0'),
      restore('0/0', '0/0', 2),
      opened('0/0'),
      ...recover('1/0', 'b'),
      end(),
    ],
  ],
  [
    'a client is of the era in which it is named first, even if it crashes there',
    'durability',
    [
      groups(1, 1),
      era(1, 'everySecond'),
      clientCrash('c1'),
      era(2, 'everySecond'),
      ...recover('0/0'),
      ...recover('1/0'),
      multicast('a', [0, 1]),
      ...deliver('0/0', 'a'),
      end(),
    ],
  ],
];

test.each(FOUND)('found by the test above: %s', (_, property, events) => {
  const verdict = judge(events);
  const outcomes = Object.fromEntries(verdict.properties.map((p) => [p.property, p.outcome]));
  expect(outcomes[property]).toBe('violated');
  expect(outcomes).toEqual(judgeNaively(events));
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
      expect(cycle.length).toBe(shortestCycleLength(delivered.flatMap(pairsOf)));
      longest = Math.max(longest, cycle.length);
    }),
    { numRuns: 5_000 },
  );
  expect(longest).toBeGreaterThanOrEqual(3);
});

test('one order of all deliveries, which times that are drawn at random contradict', () => {
  const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const GROUPS = IDS.length + 1;
  const oneEach = { minLength: IDS.length, maxLength: IDS.length };
  const runs = fc.record({
    order: fc.shuffledSubarray(IDS, { minLength: IDS.length }),
    /** Each message shares a group with the next one in this order, and perhaps one with others. */
    more: fc.array(fc.uniqueArray(fc.nat(GROUPS - 1), { maxLength: 1 }), oneEach),
    /** When each message is multicast, how long it waits for an answer, and whose it is. Few are answered. */
    calls: fc.array(
      fc.record({
        from: fc.nat(9),
        lasts: fc.nat(4),
        client: fc.nat(3),
        isAnswered: fc.nat(3).map((draw) => draw === 0),
      }),
      oneEach,
    ),
  });
  const lengths = new Map<number, number>();
  fc.assert(
    fc.property(runs, ({ order, more, calls }) => {
      const destinations = IDS.map((id, i) => {
        const place = order.indexOf(id);
        return [...new Set([place, place + 1, ...more[i]])];
      });
      const steps = IDS.flatMap((id, i) => {
        const { from, lasts, client, isAnswered } = calls[i];
        const sent = at(from, multicast(id, destinations[i], `c${client}`));
        return isAnswered ? [sent, at(from + lasts, answered(id, destinations[i][0]))] : [sent];
      });
      steps.sort((one, other) => timeOf(one) - timeOf(other));
      const delivered = Array.from({ length: GROUPS }, (_, group) =>
        order.filter((id) => destinations[IDS.indexOf(id)].includes(group)),
      );
      const events = [
        strict(groups(...new Array<number>(GROUPS).fill(1))),
        ...steps,
        ...delivered.flatMap((ids, group) => deliver(`${group}/0`, ...ids)),
      ];
      const verdict = judge(events);
      const outcomes = Object.fromEntries(verdict.properties.map((p) => [p.property, p.outcome]));
      expect(outcomes).toEqual(judgeNaively(events));

      const found = verdict.properties.find((p) => p.property === 'real-time-order')!;
      if (found.outcome !== 'violated') return;
      const { violation } = found;
      if (violation.property !== 'real-time-order') throw new Error('the wrong violation');
      const { cycle } = violation;
      for (const [i, step] of cycle.entries()) {
        expect(cycle[(i + 1) % cycle.length].before).toBe(step.after);
        if ('replica' in step) {
          const ids = delivered[Number(step.replica.split('/')[0])];
          expect(pairsOf(ids)).toContainEqual([step.before, step.after]);
        } else {
          const [one, other] = [step.before, step.after].map((id) => calls[IDS.indexOf(id)]);
          expect(step.receivedUs).toBe(one.from + one.lasts);
          expect(step.multicastUs).toBe(other.from);
          if (one.client !== other.client) expect(step.receivedUs).toBeLessThan(other.from);
        }
      }
      const inTime = steps.flatMap((one, i) =>
        steps.slice(i + 1).flatMap((other) => precedesInTime(one, other, calls, IDS)),
      );
      const pairs = [...delivered.flatMap(pairsOf), ...inTime];
      expect(cycle.length).toBe(shortestCycleLength(pairs));
      lengths.set(cycle.length, (lengths.get(cycle.length) ?? 0) + 1);
    }),
    { numRuns: 1_000 },
  );
  for (const length of [2, 3, 4]) expect(lengths.get(length), `${length}`).toBeGreaterThan(0);
});

function timeOf(event: TraceEvent): number {
  if (event.event !== 'multicast' && event.event !== 'answered') throw new Error('it has no time');
  return event.timeUs!;
}

/** The pair of messages, if `one` is a reply and `other` a later multicast. */
function precedesInTime(
  one: TraceEvent,
  other: TraceEvent,
  calls: readonly { readonly client: number }[],
  ids: readonly string[],
): Pair[] {
  if (one.event !== 'answered' || other.event !== 'multicast') return [];
  const isSame = calls[ids.indexOf(one.id)].client === calls[ids.indexOf(other.id)].client;
  return isSame || timeOf(one) < timeOf(other) ? [[one.id, other.id]] : [];
}

type Pair = readonly [before: string, after: string];

function pairsOf(ids: readonly string[]): Pair[] {
  return ids.flatMap((before, i) => ids.slice(i + 1).map((after): Pair => [before, after]));
}

/** By powers of the relation: the least n with something n steps before itself. */
function shortestCycleLength(pairs: readonly Pair[]): number {
  const step = (id: string) => pairs.flatMap(([before, after]) => (before === id ? [after] : []));
  const ids = [...new Set(pairs.flat())];
  let reached = new Map(ids.map((id) => [id, new Set(step(id))]));
  for (let length = 1; length <= ids.length; length++) {
    if (ids.some((id) => reached.get(id)!.has(id))) return length;
    reached = new Map(ids.map((id) => [id, new Set([...reached.get(id)!].flatMap(step))]));
  }
  return Number.POSITIVE_INFINITY;
}
