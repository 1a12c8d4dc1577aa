/** How the commands show trees, durations and troubles. */
import { describe, expect, test } from 'vitest';
import type { Seen } from '../../src/cli/attached.js';
import { treeOf, troublesOf } from '../../src/cli/status-view.js';
import type { Reading } from '../../src/hosting/reading.js';
import type { GroupHealth, ReplicaStatus } from '../../src/hosting/status.js';

describe('a tree', () => {
  const labels = (parents: number[]): string[] => treeOf(parents).map(({ label }) => label);

  test('is drawn in the order of a walk through it', () => {
    expect(labels([-1, 0, 0, 1])).toEqual(['g0', '├─ g1', '│  └─ g3', '└─ g2']);
    expect(treeOf([1, -1]).map(({ group }) => group)).toEqual([1, 0]);
  });

  test('is a list where it would get too deep', () => {
    const chain = Array.from({ length: 12 }, (_, group) => group - 1);
    expect(labels(chain).slice(0, 3)).toEqual(['g0', 'g1 under g0', 'g2 under g1']);
  });
});

describe('failed snapshots', () => {
  /** The troubles of a group whose replicas have delivered so much, and failed to take so many snapshots. */
  function troubles(delivered: number[], failedSnapshots: number[]): string[] {
    const replicas = delivered.map((count, member) => ({
      name: `g0/${member}`,
      host: member,
      state: 'up',
      role: member === 0 ? 'leader' : 'follower',
      delivered: count,
      failedSnapshots: failedSnapshots[member],
    })) as ReplicaStatus[];
    const status = { groups: [{ group: 0, leader: 0, replicas }], hosts: [{ state: 'up' }] };
    const reading = { status, stopped: new Set() } as unknown as Reading;
    return troublesOf({} as Seen, reading).map(({ what, advice }) => `${what}: ${advice}`);
  }

  test('are shown while a replica is behind', () => {
    expect(troubles([90, 0, 90], [2, 0, 1])).toEqual([
      expect.stringMatching(/^snapshots failed at g0\/0, g0\/2: g0\/1 may be unable to catch up/),
    ]);
    expect(troubles([90, 90, 90], [2, 0, 1])).toEqual([]);
    expect(troubles([90, 0, 90], [0, 0, 0])).toEqual([]);
  });
});

describe('a clock', () => {
  /** The troubles of two groups whose replicas have these clocks. */
  function troubles(...clocksAheadMs: number[]): string[] {
    const groups = [0, 1].map((group) => ({
      group,
      leader: 0,
      replicas: clocksAheadMs.map((clockAheadMs, host) => ({
        ...{ group, host, state: 'up', role: 'follower', nowMs: 5, clockAheadMs },
      })),
    }));
    const hosts = clocksAheadMs.map((_, host) => ({ host, state: 'up' }));
    const reading = { status: { groups, hosts }, stopped: new Set() } as unknown as Reading;
    return troublesOf({} as Seen, reading).map(({ what }) => what);
  }

  test('that differs from ordered time is a trouble', () => {
    expect(troubles(20, 3_600_000, -7000)).toEqual([
      'the clock of host 1 is 3,600 s ahead of ordered time in g0, g1',
      'the clock of host 2 is 7.0 s behind ordered time in g0, g1',
    ]);
    expect(troubles(4000, -4000, 0)).toEqual([]);
  });
});

describe('a group without a leader', () => {
  /** Its troubles, if its three replicas are in these states and its health is this. */
  function troubles(health: GroupHealth, states: ('up' | 'down')[], path?: string): string[] {
    const replicas = states.map((state, member) => ({
      name: `g0/${member}`,
      host: member,
      state,
      role: 'follower',
      failedSnapshots: 0,
    })) as ReplicaStatus[];
    const hosts = states.map((state, host) => ({ host, state }));
    const status = { groups: [{ group: 0, leader: undefined, health, replicas }], hosts };
    const reading = { status, stopped: new Set() } as unknown as Reading;
    const cluster = { name: 'bank', path, context: { config: {} } } as Seen;
    return troublesOf(cluster, reading).map(({ what, advice }) => `${what}: ${advice}`);
  }

  test('elects one', () => {
    expect(troubles('electing', ['up', 'up', 'up'])).toEqual([
      'no leader in g0: an election is under way',
    ]);
  });

  test('may be led by a host that is not reached from here', () => {
    expect(troubles('electing', ['up', 'up', 'down'])).toEqual([
      expect.stringMatching(
        /^no leader in g0 can be reached from here: a host that can't be reached may lead\. .*replaced/,
      ),
    ]);
    expect(troubles('electing', ['up', 'up', 'down'], '/dev/shm/tram-bank')).toEqual([
      'no leader in g0: an election is under way',
    ]);
  });

  test('waits for the replica that may have its state', () => {
    expect(troubles('no-majority', ['up', 'up', 'down'], '/dev/shm/tram-bank')).toEqual([
      expect.stringMatching(/^no leader in g0: none .* has the state; .*: tram restart g0\/2/),
    ]);
  });

  test('has lost its state for good, and it is said how to start anew', () => {
    expect(troubles('state-lost', ['up', 'up', 'up'], '/dev/shm/tram-bank')).toEqual([
      expect.stringMatching(/^the state of g0 is lost: .*: tram down .*, then tram up /),
    ]);
    expect(troubles('state-lost', ['up', 'up', 'up'])).toEqual([
      expect.stringMatching(/Run `tram down --force.*` on every machine/),
    ]);
  });
});
