/** The small files of a journal: its identity, and which eras were opened. */
import { expect, test } from 'vitest';
import { markOpened, readIdentity, writeIdentity } from '../../src/journal/identity.js';
import { JournalReader } from '../../src/journal/reader.js';
import { CLUSTER_ID } from './bench.js';
import { MemoryDisk } from './memory-disk.js';

const IDENTITY = { clusterId: CLUSTER_ID, host: 3, promisedEra: 7 };

test('an identity is replaced as a whole, durably', () => {
  const disk = new MemoryDisk();
  expect(readIdentity(disk)).toBeUndefined();
  writeIdentity(disk, IDENTITY);
  disk.calls.length = 0;
  writeIdentity(disk, { ...IDENTITY, promisedEra: 8 });
  expect(disk.calls).toEqual([
    'remove identity.draft',
    'create identity.draft',
    'write identity.draft',
    'sync identity.draft',
    'rename identity.draft identity',
    'sync folder ',
  ]);
  expect(readIdentity(disk)).toEqual({ ...IDENTITY, promisedEra: 8 });
});

test('an identity with any flipped bit is corrupt, if the bit means something', () => {
  const disk = new MemoryDisk();
  writeIdentity(disk, IDENTITY);
  let found = 0;
  for (let at = 0; at < disk.bytes('identity').length; at++) {
    const rotten = disk.copy();
    rotten.bytes('identity')[at] ^= 1 << (at % 8);
    try {
      expect([at, readIdentity(rotten)]).toEqual([at, IDENTITY]);
    } catch (error) {
      expect(error).toMatchObject({ code: 'TRAM_CORRUPT' });
      found++;
    }
  }
  expect(found).toBe(10 * 4);
});

test('an era is opened once it is marked, and may be marked again', () => {
  const disk = new MemoryDisk();
  disk.makeFolder('era-2');
  disk.makeFolder('era-10');
  markOpened(disk, 10);
  markOpened(disk, 10);
  const reader = new JournalReader(disk);
  expect(reader.eras).toEqual([2, 10]);
  expect(reader.isOpened(2)).toBe(false);
  expect(reader.isOpened(10)).toBe(true);
});
