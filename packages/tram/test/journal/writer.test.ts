/** What the writer of a journal makes durable, and what a reader finds of it. */
import { describe, expect, test } from 'vitest';
import { Bench, bodiesIn, FIRST_INDEX } from './bench.js';
import { MemoryDisk } from './memory-disk.js';

describe('entries', () => {
  test('of all groups are written and synced together, and then published', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk);
    const first = bench.add(0, 10, 0, 30);
    const second = bench.add(1, 8);
    disk.calls.length = 0;
    bench.settle();
    expect(disk.calls.slice(-2)).toEqual(['write era-1/segment-1', 'sync era-1/segment-1']);
    expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 3);
    expect(bench.host.group(1).durable).toBe(FIRST_INDEX + 1);
    expect(bench.told).toEqual([0, 1]);
    expect(bodiesIn(disk, 0)).toEqual(first);
    expect(bodiesIn(disk, 1)).toEqual(second);
  });

  test('are not durable before the sync has returned', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk);
    bench.add(0, 10);
    do {
      expect(bench.host.group(0).durable).toBe(FIRST_INDEX);
      bench.writer.step();
    } while (disk.calls.at(-1) !== 'sync era-1/segment-1');
    bench.settle();
    expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 1);
  });
});
