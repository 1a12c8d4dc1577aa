/** Which marks the disk of a host holds, and which snapshots count because of them; also after a restart, or a power cut. */
import { describe, expect, test } from 'vitest';
import { SECTOR_BYTES } from '../../src/journal/format.js';
import { JournalReader } from '../../src/journal/reader.js';
import { Bench, type BenchOptions, bodiesIn, FIRST_INDEX } from './bench.js';
import { MemoryDisk, systemError } from './memory-disk.js';
import { PowerDisk } from './power-disk.js';

describe('a mark', () => {
  test('is held once its entry is durable', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1, syncsEachBatch: false });
    const journal = bench.host.group(0);
    bench.mark(0, 1);
    bench.settle();
    expect(journal.heldMark).toBe(0);
    bench.writer.wantSync();
    bench.settle();
    expect(journal.heldMark).toBe(1);
    expect(bench.told).toEqual([0]);
    // Nor is it forgotten once a snapshot has replaced its entry.
    bench.add(0, 8);
    journal.beginSnapshot(journal.next, 1, false);
    journal.endSnapshot();
    journal.stable(journal.next);
    bench.settle();
    expect(bodiesIn(disk, 0)).toEqual([]);
    expect(Bench.open(disk, { groups: 1 }).host.group(0).heldMark).toBe(1);
  });

  /** Entries were left out. The journal goes on from a snapshot at mark 3, which is durable. */
  function withGap(options: BenchOptions = {}): { disk: MemoryDisk; bench: Bench; index: number } {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1, ...options });
    const journal = bench.host.group(0);
    bench.mark(0, 1);
    journal.leaveOut();
    bench.mark(0, 2);
    bench.settle();
    expect(journal).toMatchObject({ heldMark: 1, wantsMark: true, wantsSnapshot: false });
    const index = FIRST_INDEX + 10;
    bench.snapshot(0, index, [7], 3);
    expect(journal).toMatchObject({ heldMark: 1, wantsMark: false });
    bench.settle();
    return { disk, bench, index };
  }

  test('is held by a snapshot at it once that is durable, although it does not count', () => {
    const { bench } = withGap();
    expect(bench.host.group(0)).toMatchObject({ heldMark: 3, durable: FIRST_INDEX + 1 });
    expect(bench.told).toEqual([0, 0]);
  });

  test('is held by the entries that continue such a snapshot', () => {
    const { bench } = withGap();
    bench.mark(0, 4);
    bench.settle();
    expect(bench.host.group(0)).toMatchObject({ heldMark: 4, durable: FIRST_INDEX + 1 });
  });

  test('is not held by entries that continue only a snapshot at no mark', () => {
    const { bench, index } = withGap();
    const journal = bench.host.group(0);
    journal.leaveOut();
    journal.beginSnapshot(index + 10, 3, false);
    journal.endSnapshot();
    bench.mark(0, 4);
    bench.settle();
    expect(journal.heldMark).toBe(3);
  });

  test('lets snapshots at it or at earlier ones count, when it is complete', () => {
    const { disk, bench, index } = withGap();
    const journal = bench.host.group(0);
    const bodies = bench.add(0, 8);
    journal.complete(2);
    bench.settle();
    expect(journal.durable).toBe(FIRST_INDEX + 1);
    journal.complete(3);
    bench.settle();
    expect(journal.durable).toBe(index + 1);
    expect(disk.list('era-1')).toEqual([`g0-${index}.snapshot`, 'segment-1']);
    expect(bodiesIn(disk, 0)).toEqual(bodies);
  });

  test('that is complete lets no snapshot count that was taken elsewhere', () => {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1 });
    const journal = bench.host.group(0);
    bench.mark(0, 1);
    bench.add(0, 8);
    journal.beginSnapshot(journal.next, 1, false);
    journal.endSnapshot();
    journal.complete(1);
    bench.settle();
    expect(disk.list('era-1')).toContain(`g0-${journal.next}.pending`);
  });

  test('is not complete if a later one has come without saying so: its snapshot is dropped', () => {
    const { disk, bench, index } = withGap();
    const journal = bench.host.group(0);
    const leapTo = (mark: number): void => {
      journal.leaveOut();
      bench.snapshot(0, index + 10 * mark, [mark], mark);
      bench.add(0, 8);
      bench.settle();
    };
    leapTo(4);
    expect(disk.list('era-1')).not.toContain(`g0-${index}.pending`);
    journal.complete(4);
    leapTo(5);
    expect(journal.heldMark).toBe(5);
    expect(journal.durable).toBe(index + 41);
    expect(bench.writer.pendingSnapshots).toBe(1);
    journal.complete(5);
    bench.settle();
    expect(journal.durable).toBe(index + 51);
    expect(bench.writer.pendingSnapshots).toBe(0);
  });

  describe('after a restart', () => {
    test('is still held by a snapshot that waits, with the entries that continue it', () => {
      const { disk, bench, index } = withGap();
      bench.mark(0, 4);
      const bodies = bench.add(0, 8);
      bench.settle();
      const again = Bench.open(disk, { groups: 1 });
      const journal = again.host.group(0);
      expect(journal).toMatchObject({
        heldMark: 4,
        next: FIRST_INDEX + 1,
        durable: FIRST_INDEX + 1,
      });
      again.settle();
      expect(disk.list('era-1')).toContain(`g0-${index}.pending`);
      const [counted, pending] = new JournalReader(disk).sequences(1, 0);
      expect(counted).toMatchObject({ end: FIRST_INDEX + 1, mark: 0, lastMark: 1 });
      expect(pending).toMatchObject({ snapshotIndex: index, end: index + 2, mark: 3, lastMark: 4 });
      journal.complete(3);
      again.settle();
      expect(journal.durable).toBe(index + 2);
      expect(bodiesIn(disk, 0).slice(1)).toEqual(bodies);
    });

    test('the entries that were left out may come: they continue both', () => {
      const { disk, bench, index } = withGap();
      bench.add(0, 8);
      bench.settle();
      const again = Bench.open(disk, { groups: 1 });
      const journal = again.host.group(0);
      again.add(0, ...Array(index + 5 - journal.next).fill(8));
      again.settle();
      expect(journal.durable).toBe(index + 5);
      expect(new JournalReader(disk).sequences(1, 0).map(({ end }) => end)).toEqual([
        index + 5,
        index + 5,
      ]);
      journal.complete(3);
      again.settle();
      expect(again.ring.durable(0)).toBe(index + 5);
      expect(bodiesIn(disk, 0)).toHaveLength(5);
    });

    test('the snapshot may count while entries before it come', () => {
      const { disk, bench, index } = withGap();
      const bodies = bench.add(0, 8);
      bench.settle();
      const again = Bench.open(disk, { groups: 1 });
      const journal = again.host.group(0);
      again.add(0, 8);
      journal.complete(3);
      again.settle();
      expect(journal.durable).toBe(index + 1);
      while (journal.next < index + 1) again.add(0, 8);
      bodies.push(...again.add(0, 16));
      again.settle();
      expect(journal.durable).toBe(index + 2);
      expect(bodiesIn(disk, 0)).toEqual(bodies);
    });

    test('no segment is freed that continues a snapshot that waits', () => {
      const { disk, bench, index } = withGap({ segmentBytes: 3 * SECTOR_BYTES });
      const journal = bench.host.group(0);
      const bodies: number[][] = [];
      for (let i = 0; i < 6; i++) {
        bodies.push(...bench.add(0, 8));
        bench.settle();
      }
      const again = Bench.open(disk, { groups: 1, segmentBytes: 3 * SECTOR_BYTES });
      const { next } = again.host.group(0);
      again.snapshot(0, next, [1]);
      again.host.group(0).stable(next);
      again.settle();
      expect(disk.list('era-1')).toContain(`g0-${next}.snapshot`);
      again.host.group(0).complete(3);
      again.settle();
      expect(again.host.group(0).durable).toBe(index + 6);
      expect(bodiesIn(disk, 0)).toEqual(bodies);
      expect(journal.durable).toBe(FIRST_INDEX + 1);
    });

    test('a snapshot that is handed over while a later one counts is of no use', () => {
      const { disk, index } = withGap();
      const again = Bench.open(disk, { groups: 1 });
      const journal = again.host.group(0);
      journal.beginSnapshot(journal.next, 1, false);
      journal.complete(3);
      again.settle();
      journal.endSnapshot();
      again.settle();
      expect(disk.list('era-1')).toEqual([`g0-${index}.snapshot`, 'segment-1']);
      expect(again.writer.pendingSnapshots).toBe(0);
    });

    test('a snapshot at the same place does not replace one at a mark', () => {
      const { disk, index } = withGap();
      const again = Bench.open(disk, { groups: 1 });
      while (again.host.group(0).next < index) again.add(0, 8);
      again.host.group(0).beginSnapshot(index, 3, false);
      again.host.group(0).endSnapshot();
      again.settle();
      expect(disk.list('era-1')).not.toContain(`g0-${index}.draft`);
      expect(new JournalReader(disk).sequences(1, 0)).toMatchObject([{}, { mark: 3 }]);
    });

    test('a snapshot that waits is older than one that counts: it is removed', () => {
      const { disk, bench, index } = withGap();
      bench.host.group(0).complete(4);
      bench.snapshot(0, index + 5, [1], 4);
      disk.before = (call) => {
        if (call === `remove era-1/g0-${index}.pending`) throw systemError('EIO', call);
      };
      expect(() => bench.settle()).toThrow('EIO');
      disk.before = () => undefined;
      const again = Bench.open(disk, { groups: 1 });
      expect(again.host.group(0)).toMatchObject({ heldMark: 4, durable: index + 5 });
      again.settle();
      expect(disk.list('era-1').filter((name) => name.endsWith('.pending'))).toEqual([]);
    });
  });
});

/** Entries are left out twice. The snapshot after the first gap is removed, because its mark is not complete. */
function withTwoGaps(isDropped: boolean): MemoryDisk {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { groups: 1, ringWords: 4096, segmentBytes: 2 ** 16 });
  const journal = bench.host.group(0);
  bench.add(0, 8, 8);
  bench.settle();
  journal.leaveOut();
  journal.beginSnapshot(12, 1, true);
  if (!isDropped) journal.endSnapshot();
  bench.add(0, 8, 8);
  bench.settle();
  if (isDropped) journal.dropSnapshot();
  journal.leaveOut();
  bench.snapshot(0, 30, [2], 3);
  bench.settle();
  bench.add(0, 8, 8);
  bench.settle();
  return disk;
}

test.each([false, true])(
  'entries behind two gaps are read after the first is filled (%s)',
  (isDropped) => {
    const disk = withTwoGaps(isDropped);
    const again = Bench.open(disk, { groups: 1, ringWords: 4096, segmentBytes: 2 ** 16 });
    const journal = again.host.group(0);
    expect(journal.next).toBe(FIRST_INDEX + 2);
    again.add(0, ...Array.from({ length: 16 }, () => 8));
    again.snapshot(0, 20, [3]);
    again.settle();
    journal.stable(20);
    again.settle();
    expect(new JournalReader(disk).sequences(1, 0)).toMatchObject([
      { snapshotIndex: 20, end: 20 },
      { snapshotIndex: 30, end: 32, mark: 3 },
    ]);
  },
);

test('a host on which nothing counts holds no mark: a recovery does not rely on its journal', () => {
  const disk = new MemoryDisk();
  Bench.open(disk, { groups: 1 });
  disk.remove('era-1/g0-opening.snapshot');
  const bench = Bench.open(disk, { groups: 1 });
  const journal = bench.host.group(0);
  bench.snapshot(0, FIRST_INDEX + 5, [1], 2);
  bench.settle();
  expect(journal.heldMark).toBe(0);
  journal.complete(2);
  bench.settle();
  expect(journal.heldMark).toBe(2);
});

test('a power cut at any call to the disk loses no mark that is held, and nothing that is durable', () => {
  const index = FIRST_INDEX + 10;
  /** Entries are left out twice. Then the host starts again, and gets some of them. */
  function* run(disk: PowerDisk): Iterable<Bench> {
    const bench = Bench.open(disk, { groups: 1, segmentBytes: 3 * SECTOR_BYTES });
    yield bench;
    bench.mark(0, 1);
    for (const mark of [3, 5]) {
      bench.host.group(0).leaveOut();
      bench.snapshot(0, index * mark, [mark], mark);
      bench.mark(0, mark + 1);
      bench.settle();
    }
    const again = Bench.open(disk, { groups: 1, segmentBytes: 3 * SECTOR_BYTES });
    yield again;
    for (const mark of [3, 6]) {
      again.add(0, 8, 8, 8);
      again.settle();
      again.host.group(0).complete(mark);
      again.settle();
    }
  }
  let ends = 0;
  for (let last = 0; ends === 0; last++) {
    const disk = new PowerDisk();
    let calls = 0;
    let bench: Bench | undefined;
    try {
      for (bench of run(disk)) {
        disk.before = () => {
          if (calls++ === last) throw new Error('power cut');
        };
      }
      ends = calls;
    } catch (error) {
      expect(error).toEqual(new Error('power cut'));
    }
    disk.before = () => undefined;
    const { heldMark, durable } = bench!.host.group(0);
    disk.cutPower();
    const found = Bench.open(disk, { groups: 1 }).host.group(0);
    expect(found.heldMark, `cut at call ${last}`).toBeGreaterThanOrEqual(heldMark);
    expect(found.durable, `cut at call ${last}`).toBeGreaterThanOrEqual(durable);
  }
  expect(ends).toBeGreaterThan(40);
});
