/** What the writer of a journal makes durable, in which order, and what a reader finds of it. */
import { describe, expect, test } from 'vitest';
import { SECTOR_BYTES } from '../../src/journal/format.js';
import { JournalReader } from '../../src/journal/reader.js';
import { Bench, bodiesIn, FIRST_INDEX } from './bench.js';
import { MemoryDisk, systemError } from './memory-disk.js';

const SEGMENT = 'era-1/segment-1';

describe('entries', () => {
  test('of all groups are written and synced together, and then published', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk);
    const first = bench.add(0, 10, 0, 30);
    const second = bench.add(1, 8);
    bench.settle();
    expect(disk.calls.slice(-2)).toEqual([`write ${SEGMENT}`, `sync ${SEGMENT}`]);
    expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 3);
    expect(bench.host.group(1).durable).toBe(FIRST_INDEX + 1);
    expect(bench.told).toEqual([0, 1]);
    expect(bodiesIn(disk, 0)).toEqual(first);
    expect(bodiesIn(disk, 1)).toEqual(second);
    expect(bodiesIn(disk, 0, FIRST_INDEX + 2)).toEqual(first.slice(2));
  });

  test('are not durable before the sync has returned', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk);
    bench.add(0, 10);
    bench.settle();
    const { length } = disk.calls;
    bench.add(0, 10);
    while (disk.calls.length < length + 2) {
      bench.writer.step();
      expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 1);
    }
    bench.settle();
    expect(disk.calls.slice(length)).toEqual([`write ${SEGMENT}`, `sync ${SEGMENT}`]);
    expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 2);
  });

  test('are synced when that is wanted, if not every batch is', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { syncsEachBatch: false });
    bench.add(0, 10);
    bench.settle();
    bench.add(0, 10);
    bench.settle();
    expect(bench.host.group(0).durable).toBe(FIRST_INDEX);
    expect(bodiesIn(disk, 0)).toHaveLength(2);
    bench.writer.wantSync();
    bench.settle();
    expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 2);
  });

  test('that fill many batches and segments come back in order', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { segmentBytes: 4096 });
    const bodies: number[][] = [];
    for (let i = 0; i < 200; i++) {
      bodies.push(...bench.add(0, (i * 8) % 300));
      if (i % 3 === 0) bench.settle();
    }
    bench.settle();
    expect(disk.list('era-1').filter((name) => name.startsWith('segment')).length).toBeGreaterThan(
      5,
    );
    expect(bodiesIn(disk, 0)).toEqual(bodies);
  });
});

test.each(Array.from({ length: 20 }, (_, i) => 8 * i))(
  'batches may be filled to their last word: payloads of %i bytes',
  (payloadBytes) => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1, ringWords: 4096, segmentBytes: 2 ** 16 });
    const bodies: number[][] = [];
    while (bench.host.group(0).hasRoom(100)) bodies.push(...bench.add(0, payloadBytes));
    bench.settle();
    expect(bench.writer.syncs).toBeGreaterThan(4);
    expect(bodiesIn(disk, 0)).toEqual(bodies);
  },
);

test.each([
  ['ends a batch', 2 ** 15, 3],
  ['does not end a batch while the disk is behind', 2 ** 11, 1],
])('a piece of a snapshot between entries %s', (_, ringWords, batches) => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { ringWords });
  const journal = bench.host.group(1);
  journal.beginSnapshot(FIRST_INDEX, 0, false);
  bench.settle();
  const { syncs } = bench.writer;
  const bodies: number[][] = [];
  for (let i = 0; i < 3; i++) {
    bodies.push(...bench.add(0, 8, 8));
    journal.addPiece(new Int32Array(200));
  }
  // More follows, two batches of it: so the disk is behind at each piece, if the ring is small.
  journal.endSnapshot();
  for (let i = 0; i < 10; i++) bodies.push(...bench.add(0, 200));
  bench.settle();
  expect(bench.writer.syncs - syncs).toBe(batches + 2);
  expect(bodiesIn(disk, 0)).toEqual(bodies);
});

test('each step makes at most one call to the disk', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { segmentBytes: 4 * SECTOR_BYTES });
  for (let i = 0; i < 40; i++) {
    const { next } = bench.host.group(0);
    bench.add(0, 64);
    if (i % 10 === 9) bench.snapshot(0, next, [i, i, i]);
    bench.host.group(0).stable(next);
    for (let isBusy = true; isBusy; ) {
      const { length } = disk.calls;
      isBusy = bench.writer.step();
      expect(disk.calls.length - length).toBeLessThanOrEqual(1);
    }
  }
});

test('a segment that was not prepared grows rarely', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { segmentBytes: 2 ** 20 });
  const bodies: number[][] = [];
  const sizes = new Set<number>();
  for (let batch = 0; batch < 600; batch++) {
    bodies.push(...bench.add(0, 8));
    bench.settle();
    sizes.add(disk.bytes('era-1/segment-1').length);
  }
  expect([...sizes]).toEqual([2 ** 18, 2 ** 19]);
  expect(bodiesIn(disk, 0)).toEqual(bodies);
});

test('a batch may be larger than a segment', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { segmentBytes: 2 * SECTOR_BYTES });
  const bodies = bench.add(0, 600, 600);
  bench.settle();
  bodies.push(...bench.add(0, 8));
  bench.settle();
  expect(bodiesIn(disk, 0)).toEqual(bodies);
});

test('what is durable is published before the next batch is written', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk);
  bench.add(0, 8);
  bench.settle();
  bench.add(0, 8);
  const synced = (): boolean => disk.calls.at(-1) === 'sync era-1/segment-1';
  while (!synced() || bench.writer.syncs < 2) bench.writer.step();
  bench.add(0, 8);
  while (synced() && bench.host.group(0).durable < FIRST_INDEX + 2) bench.writer.step();
  expect(disk.calls.at(-1)).toBe('sync era-1/segment-1');
  bench.settle();
  expect(bench.host.group(0).durable).toBe(FIRST_INDEX + 3);
});

describe('a host that starts again in the same era', () => {
  test('continues where the journal ends, in a new segment', () => {
    const disk = new MemoryDisk();
    const first = Bench.open(disk);
    const bodies = first.add(0, 10, 20);
    first.settle();
    const again = Bench.open(disk);
    expect(again.host.group(0)).toMatchObject({ next: FIRST_INDEX + 2, durable: FIRST_INDEX + 2 });
    bodies.push(...again.add(0, 30));
    again.settle();
    expect(disk.list('era-1')).toContain('segment-2');
    expect(bodiesIn(disk, 0)).toEqual(bodies);
  });

  test('counts the entries that it has for the next snapshot', () => {
    const disk = new MemoryDisk();
    const first = Bench.open(disk, { snapshotBytes: 400 });
    first.add(0, 200, 200);
    first.settle();
    const again = Bench.open(disk, { snapshotBytes: 400 });
    expect(again.host.group(0).wantsSnapshot).toBe(true);
    expect(again.host.group(1).wantsSnapshot).toBe(false);
  });

  test('takes the number of a batch that was torn again', () => {
    const disk = new MemoryDisk();
    const first = Bench.open(disk, { groups: 1 });
    const bodies = first.add(0, 8);
    first.settle();
    first.add(0, 8);
    first.settle();
    disk.bytes(SEGMENT).fill(0, 2 * SECTOR_BYTES, 2 * SECTOR_BYTES + 40);
    const again = Bench.open(disk, { groups: 1 });
    expect(again.host.group(0).next).toBe(FIRST_INDEX + 1);
    bodies.push(...again.add(0, 16));
    again.settle();
    expect(bodiesIn(disk, 0)).toEqual(bodies);
  });

  test('removes what the earlier writer did not finish', () => {
    const disk = new MemoryDisk();
    const first = Bench.open(disk, { groups: 1 });
    first.add(0, 8);
    first.snapshot(0, FIRST_INDEX + 1, [1]);
    first.settle();
    first.host.group(0).beginSnapshot(FIRST_INDEX + 1, 0, false);
    first.settle();
    first.writer.prepare();
    expect(disk.list('era-1')).toEqual(
      expect.arrayContaining(['g0-3.pending', 'g0-3.draft', 'spare-1']),
    );
    Bench.open(disk, { groups: 1 }).settle();
    expect(disk.list('era-1')).toEqual(['g0-opening.snapshot', 'segment-1']);
  });
});

describe('a snapshot', () => {
  function withSnapshot(): { disk: MemoryDisk; bench: Bench; index: number } {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 2, segmentBytes: 4 * SECTOR_BYTES });
    for (let i = 0; i < 12; i++) {
      bench.add(0, 8);
      bench.settle();
    }
    const index = bench.host.group(0).next;
    bench.snapshot(
      0,
      index,
      Array.from({ length: 250 }, (_, i) => i),
    );
    bench.settle();
    return { disk, bench, index };
  }

  test('is durable before it has its name, and does not count before it is stable', () => {
    const { disk, bench, index } = withSnapshot();
    expect(disk.calls.slice(-4)).toEqual([
      `write era-1/g0-${index}.draft`,
      `sync era-1/g0-${index}.draft`,
      `rename era-1/g0-${index}.draft era-1/g0-${index}.pending`,
      'sync folder era-1',
    ]);
    bench.host.group(0).stable(index - 1);
    bench.settle();
    expect(new JournalReader(disk).sequence(1, 0)!.snapshotIndex).toBe(FIRST_INDEX);
    bench.host.group(0).stable(index);
    bench.settle();
    expect(disk.list('era-1')).not.toContain('g0-opening.snapshot');
    const sequence = new JournalReader(disk).sequence(1, 0)!;
    expect(sequence).toMatchObject({ snapshotIndex: index, end: index });
    expect(Array.from(sequence.readSnapshot()!.subarray(0, 3))).toEqual([0, 1, 2]);
    expect(sequence.readSnapshot()).toHaveLength(250);
  });

  test('that counts replaces older ones and frees segments, which are used again', () => {
    const { disk, bench, index } = withSnapshot();
    disk.calls.length = 0;
    bench.host.group(0).stable(index);
    bench.settle();
    const counted = `rename era-1/g0-${index}.pending era-1/g0-${index}.snapshot`;
    // First the snapshot has its name, durably; then what it replaces goes.
    expect(disk.calls.slice(0, 2)).toEqual([counted, 'sync folder era-1']);
    expect(disk.calls[2]).toBe('remove era-1/g0-opening.snapshot');
    const renamed = disk.calls.filter((call) => call.includes('era-1/spare-'));
    expect(renamed).toEqual([
      'rename era-1/segment-1 era-1/spare-1',
      'rename era-1/segment-2 era-1/spare-2',
      'rename era-1/segment-3 era-1/spare-3',
    ]);
    // After a power cut, no segment is missing between two others.
    for (const rename of renamed) {
      expect(disk.calls[disk.calls.indexOf(rename) + 1]).toBe('sync folder era-1');
    }
    const bodies: number[][] = [];
    for (let i = 0; i < 6; i++) {
      bodies.push(...bench.add(0, 8));
      bench.settle();
    }
    expect(disk.calls).toContain('rename era-1/spare-1 era-1/segment-5');
    expect(disk.calls.filter((call) => call.startsWith('create'))).toEqual([]);
    expect(bodiesIn(disk, 0)).toEqual(bodies);
  });

  test('frees no segment that has entries of another group', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 2, segmentBytes: 4 * SECTOR_BYTES });
    const kept = bench.add(1, 8);
    for (let i = 0; i < 12; i++) {
      bench.add(0, 8);
      bench.settle();
    }
    bench.snapshot(0, FIRST_INDEX + 12, [1]);
    bench.host.group(0).stable(FIRST_INDEX + 12);
    bench.settle();
    expect(disk.list('era-1')).toContain('segment-1');
    expect(bodiesIn(disk, 1)).toEqual(kept);
  });

  test('that was dropped leaves nothing', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1 });
    bench.add(0, 8);
    bench.host.group(0).beginSnapshot(FIRST_INDEX + 1, 0, false);
    bench.host.group(0).addPiece(Int32Array.of(1, 2));
    bench.host.group(0).dropSnapshot();
    bench.settle();
    expect(disk.list('era-1')).toEqual(['g0-opening.snapshot', 'segment-1']);
  });
});

describe('entries that were left out', () => {
  /** Ends with a gap before the snapshot that follows it. */
  function withGap(): { disk: MemoryDisk; bench: Bench; kept: number[][]; later: number[][] } {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1 });
    const kept = bench.add(0, 8, 8);
    const journal = bench.host.group(0);
    journal.leaveOut();
    bench.add(0, 8);
    expect(journal.next).toBe(FIRST_INDEX + 2);
    bench.snapshot(0, FIRST_INDEX + 10, [7]);
    expect(journal.next).toBe(FIRST_INDEX + 10);
    const later = bench.add(0, 16, 24);
    bench.settle();
    return { disk, bench, kept, later };
  }

  test('end what is durable, until a snapshot behind them counts', () => {
    const { disk, bench, kept, later } = withGap();
    const journal = bench.host.group(0);
    expect(journal.durable).toBe(FIRST_INDEX + 2);
    expect(bodiesIn(disk, 0)).toEqual(kept);
    journal.stable(FIRST_INDEX + 10);
    bench.settle();
    expect(journal.durable).toBe(FIRST_INDEX + 12);
    expect(bodiesIn(disk, 0)).toEqual(later);
  });

  test('can be written by the next start, if no snapshot behind them counted', () => {
    const { disk, kept } = withGap();
    const again = Bench.open(disk, { groups: 1 });
    expect(again.host.group(0).next).toBe(FIRST_INDEX + 2);
    for (let i = 0; i < 20; i++) kept.push(...again.add(0, 8));
    again.settle();
    expect(again.host.group(0).durable).toBe(FIRST_INDEX + 22);
    expect(bodiesIn(disk, 0)).toHaveLength(22);
    expect(bodiesIn(disk, 0)).toEqual(kept);
  });
});

test('a host without the state of its group begins with a snapshot', () => {
  const disk = new MemoryDisk();
  Bench.open(disk, { groups: 1 });
  disk.remove('era-1/g0-opening.snapshot');
  const bench = Bench.open(disk, { groups: 1 });
  const journal = bench.host.group(0);
  expect(journal).toMatchObject({ next: 0, durable: 0, wantsMark: true });
  bench.snapshot(0, 50, [1, 2]);
  const bodies = bench.add(0, 8);
  bench.settle();
  expect(journal.durable).toBe(0);
  expect(new JournalReader(disk).sequence(1, 0)).toBeUndefined();
  journal.stable(50);
  bench.settle();
  expect(journal.durable).toBe(51);
  expect(bodiesIn(disk, 0)).toEqual(bodies);
});

describe('a disk that fails', () => {
  test.each([
    ['is full', 'ENOSPC', 'write era-1/segment-1'],
    ['is read-only', 'EROFS', 'create era-1/segment-1'],
    ['fails a sync', 'EIO', 'sync era-1/segment-1'],
  ])('%s: nothing more becomes durable, and what was stays', (_, code, failing) => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1 });
    let bodies: number[][] = [];
    if (!failing.startsWith('create')) {
      bodies = bench.add(0, 8);
      bench.settle();
    }
    const { durable } = bench.host.group(0);
    bench.add(0, 8);
    disk.before = (call) => {
      if (call === failing) throw systemError(code, call);
    };
    expect(() => bench.settle()).toThrow(code);
    expect(bench.host.group(0).durable).toBe(durable);
    const found = bodiesIn(disk, 0);
    expect(found.slice(0, bodies.length)).toEqual(bodies);
  });
});
