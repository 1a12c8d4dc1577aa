/** Where everything lies that is under way between hosts: places in a buffer, rows in a queue. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RowQueue } from '../../../src/memory/machines/queue.js';
import { Space } from '../../../src/memory/machines/space.js';

const FIRST = 5;

describe('Space', () => {
  test('places never overlap, and are found whenever there is room in one piece', () => {
    const take = fc.record({ count: fc.integer({ min: 1, max: 12 }) });
    const steps = fc.array(fc.oneof(take, fc.constant('mark'), fc.constant('free')));
    fc.assert(
      fc.property(fc.integer({ min: 12, max: 40 }), steps, (words, script) => {
        const space = new Space(FIRST, words);
        /** Places and marks in their order; a mark frees all places before it. */
        const held: ({ at: number; count: number } | { mark: number })[] = [];
        for (const step of script) {
          if (step === 'mark') held.push({ mark: space.mark });
          else if (step === 'free') {
            const last = held.findIndex((one) => 'mark' in one);
            if (last < 0) continue;
            space.free((held[last] as { mark: number }).mark);
            held.splice(0, last + 1);
          } else {
            const at = space.take((step as { count: number }).count);
            const places = held.filter((one) => 'at' in one);
            if (at < 0) {
              expect(places.length).toBeGreaterThan(0);
              continue;
            }
            const { count } = step as { count: number };
            expect(at).toBeGreaterThanOrEqual(FIRST);
            expect(at + count).toBeLessThanOrEqual(FIRST + words);
            for (const other of places) {
              expect(at + count <= other.at || other.at + other.count <= at).toBe(true);
            }
            held.push({ at, count });
          }
        }
      }),
    );
  });

  test('a mark of one who took nothing, given back late, frees nothing that was taken since', () => {
    const space = new Space(0, 10);
    space.take(6);
    const mark = space.mark;
    space.free(mark);
    const again = space.mark;
    expect(space.take(8)).toBe(0);
    space.free(again);
    expect(space.take(4)).toBe(-1);
    space.free(space.mark);
    expect(space.take(10)).toBe(0);
  });

  test('what can never fit is an error, not a wait', () => {
    expect(() => new Space(0, 10).take(11)).toThrow(RangeError);
  });
});

describe('RowQueue', () => {
  test('is a queue of rows, however it grows', () => {
    const steps = fc.array(fc.oneof(fc.integer(), fc.constant('shift'), fc.constant('clear')), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), steps, (width, script) => {
        const queue = new RowQueue(width, 2);
        const naive: number[][] = [];
        for (const step of script) {
          if (step === 'clear') {
            queue.clear();
            naive.length = 0;
          } else if (step === 'shift') {
            if (naive.length === 0) continue;
            queue.shift();
            naive.shift();
          } else {
            const row = queue.add();
            const values = Array.from({ length: width }, (_, column) => (step as number) + column);
            for (const [column, value] of values.entries()) queue.set(row, column, value);
            naive.push(values);
          }
          expect(queue.isEmpty).toBe(naive.length === 0);
          expect(queue.end - queue.first).toBe(naive.length);
          for (const [i, values] of naive.entries()) {
            const row = values.map((_, column) => queue.get(queue.first + i, column));
            expect(row).toEqual(values);
          }
        }
      }),
    );
  });
});
