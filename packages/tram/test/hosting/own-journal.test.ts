/** The journal of a host with its thread and its lock, on real files. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type * as journalLock from '../../src/hosting/journal-lock.js';
import type * as ownJournal from '../../src/hosting/own-journal.js';
import { FileDisk } from '../../src/journal/disk.js';
import { eraFolder } from '../../src/journal/format.js';
import { writeIdentity } from '../../src/journal/identity.js';
import { JournalReader } from '../../src/journal/reader.js';
import { writeOpening } from '../../src/journal/snapshot-file.js';
import { PARKED } from '../../src/memory/arena.js';
import { until } from '../built.js';
import { bodiesIn, CLUSTER_ID, FIRST_INDEX } from '../journal/bench.js';

// The thread is built JavaScript.
const dist = new URL('../../dist/hosting/', import.meta.url);
const { OwnJournal } = (await import(`${dist}own-journal.js`)) as typeof ownJournal;
const { lockJournal } = (await import(`${dist}journal-lock.js`)) as typeof journalLock;

const directory = mkdtempSync(join(tmpdir(), 'tram-own-journal-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const PARKED_AT = 0;
const READY = 16;
/** Of an entry; what it consists of does not matter here. */
const ENTRY_WORDS = 40;

function folderNamed(name: string): string {
  const folder = join(directory, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** What a host without a past starts from, or one that starts again. */
function startIn(folder: string): ownJournal.JournalStart {
  const disk = new FileDisk(folder);
  const isNew = new JournalReader(disk).identity === undefined;
  const index = FIRST_INDEX;
  return {
    disk,
    era: 1,
    clusterId: CLUSTER_ID,
    has: (group) =>
      isNew
        ? { snapshotIndex: index, end: index, lastMark: 0, pending: [] }
        : new JournalReader(disk).sequence(1, group),
    starts: [],
    onReplayed: () => undefined,
    open: () => {
      if (!isNew) return;
      writeIdentity(disk, { clusterId: CLUSTER_ID, host: 0, promisedEra: 1 });
      disk.makeFolder(eraFolder(1));
      writeOpening(disk, { clusterId: CLUSTER_ID, era: 1, group: 0, index });
    },
    scan: () => new JournalReader(disk).segments(1),
  };
}

interface Opened {
  readonly journal: ownJournal.OwnJournal;
  readonly words: Int32Array;
  add(count: number): void;
}

async function open(
  folder: string,
  isAwaited = true,
  begin = () => startIn(folder),
): Promise<Opened> {
  const arena = new SharedArrayBuffer(256);
  const journal = await OwnJournal.open(
    {
      folder,
      host: 0,
      groups: [0],
      groupCount: 1,
      isAwaited,
      snapshotBytes: 2 ** 26,
      entryWordsMax: ENTRY_WORDS,
      wakes: { arena, parked: PARKED_AT, ready: [[READY]] },
    },
    begin,
  );
  onTestFinished(() => journal.close());
  await journal.run([]);
  const add = (count: number): void => {
    const length = count * ENTRY_WORDS;
    const entries = Int32Array.from({ length }, (_, i) =>
      i % ENTRY_WORDS === 0 ? ENTRY_WORDS : i,
    );
    journal.group(0).add(journal.group(0).next, entries, 0, length);
  };
  return { journal, words: new Int32Array(arena), add };
}

describe('entries', () => {
  test('become durable, and the host is woken', async () => {
    const folder = folderNamed('awaited');
    const { journal, words, add } = await open(folder);
    Atomics.store(words, PARKED_AT, PARKED.parked);
    add(3);
    await until(() => Atomics.load(words, PARKED_AT) === PARKED.awake);
    expect(Atomics.load(words, READY)).toBe(1);
    expect(journal.group(0).durable).toBe(FIRST_INDEX + 3);
    expect(bodiesIn(new FileDisk(folder), 0)).toHaveLength(3);
    expect(journal.status).toMatchObject({ syncs: 1, syncedBytes: 512, pendingSnapshots: 0 });
  });

  test('are flushed before the end, and the next start goes on after them', async () => {
    const folder = folderNamed('flushed');
    const { journal, add } = await open(folder, false);
    add(5);
    await journal.flush();
    expect(journal.group(0).durable).toBe(FIRST_INDEX + 5);
    await journal.close();
    const again = await open(folder, false);
    expect(again.journal.group(0)).toMatchObject({
      next: FIRST_INDEX + 5,
      durable: FIRST_INDEX + 5,
    });
    again.add(1);
    await again.journal.flush();
    expect(bodiesIn(new FileDisk(folder), 0)).toHaveLength(6);
  });

  test('become durable within seconds without a flush, if replies do not wait for them', async () => {
    const { journal, add } = await open(folderNamed('everySecond'), false);
    add(5);
    await until(() => journal.group(0).durable === FIRST_INDEX + 5);
  });
});

test('a disk that fails while a host starts', async () => {
  const folder = folderNamed('broken');
  const begin = () => {
    throw Object.assign(new Error('EIO: i/o error, fdatasync'), { syscall: 'fdatasync' });
  };
  const error = await open(folder, true, begin).catch((error: unknown) => error);
  expect(error).toMatchObject({ code: 'TRAM_JOURNAL_FAILED' });
  expect(String(error)).toContain(`the journal ${folder} failed: EIO: i/o error, fdatasync`);
});

describe('the lock', () => {
  test('lets one host at a time use a folder', async () => {
    const folder = folderNamed('locked');
    const { journal } = await open(folder);
    await expect(open(folder)).rejects.toThrow(
      expect.objectContaining({ code: 'TRAM_JOURNAL_IN_USE' }),
    );
    // Another path to the same folder.
    await expect(lockJournal(join(folder, '..', 'locked'))).rejects.toThrow('uses the journal');
    await journal.close();
    await (await lockJournal(folder)).release();
  });

  test('ends with its process, however that ends', async () => {
    const folder = folderNamed('killed');
    const program = `
      const { lockJournal } = await import('${dist}journal-lock.js');
      await lockJournal(process.argv[1]);
      console.log('locked');
      setInterval(() => undefined, 1000);`;
    const args = ['--input-type=module', '-e', program, folder];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout!, 'data');
    await expect(lockJournal(folder)).rejects.toThrow('uses the journal');
    child.kill('SIGKILL');
    await once(child, 'exit');
    await (await lockJournal(folder)).release();
  });
});

describe('a disk that is full', () => {
  /** A small file system in memory. Needs root. */
  function smallDisk(name: string, mebibytes: number): string {
    const folder = folderNamed(name);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]);
    onTestFinished(() => void execFileSync('umount', ['-l', folder]));
    return folder;
  }

  function canMount(): boolean {
    try {
      smallDisk('probe', 1);
      return true;
    } catch {
      return false;
    }
  }

  test('while the host runs: it is told, and what was durable stays', async (context) => {
    context.skip(!canMount(), 'only root may mount file systems');
    const folder = smallDisk('filling', 70);
    const { journal, add } = await open(folder);
    for (; journal.failure === undefined; await new Promise((resolve) => setImmediate(resolve))) {
      if (journal.group(0).hasRoom(1000 * ENTRY_WORDS)) add(1000);
    }
    expect(journal.failure).toMatchObject({
      code: 'TRAM_JOURNAL_FAILED',
      message: expect.stringContaining('ENOSPC'),
      hint: expect.stringContaining('Free space'),
    });
    await expect(journal.flush()).rejects.toThrow('ENOSPC');
    const { durable } = journal.group(0);
    expect(durable).toBeGreaterThan(FIRST_INDEX);
    expect(new JournalReader(new FileDisk(folder)).sequence(1, 0)!.end).toBeGreaterThanOrEqual(
      durable,
    );
  });

  test('at the start: the host does not start', async (context) => {
    context.skip(!canMount(), 'only root may mount file systems');
    await expect(open(smallDisk('small', 10))).rejects.toThrow(
      expect.objectContaining({
        code: 'TRAM_JOURNAL_FAILED',
        message: expect.stringContaining('needs 64 MiB to start, and its disk has 10 MiB free'),
      }),
    );
  });
});
