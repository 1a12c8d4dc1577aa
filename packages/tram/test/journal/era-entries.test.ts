/** Entries of several groups, read in one pass. */
import { expect, test } from 'vitest';
import type { DiskFile } from '../../src/journal/disk.js';
import { SECTOR_BYTES } from '../../src/journal/format.js';
import { JournalReader } from '../../src/journal/reader.js';
import { entriesOf, STRETCH_ENTRIES_MAX } from '../../src/journal/sequence.js';
import { startWithinEra, stretchesOf } from '../../src/journal/start.js';
import { Bench, FIRST_INDEX } from './bench.js';
import { MemoryDisk } from './memory-disk.js';
import { bodiesOf } from './model.js';

const GROUPS = [0, 1];

class WatchedDisk extends MemoryDisk {
  readonly opened: string[] = [];

  override open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
    if (how === 'read') this.opened.push(path);
    return super.open(path, how);
  }
}

/** Two groups take turns, in segments of four sectors. */
function journal() {
  const disk = new WatchedDisk();
  const bench = Bench.open(disk, { groups: GROUPS.length, segmentBytes: 4 * SECTOR_BYTES });
  const bodies: number[][][] = GROUPS.map(() => []);
  for (let batch = 0; batch < 8; batch++) {
    for (const group of GROUPS) bodies[group].push(...bench.add(group, 8, 16));
    bench.settle();
  }
  const reader = new JournalReader(disk);
  const sequences = GROUPS.map((group) => reader.sequence(1, group)!);
  disk.opened.length = 0;
  return { disk, bodies, sequences };
}

test('each segment is read once, and each group has its entries in order', () => {
  const { disk, bodies, sequences } = journal();
  const found: number[][][] = GROUPS.map(() => []);
  for (const { group, first, count, words, at } of stretchesOf(sequences.map(startWithinEra))) {
    expect(first).toBe(FIRST_INDEX + found[group].length);
    expect(count).toBeLessThanOrEqual(STRETCH_ENTRIES_MAX);
    found[group].push(...bodiesOf(words, at, count).map((body) => [...body]));
  }
  expect(found).toEqual(bodies);
  expect(disk.opened.length).toBeGreaterThan(1);
  expect(new Set(disk.opened).size).toBe(disk.opened.length);
});

test('a pass that is left within a segment is continued without another read', () => {
  const { disk, sequences } = journal();
  for (const { index } of entriesOf(sequences[0])) if (index === FIRST_INDEX + 1) break;
  for (const { index } of entriesOf(sequences[1])) if (index === FIRST_INDEX + 1) break;
  expect(disk.opened).toEqual(['era-1/segment-1']);
});

test('a batch that has changed since it was scanned is corruption that is named', () => {
  const { disk, sequences } = journal();
  disk.bytes('era-1/segment-2')[2 * SECTOR_BYTES + 40] ^= 1;
  expect(() => [...entriesOf(sequences[0])]).toThrow(
    `era-1/segment-2 is corrupt at byte ${2 * SECTOR_BYTES}`,
  );
});
