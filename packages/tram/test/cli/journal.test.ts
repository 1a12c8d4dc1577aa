/** `tram journal show` as an operator runs it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileDisk } from '../../src/journal/disk.js';
import { markOpened } from '../../src/journal/identity.js';
import { Bench, CLUSTER_ID } from '../journal/bench.js';
import { useCommandLine } from './command-line.js';

const line = useCommandLine();

/** Two hosts, with a few entries each. */
function journals(name: string): string {
  const directory = join(line.folder, name);
  for (const host of [0, 1]) {
    const folder = join(directory, `host-${host}`);
    mkdirSync(folder, { recursive: true });
    const disk = new FileDisk(folder);
    const bench = Bench.open(disk, { groups: 2 });
    markOpened(disk, 1);
    for (let i = 0; i < 3; i++) {
      bench.add(0, 8);
      bench.settle();
    }
    bench.writer.close();
  }
  return directory;
}

test('shows all hosts of a directory', async () => {
  const directory = journals('whole');
  const host = (folder: string): string =>
    `${folder}: host 0 of cluster ${CLUSTER_ID}, has promised era 1
  era 1: opened, 1 segment, 9.0 KiB
    group  snapshot at  entries  end
       g0            2        3    5
       g1            2        0    2
`;
  expect(await line.exactly('journal', 'show', directory)).toEqual({
    code: 0,
    stdout: [host(join(directory, 'host-0')), host(join(directory, 'host-1'))].join('\n'),
    stderr: '',
  });
});

test('shows one host as JSON', async () => {
  const folder = join(journals('json'), 'host-1');
  const { code, stdout } = await line.exactly('journal', 'show', folder, '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    journals: [
      {
        folder,
        clusterId: CLUSTER_ID,
        host: 0,
        promisedEra: 1,
        firstSession: 1,
        eras: [
          {
            era: 1,
            isOpened: true,
            bytes: 9216,
            segments: 1,
            groups: [
              { group: 0, snapshotIndex: 2, end: 5 },
              { group: 1, snapshotIndex: 2, end: 2 },
            ],
            pending: [],
          },
        ],
      },
    ],
  });
});

test('shows snapshots that do not count yet, and the marks at which they were taken', async () => {
  const folder = join(journals('pending'), 'host-0');
  const bench = Bench.open(new FileDisk(folder), { groups: 2 });
  bench.host.group(0).leaveOut();
  bench.snapshot(0, 20, [7], 3);
  bench.snapshot(1, 2 + bench.add(1, 8).length, [8]);
  bench.settle();
  bench.writer.close();
  const { code, stdout } = await line.exactly('journal', 'show', folder);
  expect(code).toBe(0);
  expect(stdout).toContain(`
    g0 has a snapshot at 20 (mark 3) that does not count yet
    g1 has a snapshot at 3 (no mark) that does not count yet
`);
  const json = JSON.parse((await line.exactly('journal', 'show', folder, '--json')).stdout);
  expect(json.journals[0].eras[0].pending).toEqual([
    { group: 0, snapshotIndex: 20, mark: 3 },
    { group: 1, snapshotIndex: 3, mark: 0 },
  ]);
});

test('names the file and the place of the first error', async () => {
  const folder = join(journals('corrupt'), 'host-0');
  const file = new FileDisk(folder).open('era-1/segment-1', 'write');
  file.write(1030, Uint8Array.of(255));
  file.close();
  const { code, stdout } = await line.exactly('journal', 'show', folder);
  expect(code).toBe(1);
  expect(stdout).toContain(
    'TRAM_CORRUPT: the journal file era-1/segment-1 is corrupt at byte 1024',
  );
});

test('says that there is none', async () => {
  const { code, stderr } = await line.exactly('journal', 'show', line.folder);
  expect(code).toBe(1);
  expect(stderr).toContain('there is no journal in');
});
