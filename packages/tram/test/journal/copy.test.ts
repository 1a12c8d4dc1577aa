/** A journal that is written from another one. */
import { expect, test } from 'vitest';
import { COPY_ERA, type CopiedGroup, copyJournal } from '../../src/journal/copy.js';
import type { DiskFile } from '../../src/journal/disk.js';
import { SECTOR_BYTES } from '../../src/journal/format.js';
import { PackedEntries } from '../../src/journal/packed-entries.js';
import { JournalReader } from '../../src/journal/reader.js';
import { entriesOf } from '../../src/journal/sequence.js';
import { Bench, bodiesIn, FIRST_INDEX } from './bench.js';
import { MemoryDisk } from './memory-disk.js';

const IDENTITY = { clusterId: 'fedcba98765432100123456789abcdef', host: 2, firstSession: 70_000 };

function groupsIn(disk: MemoryDisk, below: readonly number[]): CopiedGroup[] {
  const reader = new JournalReader(disk);
  return below.map((index, group) => ({
    group,
    sequence: reader.sequence(1, group)!,
    below: index,
  }));
}

function copyOf(disk: MemoryDisk, below: readonly number[]): MemoryDisk {
  const copy = new MemoryDisk();
  copyJournal(copy, IDENTITY, groupsIn(disk, below));
  return copy;
}

test('has the entries below an index, in an open era, under its own identity', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk);
  const first = bench.add(0, 10, 0, 30, 8);
  bench.add(1, 8);
  bench.settle();
  const copy = copyOf(disk, [FIRST_INDEX + 3, FIRST_INDEX]);
  const reader = new JournalReader(copy);
  expect(reader.identity).toEqual({ ...IDENTITY, promisedEra: COPY_ERA });
  expect(reader.eras).toEqual([COPY_ERA]);
  expect(reader.isOpened(COPY_ERA)).toBe(true);
  expect(reader.sequence(COPY_ERA, 0)).toMatchObject({ isFirst: true, end: FIRST_INDEX + 3 });
  expect(bodiesIn(copy, 0)).toEqual(first.slice(0, 3));
  expect(reader.sequence(COPY_ERA, 1)).toMatchObject({ isFirst: true, end: FIRST_INDEX });
});

test('has a snapshot that counts, and the entries behind it', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { groups: 1 });
  bench.add(0, 8, 8);
  const state = Array.from({ length: 250 }, (_, i) => i * i);
  bench.snapshot(0, FIRST_INDEX + 2, state);
  bench.host.group(0).stable(FIRST_INDEX + 2);
  const behind = bench.add(0, 8, 16);
  bench.settle();
  const copy = copyOf(disk, [FIRST_INDEX + 4]);
  const sequence = new JournalReader(copy).sequence(COPY_ERA, 0)!;
  expect(sequence).toMatchObject({ snapshotIndex: FIRST_INDEX + 2, end: FIRST_INDEX + 4 });
  expect([...sequence.readSnapshot()!]).toEqual(state);
  expect(bodiesIn(copy, 0)).toEqual(behind);
});

test('goes on after entries that fill a batch', () => {
  // Three of them are larger than what one batch usually holds.
  const large = new Int32Array(1_500_000).fill(7);
  const store = new PackedEntries(0, 2);
  store.add([2, 3, 4].map((index) => large.subarray(index)));
  const sequence = {
    ...{ group: 0, snapshotIndex: 2, isFirst: true, snapshotFromParent: 2, end: 5, store },
    readSnapshot: () => undefined,
  };
  const copy = new MemoryDisk();
  copyJournal(copy, IDENTITY, [{ group: 0, sequence, below: 5 }]);
  const lengths = Array.from(
    entriesOf(new JournalReader(copy).sequence(COPY_ERA, 0)!),
    ({ index, count }) => [index, count],
  );
  expect(lengths).toEqual([2, 3, 4].map((index) => [index, large.length - index]));
});

test('is not a journal before all of it is written', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk);
  bench.add(0, 10);
  bench.settle();
  const groups = groupsIn(disk, [FIRST_INDEX + 1, FIRST_INDEX]);
  const calls = copyOf(disk, [FIRST_INDEX + 1, FIRST_INDEX]).calls.length;
  for (let failing = 0; failing < calls; failing++) {
    const copy = new MemoryDisk();
    copy.before = () => {
      if (copy.calls.length >= failing) throw new Error('the power is cut');
    };
    expect(() => copyJournal(copy, IDENTITY, groups)).toThrow('the power is cut');
    // The last call makes the name of the identity durable.
    if (failing < calls - 1) expect(new JournalReader(copy).identity).toBeUndefined();
  }
});

test('reads each segment once, although groups lie side by side', () => {
  const opened: string[] = [];
  class WatchedDisk extends MemoryDisk {
    override open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
      if (how === 'read' && path.includes('segment')) opened.push(path);
      return super.open(path, how);
    }
  }
  const disk = new WatchedDisk();
  const bench = Bench.open(disk, { segmentBytes: 4 * SECTOR_BYTES });
  const bodies: number[][][] = [[], []];
  for (let batch = 0; batch < 8; batch++) {
    for (const group of [0, 1]) bodies[group].push(...bench.add(group, 8, 16));
    bench.settle();
  }
  const groups = groupsIn(disk, [FIRST_INDEX + 16, FIRST_INDEX + 15]);
  opened.length = 0;
  const copy = new MemoryDisk();
  copyJournal(copy, IDENTITY, groups);
  expect(opened.length).toBeGreaterThan(1);
  expect(new Set(opened).size).toBe(opened.length);
  expect(bodiesIn(copy, 0)).toEqual(bodies[0]);
  expect(bodiesIn(copy, 1)).toEqual(bodies[1].slice(0, -1));
});
