/** Where everything lies that is in flight between hosts: pieces of a ring buffer, records of a pooled queue. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PooledQueue } from '../../../src/memory/machines/pooled-queue.js';
import { NO_ROOM, RingAllocator } from '../../../src/memory/machines/ring-allocator.js';

const FIRST = 5;

describe('RingAllocator', () => {
  test('pieces never overlap, and there is room for one whenever nothing is allocated', () => {
    const allocate = fc.record({ count: fc.integer({ min: 1, max: 12 }) });
    const steps = fc.array(fc.oneof(allocate, fc.constant('mark'), fc.constant('free')));
    fc.assert(
      fc.property(fc.integer({ min: 12, max: 40 }), steps, (words, script) => {
        const allocator = new RingAllocator(FIRST, words);
        /** Pieces and marks in their order; a mark frees all pieces before it. */
        const held: ({ at: number; count: number } | { mark: number })[] = [];
        for (const step of script) {
          if (step === 'mark') held.push({ mark: allocator.mark });
          else if (step === 'free') {
            const last = held.findIndex((one) => 'mark' in one);
            if (last < 0) continue;
            allocator.freeTo((held[last] as { mark: number }).mark);
            held.splice(0, last + 1);
          } else {
            const at = allocator.allocate((step as { count: number }).count);
            const pieces = held.filter((one) => 'at' in one);
            if (at === NO_ROOM) {
              expect(pieces.length).toBeGreaterThan(0);
              continue;
            }
            const { count } = step as { count: number };
            expect(at).toBeGreaterThanOrEqual(FIRST);
            expect(at + count).toBeLessThanOrEqual(FIRST + words);
            for (const other of pieces) {
              expect(at + count <= other.at || other.at + other.count <= at).toBe(true);
            }
            held.push({ at, count });
          }
        }
      }),
    );
  });

  test('a mark that was taken before an allocation and is freed after it does not free it', () => {
    const allocator = new RingAllocator(0, 10);
    allocator.allocate(6);
    const mark = allocator.mark;
    allocator.freeTo(mark);
    const again = allocator.mark;
    expect(allocator.allocate(8)).toBe(0);
    allocator.freeTo(again);
    expect(allocator.allocate(4)).toBe(NO_ROOM);
    allocator.freeTo(allocator.mark);
    expect(allocator.allocate(10)).toBe(0);
  });

  test('what can never fit is an error, not a wait', () => {
    expect(() => new RingAllocator(0, 10).allocate(11)).toThrow(RangeError);
  });
});

describe('PooledQueue', () => {
  test('is a queue, however it grows', () => {
    const steps = fc.array(fc.oneof(fc.integer(), fc.constant('drop'), fc.constant('clear')), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(steps, fc.nat(3), (script, drops) => {
        const queue = new PooledQueue(() => ({ value: 0 }), 2);
        const naive: number[] = [];
        let added = 0;
        for (const step of script) {
          if (step === 'clear') {
            queue.clear();
            naive.length = 0;
          } else if (step === 'drop') {
            const count = Math.min(drops, naive.length);
            queue.dropBefore(queue.firstIndex + count);
            naive.splice(0, count);
          } else {
            queue.add().value = step as number;
            naive.push(step as number);
            added++;
          }
          expect(queue.isEmpty).toBe(naive.length === 0);
          expect(queue.endIndex).toBe(added);
          expect(queue.firstIndex).toBe(added - naive.length);
          expect(naive.map((_, i) => queue.at(queue.firstIndex + i).value)).toEqual(naive);
        }
      }),
    );
  });

  test('makes no more records than are in it at a time', () => {
    let made = 0;
    const queue = new PooledQueue(() => ({ number: made++ }), 4);
    for (let i = 0; i < 100; i++) {
      queue.add();
      if (i >= 3) queue.dropBefore(queue.firstIndex + 1);
    }
    expect(made).toBe(4);
  });
});
