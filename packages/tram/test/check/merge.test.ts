/** The merge visits every item a bounded number of times, whatever the size of the history. */

import { expect, test } from 'vitest';
import { findCycle } from '../../src/check/merge.js';

const CLIENTS = 10;

/** A run in which every client waits for the reply to its last message; group g delivers every second message. */
function sequencesOf(messages: number): { deliveries: Int32Array[]; timelines: Int32Array[] } {
  const all = Array.from({ length: messages }, (_, message) => message);
  const clock = all.flatMap((message) =>
    message < CLIENTS ? [message] : [~(message - CLIENTS), message],
  );
  const timelines = Array.from({ length: CLIENTS }, (_, client) =>
    clock.filter((item) => (item < 0 ? ~item : item) % CLIENTS === client),
  );
  return {
    deliveries: [all, all.filter((message) => message % 2 === 0)].map(toInts),
    timelines: [clock, ...timelines].map(toInts),
  };
}

const toInts = (items: number[]): Int32Array => Int32Array.from(items);

/** How often the merge reads an item. */
function countReads(messages: number): number {
  let reads = 0;
  const counted = (items: Int32Array): Int32Array =>
    new Proxy(items, {
      get(target, key) {
        if (typeof key === 'string' && /^\d+$/.test(key)) reads++;
        const value = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  const { deliveries, timelines } = sequencesOf(messages);
  const cycle = findCycle(deliveries.map(counted), timelines.map(counted), messages);
  expect(cycle).toBeUndefined();
  return reads;
}

test('twice as many messages take twice as many steps', () => {
  const [few, many] = [countReads(1_000), countReads(2_000)];
  expect(few).toBeGreaterThan(1_000);
  expect(many / few).toBeGreaterThan(1.95);
  expect(many / few).toBeLessThan(2.05);
});

test('a reply precedes later multicasts only', () => {
  const [a, b, c] = [0, 1, 2];
  const find = (delivered: number[], timeline: number[]) =>
    findCycle([toInts(delivered)], [toInts(timeline)], 3);
  expect(find([b, a], [a, ~a, b])).toHaveLength(2);
  expect(find([b, a], [a, b, ~a])).toBeUndefined();
  // Multicasts precede nothing, and replies follow nothing.
  expect(find([c, b, a], [a, b, c, ~a, ~b, ~c])).toBeUndefined();
  // Messages that are neither delivered nor answered do not matter.
  expect(find([b, a], [a, ~a, c, b])).toHaveLength(2);
});
