/** What `tram status` says of durability. */
import { expect, test } from 'vitest';
import { durabilityLines, slowDisk } from '../../src/cli/durability-view.js';
import type { ClusterStatus, HostStatus } from '../../src/hosting/status.js';

const JOURNAL = {
  ...{ bytes: 12 * 2 ** 20, syncs: 9, syncedBytes: 2 ** 20 },
  ...{ syncedAtMs: 1e12, lastSyncNs: 400_000, pendingSnapshots: 0 },
};

/** @param groups  for each replica of each group: what it has delivered, and what it knows to be recoverable */
function statusOf(groups: readonly [delivered: number, recoverable: number][][]): ClusterStatus {
  const hosts = [0, 1].map((host) => ({ host, journal: JOURNAL }));
  return {
    ...{ durability: 'always', era: 3, hosts },
    groups: groups.map((replicas, group) => ({
      group,
      replicas: replicas.map(([delivered, recoverable]) => ({ delivered, recoverable })),
    })),
  } as unknown as ClusterStatus;
}

test('nothing, without durability', () => {
  expect(durabilityLines({ ...statusOf([[[5, 0]]]), durability: 'none' }, 80)).toEqual([]);
});

test('the mode, the era, what is not recoverable yet, and the journals', () => {
  const journals = 'journals 0 12 MiB, last sync 400 µs   1 12 MiB, last sync 400 µs';
  // A follower may know less than the leader.
  expect(
    durabilityLines(
      statusOf([
        [[7, 7]],
        [
          [9, 9],
          [9, 2],
        ],
      ]),
      80,
    ),
  ).toEqual(['durable  always, era 3; all that was delivered is recoverable', journals]);
  expect(durabilityLines(statusOf([[[7, 7]], [[9, 8]]]), 80)).toEqual([
    'durable  always, era 3; 1 delivered entry not recoverable yet in g1',
    journals,
  ]);
  expect(durabilityLines(statusOf([[[2000, 7]], [[9, 8]]]), 80)[0]).toBe(
    'durable  always, era 3; 1,993 delivered entries not recoverable yet in g0, fewer in others',
  );
});

test('a journal that has yet to be synced, and pending snapshots', () => {
  const status = statusOf([[[2, 2]]]);
  const hosts = [{ host: 0, journal: { ...JOURNAL, bytes: 0, syncs: 0, pendingSnapshots: 2 } }];
  expect(durabilityLines({ ...status, era: 0, hosts: hosts as HostStatus[] }, 80)).toEqual([
    'durable  always, no era is open yet; all that was delivered is recoverable',
    'journals 0 0 B, not synced yet, 2 pending snapshots',
  ]);
});

test('a slow disk is a trouble', () => {
  const host = (lastSyncNs: number): HostStatus =>
    ({ host: 1, journal: { ...JOURNAL, lastSyncNs } }) as unknown as HostStatus;
  expect(slowDisk(host(900e6))).toEqual([]);
  expect(slowDisk(host(2.1e9))).toEqual([
    {
      what: 'the disk of host 1 is slow',
      advice: expect.stringMatching(/^the last sync of its journal took 2\.1 s/),
    },
  ]);
});
