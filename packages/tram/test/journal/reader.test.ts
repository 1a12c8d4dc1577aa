/** What a reader finds in a journal that was torn or has rotted: an intact prefix, or corruption, and never anything else. */
import { describe, expect, test } from 'vitest';
import { TramError } from '../../src/errors.js';
import type { DiskFile } from '../../src/journal/disk.js';
import { checksumOf, SECTOR_BYTES } from '../../src/journal/format.js';
import { JournalReader, settle } from '../../src/journal/reader.js';
import { Bench, type BenchOptions, bodiesIn, FIRST_INDEX } from './bench.js';
import { MemoryDisk } from './memory-disk.js';

const SEGMENT = 'era-1/segment-1';
const BATCHES = 4;

/** A journal with a few batches, and the bodies of their entries. Each batch has one sector, and they fill the segment. */
function journal(options?: BenchOptions): { disk: MemoryDisk; bodies: number[][] } {
  const disk = new MemoryDisk();
  const segmentBytes = (1 + BATCHES) * SECTOR_BYTES;
  const bench = Bench.open(disk, { groups: 1, segmentBytes, ...options });
  const bodies: number[][] = [];
  for (let batch = 0; batch < BATCHES; batch++) {
    bodies.push(...bench.add(0, 8 * batch, 16));
    bench.settle();
  }
  expect(disk.bytes(SEGMENT)).toHaveLength(segmentBytes);
  expect(bodiesIn(disk, 0)).toEqual(bodies);
  return { disk, bodies };
}

/** The bodies that are found, or the error that says that the journal is corrupt. */
function outcomeOf(disk: MemoryDisk): number[][] | TramError {
  try {
    return bodiesIn(disk, 0);
  } catch (error) {
    if (error instanceof TramError && error.code === 'TRAM_CORRUPT') return error;
    throw error;
  }
}

describe('a flipped bit in any byte of a segment', () => {
  const { disk, bodies } = journal();
  const size = disk.bytes(SEGMENT).length;

  function outcomeWithFlip(at: number): number[][] | TramError {
    const rotten = disk.copy();
    rotten.bytes(SEGMENT)[at] ^= 1 << (at % 8);
    return outcomeOf(rotten);
  }

  test('is corruption that is named, if a later batch says that the batch was durable', () => {
    let found = 0;
    for (let at = 0; at < size - SECTOR_BYTES; at++) {
      const outcome = outcomeWithFlip(at);
      if (!(outcome instanceof TramError)) {
        // What fills a sector means nothing.
        expect([at, outcome]).toEqual([at, bodies]);
        continue;
      }
      const sector = Math.floor(at / SECTOR_BYTES) * SECTOR_BYTES;
      expect(outcome.message).toContain(`${SEGMENT} is corrupt at byte ${sector}`);
      found++;
    }
    // The header, and all of three batches that is not filling.
    expect(found).toBe(556);
  });

  test('cuts the last batch, which nobody knows to have been durable', () => {
    let cut = 0;
    for (let at = size - SECTOR_BYTES; at < size; at++) {
      const outcome = outcomeWithFlip(at);
      if (outcome instanceof TramError) throw outcome;
      expect([bodies.length - 2, bodies.length]).toContain(outcome.length);
      expect(outcome).toEqual(bodies.slice(0, outcome.length));
      if (outcome.length < bodies.length) cut++;
    }
    expect(cut).toBe(188);
  });
});

test('a file that ends at any byte has an intact prefix', () => {
  const { disk, bodies } = journal();
  const whole = disk.bytes(SEGMENT);
  for (let size = 0; size < whole.length; size++) {
    const torn = disk.copy();
    torn.files.set(SEGMENT, whole.slice(0, size));
    const found = outcomeOf(torn);
    if (found instanceof TramError) throw found;
    expect(found).toEqual(bodies.slice(0, found.length));
    // A batch without its last bytes may still have all that means something.
    expect(found.length).toBeGreaterThanOrEqual(2 * (Math.floor(size / SECTOR_BYTES) - 1));
  }
});

describe('batches that were written and not synced', () => {
  /** Two batches are durable, and two are not. */
  function unsynced(): { disk: MemoryDisk; bodies: number[][] } {
    const disk = new MemoryDisk();
    const bench = Bench.open(disk, { groups: 1, syncsEachBatch: false });
    const bodies: number[][] = [];
    for (let batch = 0; batch < BATCHES; batch++) {
      bodies.push(...bench.add(0, 8));
      if (batch === 1) bench.writer.wantSync();
      bench.settle();
    }
    return { disk, bodies };
  }

  test.each([3, 4])('end the journal where one is lost: batch %i', (batch) => {
    const { disk, bodies } = unsynced();
    disk.bytes(SEGMENT).fill(0, batch * SECTOR_BYTES, (batch + 1) * SECTOR_BYTES);
    expect(outcomeOf(disk)).toEqual(bodies.slice(0, batch - 1));
  });

  test('say which batches before them were durable', () => {
    const { disk } = unsynced();
    disk.bytes(SEGMENT).fill(0, 2 * SECTOR_BYTES, 3 * SECTOR_BYTES);
    expect(outcomeOf(disk)).toBeInstanceOf(TramError);
  });
});

test('a lost segment between others is corruption, and so is one that lost all its batches', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { groups: 1, segmentBytes: 3 * SECTOR_BYTES });
  for (let batch = 0; batch < 6; batch++) {
    bench.add(0, 8);
    bench.settle();
  }
  const missing = disk.copy();
  missing.files.delete('era-1/segment-2');
  expect(() => bodiesIn(missing, 0)).toThrow('era-1/segment-2 is corrupt at byte 0: it is missing');
  const empty = disk.copy();
  empty.bytes('era-1/segment-2').fill(0, SECTOR_BYTES);
  expect(() => bodiesIn(empty, 0)).toThrow(/segment-2 is corrupt at byte 512/);
  const first = disk.copy();
  first.files.delete('era-1/segment-1');
  expect(() => bodiesIn(first, 0)).toThrow('lacks the entries 2 to 3 of group 0');
});

describe('a host that relies on its journal writes again', () => {
  class WatchedDisk extends MemoryDisk {
    readonly written: { path: string; from: number; to: number }[] = [];

    override open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
      const file = super.open(path, how);
      const write = file.write.bind(file);
      return Object.assign(file, {
        write: (from: number, bytes: Uint8Array) => {
          this.written.push({ path, from, to: from + bytes.length });
          write(from, bytes);
        },
      });
    }
  }

  test.each([
    ['the last batch, if each was synced before the next', true, BATCHES],
    ['all batches, if none is known to be durable', false, 1],
  ])('%s', (_, syncsEachBatch, first) => {
    const { disk, bodies } = journal({ syncsEachBatch });
    const watched = new WatchedDisk();
    for (const [path, bytes] of disk.files) watched.files.set(path, bytes);
    settle(watched);
    const [from, to] = [first * SECTOR_BYTES, (1 + BATCHES) * SECTOR_BYTES];
    expect(watched.written).toEqual([{ path: SEGMENT, from, to }]);
    expect(watched.calls).toContain(`sync ${SEGMENT}`);
    expect(bodiesIn(watched, 0)).toEqual(bodies);
  });

  test('the last batches of the last segment that has any', () => {
    const disk = new WatchedDisk();
    const bench = Bench.open(disk, { groups: 1, segmentBytes: 3 * SECTOR_BYTES });
    for (let batch = 0; batch < 4; batch++) {
      bench.add(0, 8);
      bench.settle();
    }
    // It has a header, and no batch yet.
    disk.files.set('era-1/segment-3', disk.bytes('era-1/segment-2').slice(0, SECTOR_BYTES));
    new DataView(disk.bytes('era-1/segment-3').buffer).setInt32(0, 0);
    disk.written.length = 0;
    settle(disk);
    const from = 2 * SECTOR_BYTES;
    const to = 3 * SECTOR_BYTES;
    expect(disk.written).toEqual([{ path: 'era-1/segment-2', from, to }]);
  });
});

describe('a snapshot', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { groups: 1 });
  bench.add(0, 8, 8);
  bench.snapshot(0, FIRST_INDEX + 2, [1, 2, 3]);
  bench.host.group(0).stable(FIRST_INDEX + 2);
  bench.settle();
  const path = `era-1/g0-${FIRST_INDEX + 2}.snapshot`;

  test('is read with the entries after it', () => {
    const sequence = new JournalReader(disk).sequence(1, 0)!;
    expect(sequence).toMatchObject({ snapshotIndex: FIRST_INDEX + 2, end: FIRST_INDEX + 2 });
    expect(sequence.readSnapshot()).toEqual(Int32Array.of(1, 2, 3));
  });

  test('with any flipped bit is corrupt, if the bit means something', () => {
    const size = disk.bytes(path).length;
    let found = 0;
    for (let at = 0; at < size; at++) {
      const rotten = disk.copy();
      rotten.bytes(path)[at] ^= 1 << (at % 8);
      try {
        const snapshot = new JournalReader(rotten).sequence(1, 0)!.readSnapshot();
        expect([at, snapshot]).toEqual([at, Int32Array.of(1, 2, 3)]);
      } catch (error) {
        expect(error).toMatchObject({
          code: 'TRAM_CORRUPT',
          message: expect.stringContaining(path),
        });
        found++;
      }
    }
    expect(found).toBe(15 * 4 + 3 * 4);
  });

  test('that ends too early is corrupt', () => {
    const torn = disk.copy();
    torn.files.set(path, disk.bytes(path).slice(0, -4));
    expect(() => new JournalReader(torn).sequence(1, 0)!.readSnapshot()).toThrow('ends too early');
  });
});

test('files of another format version are refused by their version', () => {
  const { disk } = journal();
  expect(() => bodiesIn(withVersion(disk, SEGMENT), 0)).toThrow(
    expect.objectContaining({ code: 'TRAM_VERSION_MISMATCH' }),
  );
  expect(() => new JournalReader(withVersion(disk, 'identity'))).toThrow('has format 99');
});

/** The same file with format 99, and a right checksum. */
function withVersion(disk: MemoryDisk, path: string): MemoryDisk {
  const other = disk.copy();
  const bytes = other.bytes(path);
  const words = new Int32Array(bytes.buffer, 0, 128);
  words[2] = 99;
  const count = 10;
  words[1] = checksumOf(bytes.subarray(8, count * 4));
  return other;
}
