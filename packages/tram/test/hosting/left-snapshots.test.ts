/** Snapshots in files: read back as they were, and never taken for what they are not. */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LeftFiles } from '../../src/hosting/left-snapshots.js';
import { ARENA, LIFE_WORDS } from '../../src/memory/arena.js';
import { leftSnapshotPath, removeArenaFile } from '../../src/memory/processes/arena-file.js';

const SNAPSHOT = Int32Array.from({ length: 5000 }, (_, i) => i * 7);
const complaints: string[] = [];
let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tram-left-'));
  path = join(folder, 'arena');
  complaints.length = 0;
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The files beside an arena that was created with these random words. */
function filesOf(life: string, isAtPath = true): LeftFiles {
  const words = new Int32Array(ARENA.description + 64);
  words.fill(life.length, ARENA.life, ARENA.life + LIFE_WORDS);
  const arena = { path, words, isAtPath: () => isAtPath };
  return new LeftFiles(arena, (text) => complaints.push(text));
}

test('a snapshot is found again, and only its owner can read the file', () => {
  const files = filesOf('one');
  files.keep(3, SNAPSHOT);
  expect(filesOf('one').find(3)).toEqual(SNAPSHOT);
  expect(statSync(leftSnapshotPath(path, 3)).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['arena~left-3']);
  expect(complaints).toEqual([]);
});

test('a later snapshot replaces an earlier one', () => {
  const files = filesOf('one');
  files.keep(3, SNAPSHOT);
  files.keep(3, SNAPSHOT.subarray(0, 7));
  expect(files.find(3)).toEqual(SNAPSHOT.slice(0, 7));
});

test('where nothing was left, nothing is found, and that is no trouble', () => {
  expect(filesOf('one').find(3)).toBeUndefined();
  expect(complaints).toEqual([]);
});

test('a replica that begins with empty memory discards what it left', () => {
  const files = filesOf('one');
  files.keep(3, SNAPSHOT);
  files.discard(3);
  files.discard(4);
  expect(files.find(3)).toBeUndefined();
});

test('a snapshot that finds no room leaves nothing behind', () => {
  const files = filesOf('one');
  rmSync(folder, { recursive: true });
  expect(() => files.keep(3, SNAPSHOT)).toThrow('ENOENT');
  expect(existsSync(folder)).toBe(false);
});

test('an unfinished snapshot is not found', () => {
  const files = filesOf('one');
  files.keep(3, SNAPSHOT);
  const whole = readFileSync(leftSnapshotPath(path, 3));
  files.discard(3);
  writeFileSync(`${leftSnapshotPath(path, 3)}.draft`, whole.subarray(0, 100));
  expect(files.find(3)).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
});

test('what is left after the arena was removed is removed too', () => {
  expect(filesOf('one', false).keep(3, SNAPSHOT)).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
});

test('what was left goes with the arena', () => {
  const files = filesOf('one');
  files.keep(3, SNAPSHOT);
  files.keep(4, SNAPSHOT);
  writeFileSync(`${leftSnapshotPath(path, 5)}.draft`, '');
  writeFileSync(path, '');
  writeFileSync(`${path}2`, '');
  removeArenaFile(path);
  expect(readdirSync(folder)).toEqual(['arena2']);
});

describe('not restored but reported', () => {
  /** What it says of the file of replica 3 after this was done to it. */
  function complaintAfter(change: (bytes: Buffer) => Buffer, participant = 3): string {
    const files = filesOf('one');
    files.keep(3, SNAPSHOT);
    writeFileSync(
      leftSnapshotPath(path, participant),
      change(readFileSync(leftSnapshotPath(path, 3))),
    );
    expect(files.find(participant)).toBeUndefined();
    expect(complaints).toHaveLength(1);
    return complaints[0];
  }

  const withByte = (at: number) => (bytes: Buffer) => {
    bytes[at] ^= 1;
    return bytes;
  };

  test('a file of another cluster, or of an earlier life of this one', () => {
    filesOf('another').keep(3, SNAPSHOT);
    expect(filesOf('one').find(3)).toBeUndefined();
    expect(complaints).toEqual([
      `${leftSnapshotPath(path, 3)} is ignored: another cluster or replica left it`,
    ]);
  });

  test('a file of another replica', () => {
    expect(complaintAfter((bytes) => bytes, 4)).toContain('another cluster or replica left it');
  });

  test.each([
    ['in the snapshot', 19 * 4 + 400],
    ['in its last byte', 19 * 4 + SNAPSHOT.byteLength - 1],
    ['in the checksum', 11 * 4],
  ])('a file with a wrong bit %s', (_, at) => {
    expect(complaintAfter(withByte(at))).toContain('it is corrupt');
  });

  test('a file of another format', () => {
    expect(complaintAfter(withByte(4))).toContain('it has format 0, and this is format 1');
  });

  test('any other file', () => {
    expect(complaintAfter(withByte(0))).toContain('it is not a snapshot');
  });

  test.each([
    ['to half', 10_000, 'it is incomplete'],
    ['to an odd size', 10_001, 'it has 10001 bytes'],
    ['to its header', 76, 'it is incomplete'],
    ['to nothing', 0, 'it has 0 bytes'],
  ])('a file that was cut %s', (_, bytes, complaint) => {
    expect(complaintAfter((whole) => whole.subarray(0, bytes))).toContain(complaint);
  });

  test('a file that has grown', () => {
    const grown = complaintAfter((whole) => Buffer.concat([whole, Buffer.alloc(4)]));
    expect(grown).toContain('it is incomplete');
  });
});
