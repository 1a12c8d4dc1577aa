/** Backups of journals on disk, and the journals that are restored from them. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type ClusterConfig, resolveConfig } from '../../src/config/config.js';
import { type BackupSource, saveBackup } from '../../src/hosting/backup.js';
import { restoreBackup } from '../../src/hosting/restore.js';
import type { ClusterStatus } from '../../src/hosting/status.js';
import { readCluster } from '../../src/journal/cluster-file.js';
import { COPY_ERA, copyJournal } from '../../src/journal/copy.js';
import { FileDisk } from '../../src/journal/disk.js';
import { PackedEntries } from '../../src/journal/packed-entries.js';
import { JournalReader } from '../../src/journal/reader.js';
import { entriesOf } from '../../src/journal/sequence.js';
import { NO_SALT } from '../../src/memory/record.js';
import { MARK, MESSAGE, messageWords, SOURCE } from '../../src/protocol/layout.js';

const FIRST = 2;
const CLUSTER_ID = '0123456789abcdef0123456789abcdef';
const SESSION = 7;
/** Of the era that is saved: ids of messages must stay unique. */
const FIRST_SESSION = 5;

let directory: string;
let config: ClusterConfig;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tram-backup-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const options = { groups: 2, hosts: 1, durability: 'always', journal: 'journal' } as const;
  config = resolveConfig(options, NO_SALT, directory);
});

/** The body of an entry: a message of this number, or a mark. */
function body(number: number, isMark = false): Int32Array {
  const words = new Int32Array(messageWords(0) + SOURCE.words);
  words[MESSAGE.session] = SESSION;
  words[MESSAGE.number] = number;
  words[MESSAGE.payloadBytes] = isMark ? MARK : 0;
  return words;
}

const mark = (number: number): Int32Array => body(number, true);
const idOf = (number: number): string => `c${SESSION}:0.${number}`;

/** Replaces the journal of host 0. @param groups  the bodies of each group's entries */
function journal(...groups: Int32Array[][]): void {
  const folder = join(directory, 'journal', 'host-0');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  copyJournal(
    new FileDisk(folder),
    { clusterId: CLUSTER_ID, host: 0, firstSession: FIRST_SESSION },
    groups.map((bodies, group) => {
      const store = new PackedEntries(group, FIRST);
      store.add(bodies);
      const { end } = store;
      const sequence = {
        ...{ group, snapshotIndex: FIRST, isFirst: true, snapshotFromParent: FIRST, end, store },
        readSnapshot: () => undefined,
      };
      return { group, below: end, sequence };
    }),
  );
}

/** A cluster whose one host has made everything durable. @param marks  is told of each mark: returns its id */
function source(marks: () => string): BackupSource {
  const replica = (group: number) => ({ group, host: 0, state: 'up', delivered: 0, durable: 0 });
  const groups = [0, 1].map((group) => ({ group, replicas: [replica(group)] }));
  const status = { groups } as unknown as ClusterStatus;
  return { config, status: () => status, mark: async () => marks() };
}

/** The numbers of a group's messages in a journal. */
function numbersIn(folder: string, group: number): number[] {
  const sequence = new JournalReader(new FileDisk(folder)).sequence(COPY_ERA, group)!;
  return Array.from(entriesOf(sequence), ({ words, at }) => words[at + MESSAGE.number]);
}

const backup = (): string => join(directory, 'backup');
const restored = (): string => join(directory, 'restored');

describe('a backup', () => {
  test('has of each group what lies before the mark', async () => {
    journal([body(1), body(2), mark(3), body(4)], [mark(3), body(5), body(6)]);
    const saved = await saveBackup(
      source(() => idOf(3)),
      backup(),
    );
    expect(saved).toMatchObject({ directory: backup(), era: COPY_ERA });
    expect(saved.bytes).toBeGreaterThan(0);
    expect(numbersIn(join(backup(), 'journal'), 0)).toEqual([1, 2]);
    expect(numbersIn(join(backup(), 'journal'), 1)).toEqual([]);
  });

  test('ignores other marks, and begins again if a journal lacks its own', async () => {
    journal([], []);
    let marks = 0;
    const growing = source(() => {
      marks++;
      const end = marks === 3 ? [mark(3)] : [];
      journal([body(1), mark(9), body(2), ...end], [body(5), ...end]);
      return idOf(3);
    });
    await saveBackup(growing, backup());
    expect(marks).toBe(3);
    expect(numbersIn(join(backup(), 'journal'), 0)).toEqual([1, 9, 2]);
  });

  test('that fails leaves nothing behind', async () => {
    journal([body(1)], [body(1)]);
    const lacking = saveBackup(
      source(() => idOf(3)),
      backup(),
    );
    await expect(lacking).rejects.toThrow('lacks the mark of g0');
    expect(existsSync(backup())).toBe(false);
  });

  test('needs an empty directory', async () => {
    journal([], []);
    mkdirSync(backup());
    writeFileSync(join(backup(), 'notes.txt'), '');
    const saving = saveBackup(
      source(() => idOf(3)),
      backup(),
    );
    await expect(saving).rejects.toMatchObject({ code: 'TRAM_EXISTS' });
    expect(readdirSync(backup())).toEqual(['notes.txt']);
  });

  test('needs a journal', async () => {
    config = resolveConfig({ groups: 2 }, NO_SALT, directory);
    const saving = saveBackup(
      source(() => idOf(3)),
      backup(),
    );
    await expect(saving).rejects.toMatchObject({ code: 'TRAM_NOT_SUPPORTED' });
  });

  test('needs a host that runs here for every group', async () => {
    const saving = saveBackup(
      source(() => idOf(3)),
      backup(),
    );
    await expect(saving).rejects.toThrow(
      'no host that runs here has a member of g0: its members are on host 0',
    );
    await expect(saving).rejects.toMatchObject({ code: 'TRAM_NOT_SUPPORTED' });
  });
});

describe('a restored journal', () => {
  beforeEach(async () => {
    journal([body(1), body(2), mark(3)], [body(4), mark(3)]);
    await saveBackup(
      source(() => idOf(3)),
      backup(),
    );
  });

  test('has what the backup has, of a cluster of the same shape with an id of its own', () => {
    expect(restoreBackup(backup(), { journal: restored() })).toEqual([join(restored(), 'host-0')]);
    const folder = join(restored(), 'host-0');
    expect(numbersIn(folder, 0)).toEqual([1, 2]);
    expect(numbersIn(folder, 1)).toEqual([4]);
    const disk = new FileDisk(folder);
    expect(readCluster(disk)).toEqual(readCluster(new FileDisk(join(backup(), 'journal'))));
    const { identity } = new JournalReader(disk);
    expect(identity).toMatchObject({
      ...{ host: 0, promisedEra: COPY_ERA, firstSession: FIRST_SESSION },
    });
    expect(identity!.clusterId).not.toBe(CLUSTER_ID);
    // Another machine that restores the same backup belongs to the same cluster.
    restoreBackup(backup(), { journal: join(directory, 'elsewhere'), host: 'host-0' });
    const other = new JournalReader(new FileDisk(join(directory, 'elsewhere', 'host-0')));
    expect(other.identity).toEqual(identity);
  });

  test('never replaces another one', () => {
    const folder = join(restored(), 'host-0');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'identity'), '');
    expect(() => restoreBackup(backup(), { journal: restored() })).toThrow(
      expect.objectContaining({ code: 'TRAM_EXISTS' }),
    );
    expect(readdirSync(folder)).toEqual(['identity']);
  });

  test('is of a host of the backup', () => {
    expect(() => restoreBackup(backup(), { journal: restored(), host: 'alpha' })).toThrow(
      expect.objectContaining({ code: 'TRAM_UNKNOWN_REPLICA', hint: 'It has host-0.' }),
    );
  });

  const segment = (): string => join(backup(), 'journal', `era-${COPY_ERA}`, 'segment-1');

  test.each([
    ['without its manifest', 'TRAM_NOT_FOUND', () => rmSync(join(backup(), 'backup.json'))],
    ['without a file', 'TRAM_CORRUPT', () => rmSync(segment())],
    ['with a file that has changed', 'TRAM_CORRUPT', () => appendFileSync(segment(), 'x')],
    [
      'with a manifest that is cut',
      'TRAM_CORRUPT',
      () => writeFileSync(join(backup(), 'backup.json'), '{'),
    ],
    [
      'of another format',
      'TRAM_VERSION_MISMATCH',
      () => writeFileSync(join(backup(), 'backup.json'), '{"version":2}'),
    ],
  ])('is refused from a backup %s', (_, code, harm) => {
    harm();
    expect(() => restoreBackup(backup(), { journal: restored() })).toThrow(
      expect.objectContaining({ code }),
    );
    expect(existsSync(restored())).toBe(false);
  });
});
