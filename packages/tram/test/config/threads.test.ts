/** The threads of machines: which host is on which, and which replicas each of them runs. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hostsWith } from '../../src/config/machines.js';
import type { ClusterOptions, MachineOptions } from '../../src/config/options.js';
import { placeOnThreads, usefulThreads } from '../../src/config/threads.js';
import { errorOf, resolveAnything } from './given.js';

const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota'];

const HOSTS: MachineOptions[] = NAMES.slice(0, 3).map((name, host) => ({
  name,
  address: `10.0.0.${host + 1}`,
  port: 7411,
  http: 7499,
}));

const GOOD: ClusterOptions = {
  groups: 8,
  memory: 'machines',
  hosts: HOSTS,
  secret: 'cluster.secret',
};

test('without `threads`, a machine is one host', () => {
  const config = resolveAnything(GOOD);
  expect(config).toMatchObject({ hosts: 3, threads: 1 });
  expect(config).toEqual(resolveAnything({ ...GOOD, threads: 1 }));
  expect(config.machines?.[1]).toMatchObject({ name: 'beta', machine: 'beta', port: 7411 });
});

test('each thread is a host, with a port of its own; the first one has the HTTP port', () => {
  const { machines, hosts } = resolveAnything({ ...GOOD, threads: 2 });
  expect(hosts).toBe(6);
  expect(machines?.slice(2, 4)).toEqual([
    {
      name: 'beta',
      machine: 'beta',
      address: '10.0.0.2',
      port: 7411,
      http: { address: '127.0.0.1', port: 7499 },
    },
    { name: 'beta#1', machine: 'beta', address: '10.0.0.2', port: 7412 },
  ]);
  expect(hostsWith(2, 3)).toEqual([2, 3]);
  expect(hostsWith(undefined, 3)).toEqual([3]);
});

test('a machine has use for as many threads as it leads groups, and has cores to spare', () => {
  const { machines, placement, sizes } = resolveAnything(GOOD);
  const useful = (name: string, cores: number): number =>
    usefulThreads({ machines: machines!, placement, sizes }, name, cores);
  expect(NAMES.slice(0, 3).map((name) => useful(name, 32))).toEqual([3, 3, 2]);
  expect([1, 2, 3, 4].map((cores) => useful('alpha', cores))).toEqual([1, 1, 2, 3]);
});

test('all members of a group are on threads with the same number, and leaders are spread over them', () => {
  const { placement } = resolveAnything({ ...GOOD, groups: 12, threads: 2 });
  const threads = placement.map((host) => host % 2);
  expect(threads.filter((_, replica) => replica % 3 === 0)).toEqual([
    0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1,
  ]);
  for (let group = 0; group < 12; group++) {
    expect(new Set(threads.slice(3 * group, 3 * group + 3)).size).toBe(1);
  }
});

test('with `leaders: together`, all threads of the first machine lead', () => {
  const { placement } = resolveAnything({ ...GOOD, threads: 4, leaders: 'together' });
  const leaders = placement.filter((_, replica) => replica % 3 === 0);
  expect(leaders).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
});

describe('however members are placed', () => {
  const placements = fc
    .record({
      groups: fc.integer({ min: 1, max: 12 }),
      replicas: fc.constantFrom(1, 3, 5),
      spare: fc.nat(4),
      threads: fc.integer({ min: 1, max: 4 }),
    })
    .chain(({ groups, replicas, spare, threads }) => {
      const machines = Array.from({ length: replicas + spare }, (_, machine) => machine);
      const group = fc.shuffledSubarray(machines, { minLength: replicas, maxLength: replicas });
      return fc.record({
        placement: fc
          .array(group, { minLength: groups, maxLength: groups })
          .map((groups) => groups.flat()),
        machines: fc.constant(machines),
        replicas: fc.constant(replicas),
        threads: fc.constant(threads),
      });
    })
    .filter(({ placement, machines, threads }) =>
      machines.every((machine) => placement.filter((one) => one === machine).length >= threads),
    );
  const evenly = (counts: readonly number[]): void =>
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);

  test('each stays on its machine, whose threads share its members and its leaders evenly', () => {
    fc.assert(
      fc.property(placements, ({ placement, machines, replicas, threads }) => {
        const names = machines.map(String);
        const hosts = placeOnThreads(placement, names, { replicas, threads });
        expect(hosts.map((host) => Math.floor(host / threads))).toEqual(placement);
        for (const machine of machines) {
          const all = hostsWith(threads, machine * threads);
          const leaders = hosts.filter((_, replica) => replica % replicas === 0);
          evenly(all.map((host) => hosts.filter((one) => one === host).length));
          evenly(all.map((host) => leaders.filter((one) => one === host).length));
        }
      }),
    );
  });
});

test.each([
  [
    { ...GOOD, groups: 3, threads: 4 },
    ['threads'],
    'threads is 4, but alpha has members of only 3 groups',
  ],
  [
    { ...GOOD, hosts: [{ ...HOSTS[0], port: 65_535 }, ...HOSTS.slice(1)], threads: 2 },
    ['hosts', 0, 'port'],
    'hosts[0].port is 65535, but with 2 threads it is at most 65534',
  ],
  [
    {
      ...GOOD,
      hosts: [HOSTS[0], { ...HOSTS[1], address: '10.0.0.1', port: 7412, http: 80 }, HOSTS[2]],
      threads: 2,
    },
    ['hosts', 1, 'port'],
    'hosts[1].port is 7412, but hosts[0].port already uses that port of 10.0.0.1',
  ],
  [
    { ...GOOD, hosts: [{ ...HOSTS[0], http: 7412 }, ...HOSTS.slice(1)], threads: 2 },
    ['hosts', 0, 'http'],
    'hosts[0].http is 7412, but hosts[0].port already uses that port of 10.0.0.1',
  ],
  [{ ...GOOD, threads: 0 }, ['threads'], 'threads must be an integer from 1 to 64, not 0'],
] as [ClusterOptions, (string | number)[], string][])('mistake %#', (options, path, message) => {
  expect(errorOf(options)).toMatchObject({ path, message, code: 'TRAM_INVALID_CONFIG' });
});

test('threads are for machines only', () => {
  expect(errorOf({ groups: 2, threads: 2 }).path).toEqual(['threads']);
});
