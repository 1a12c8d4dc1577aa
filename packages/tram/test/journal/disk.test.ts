/** Files of a journal read as they were written, whether the writes were direct or not. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { FileDisk } from '../../src/journal/disk.js';

const SECTOR = 512;
/** `/dev/shm` permits no direct writes, at least with older versions of Linux. */
const folders = [tmpdir(), '/var/tmp', '/dev/shm'].map((parent) =>
  mkdtempSync(join(parent, 'tram-disk-')),
);
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

test.each(folders)('a file reads as it was written: %s', (folder) => {
  const disk = new FileDisk(folder);
  const expected = new Uint8Array(6 * 2 ** 20 + 7);
  const file = disk.open('file', 'create');
  const write = (position: number, count: number, fill: number): void => {
    // Not at the beginning of its memory.
    const bytes = new Uint8Array(count + 3).subarray(3).map((_, i) => fill + (i >> 9) + i);
    file.write(position, bytes);
    expected.set(bytes, position);
  };
  // Whole sectors, also more than one call writes; over what is there; behind a gap; parts of sectors.
  write(0, SECTOR, 1);
  write(SECTOR, 3 * 2 ** 20, 2);
  write(2 * SECTOR, 5 * SECTOR, 3);
  write(6 * 2 ** 20 - SECTOR, SECTOR, 4);
  write(100, 50, 5);
  write(7, SECTOR, 6);
  write(SECTOR, 13, 7);
  write(6 * 2 ** 20, 7, 8);
  write(0, SECTOR, 9);
  file.sync();
  expect(file.size).toBe(expected.length);
  const found = new Uint8Array(expected.length + 1);
  expect(file.read(0, found)).toBe(expected.length);
  expect(Buffer.compare(found.subarray(0, expected.length), expected)).toBe(0);
  file.close();
  const again = disk.open('file', 'write');
  again.write(SECTOR, expected.subarray(0, SECTOR));
  expected.copyWithin(SECTOR, 0, SECTOR);
  again.close();
  expect(Buffer.compare(readFileSync(join(folder, 'file')), expected)).toBe(0);
});
