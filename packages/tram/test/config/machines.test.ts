/** The configuration of a cluster across machines: its hosts, and which replicas each of them runs. */
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isOnMachines } from '../../src/config/config.js';
import { ConfigError } from '../../src/config/mistakes.js';
import type { ClusterOptions, MachineOptions } from '../../src/config/options.js';
import { ClusterContext } from '../../src/hosting/cluster-context.js';
import { threadsArena } from '../../src/memory/threads.js';
import { DIRECTORY, errorOf, resolveAnything } from './given.js';

const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota'];

const ALPHA = { name: 'alpha', address: '10.0.0.1', port: 7411 };

function machines(count: number): MachineOptions[] {
  return NAMES.slice(0, count).map((name, host) => ({
    name,
    address: `10.0.0.${host + 1}`,
    port: 7411,
  }));
}

/** Three machines, of which the first ones are these. */
function withMachines(...first: unknown[]): unknown {
  return { ...GOOD, hosts: [...first, ...machines(3).slice(first.length)] };
}

const GOOD: ClusterOptions = {
  groups: 2,
  memory: 'machines',
  hosts: machines(3),
  secret: 'cluster.secret',
};

test('hosts and a secret must be given', () => {
  const config = resolveAnything(GOOD);
  expect(config).toMatchObject({
    memory: 'machines',
    hosts: 3,
    machines: machines(3),
    secretFile: resolve(DIRECTORY, 'cluster.secret'),
    provider: 'tcp',
  });
  expect(config.placement).toEqual([0, 1, 2, 1, 2, 0]);
  expect(config.timing).toEqual(resolveAnything({ groups: 2 }).timing);
  expect(JSON.parse(JSON.stringify(config))).toStrictEqual(config);
  expect(isOnMachines(config)).toBe(true);
  expect(isOnMachines(resolveAnything({ groups: 2 }))).toBe(false);
});

test('an absolute path of the secret stays; another provider may be asked for', () => {
  const secret = resolve('/etc/tram/secret');
  const provider = 'verbs;ofi_rxm';
  expect(resolveAnything({ ...GOOD, secret, provider })).toMatchObject({
    secretFile: secret,
    provider,
  });
});

test('a status port is on loopback unless an address is given', () => {
  const given = [7412, '10.0.0.2:7412', '0.0.0.0:80'];
  const hosts = machines(3).map((machine, host) => ({ ...machine, http: given[host] }));
  const { machines: resolved } = resolveAnything({ ...GOOD, hosts });
  expect(resolved?.map(({ http }) => http)).toEqual([
    { address: '127.0.0.1', port: 7412 },
    { address: '10.0.0.2', port: 7412 },
    { address: '0.0.0.0', port: 80 },
  ]);
});

test('a machine has only what its object has itself', () => {
  const heir = Object.assign(Object.create({ http: 'anything' }), ALPHA);
  const { machines: resolved } = resolveAnything(withMachines(heir));
  expect(resolved?.[0]).toStrictEqual({ ...ALPHA, machine: 'alpha' });
});

test('several hosts may be on one machine, with different ports', () => {
  const hosts = machines(3).map((machine, host) => ({
    ...machine,
    address: '127.0.0.1',
    port: 7411 + host,
    http: 8411 + host,
  }));
  expect(resolveAnything({ ...GOOD, hosts }).hosts).toBe(3);
});

describe('members', () => {
  test('say which host runs which replica', () => {
    const members = [
      ['alpha', 'beta', 'gamma'],
      ['beta', 'gamma', 'delta'],
    ];
    const { placement, hosts } = resolveAnything({ ...GOOD, hosts: machines(4), members });
    expect(hosts).toBe(4);
    expect(placement).toEqual([0, 1, 2, 1, 2, 3]);
  });

  test('are what hosts run', () => {
    const members = [
      ['gamma', 'beta', 'alpha'],
      ['beta', 'gamma', 'alpha'],
    ];
    const config = resolveAnything({ ...GOOD, members, clients: 1, logBytes: 4096 });
    const buffer = new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4);
    const { map } = ClusterContext.create(config, threadsArena(buffer));
    expect([0, 1, 2].map((host) => map.participantsOf(host))).toEqual([
      [2, 5],
      [1, 3],
      [0, 4],
    ]);
    // Those who attach read the same configuration.
    expect(ClusterContext.attach(threadsArena(buffer)).map.hostOf(0)).toBe(2);
  });

  test('however they are spread, no host has two of a group and every host has one', () => {
    const placements = fc
      .record({
        groups: fc.integer({ min: 1, max: 8 }),
        replicas: fc.constantFrom(1, 3, 5),
        spare: fc.nat(4),
      })
      .chain(({ groups, replicas, spare }) => {
        const names = NAMES.slice(0, replicas + spare);
        const group = fc.shuffledSubarray(names, { minLength: replicas, maxLength: replicas });
        const members = fc.array(group, { minLength: groups, maxLength: groups });
        return fc.record({ groups: fc.constant(groups), replicas: fc.constant(replicas), members });
      });
    fc.assert(
      fc.property(placements, ({ groups, replicas, members }) => {
        const used = NAMES.filter((name) => members.flat().includes(name));
        const hosts = used.map((name) => ({ ...ALPHA, name, address: `${name}.example` }));
        const { placement } = resolveAnything({ ...GOOD, groups, replicas, members, hosts });
        expect(placement?.map((host) => used[host])).toEqual(members.flat());
      }),
    );
  });
});

const ABC = ['alpha', 'beta', 'gamma'];

/** Rules that relate several options: where the mistake is, and its message. */
const MISTAKES: [options: unknown, path: (string | number)[], message: string][] = [
  [
    { ...GOOD, hosts: [] },
    ['hosts'],
    'the number of hosts must be at least 3, as many as a group has replicas, not 0',
  ],
  [
    { ...GOOD, hosts: machines(2) },
    ['hosts'],
    'the number of hosts must be at least 3, as many as a group has replicas, not 2',
  ],
  [
    { ...GOOD, hosts: machines(4) },
    ['hosts'],
    'the number of hosts must be 3, or a multiple of it up to 6, not 4',
  ],
  [
    { ...GOOD, hosts: machines(9) },
    ['hosts'],
    'the number of hosts must be 3, or a multiple of it up to 6, not 9',
  ],
  [
    { ...GOOD, groups: 1, hosts: machines(6) },
    ['hosts'],
    'the number of hosts must be 3, as many as a group has replicas, not 6',
  ],

  [
    withMachines(ALPHA, { ...ALPHA, port: 7 }),
    ['hosts', 1, 'name'],
    'hosts[1].name is "alpha", and so is hosts[0].name',
  ],
  [
    withMachines(ALPHA, { ...ALPHA, name: 'beta' }),
    ['hosts', 1, 'port'],
    'hosts[1].port is 7411, but hosts[0].port already uses that port of 10.0.0.1',
  ],
  [
    withMachines(
      { ...ALPHA, address: 'A.example' },
      { ...ALPHA, name: 'beta', address: 'a.example' },
    ),
    ['hosts', 1, 'port'],
    'hosts[1].port is 7411, but hosts[0].port already uses that port of a.example',
  ],
  [
    withMachines({ ...ALPHA, http: 7411 }),
    ['hosts', 0, 'http'],
    'hosts[0].http is 7411, but hosts[0].port already uses that port of 10.0.0.1',
  ],
  [
    withMachines({ ...ALPHA, http: 7412 }, { ...ALPHA, name: 'beta', port: 7413, http: 7412 }),
    ['hosts', 1, 'http'],
    'hosts[1].http is 7412, but hosts[0].http already uses that port of 10.0.0.1',
  ],

  [
    { ...GOOD, members: [ABC, ABC], leaders: 'spread' },
    ['leaders'],
    'leaders and members both say which hosts lead',
  ],
  [
    { ...GOOD, members: [ABC] },
    ['members'],
    'members has length 1, but groups is 2: it must have a list of hosts for each group',
  ],
  [
    { ...GOOD, members: [ABC, ['alpha', 'beta']] },
    ['members', 1],
    'members[1] has length 2, but replicas is 3: it must have a host for each member of group 1',
  ],
  [
    { ...GOOD, members: [ABC, ['alpha', 'beta', 'gama']] },
    ['members', 1, 2],
    'members[1][2] is "gama", and there is no such host: did you mean gamma?',
  ],
  [
    { ...GOOD, members: [ABC, ['alpha', 'beta', 'omega-17']] },
    ['members', 1, 2],
    'members[1][2] is "omega-17", and there is no such host: the hosts are alpha, beta, gamma',
  ],
  [
    { ...GOOD, members: [ABC, ['alpha', 'beta', 'alpha']] },
    ['members', 1, 2],
    'members[1][2] is alpha, which already runs another member of group 1',
  ],
  [
    { ...GOOD, hosts: machines(4), members: [ABC, ABC] },
    ['hosts', 3],
    'hosts[3], delta, runs no member of any group',
  ],
];

describe('mistakes', () => {
  test.each(MISTAKES.map(([options, path, message]) => ({ message, path, options })))(
    '$message',
    ({ options, path, message }) => {
      expect(errorOf(options)).toMatchObject({ message, path, code: 'TRAM_INVALID_CONFIG' });
    },
  );

  test('hints say what to do', () => {
    expect(errorOf({ ...GOOD, hosts: machines(4) }).hint).toContain('members');
    expect(errorOf({ ...GOOD, hosts: machines(9) }).hint).toBe('Some hosts would run no replica.');
  });
});

test('any options resolve, or are a mistake', () => {
  const text = fc.oneof(fc.constantFrom(...NAMES, '10.0.0.1', '10.0.0.1:1'), fc.string());
  const any = fc.oneof(text, fc.nat(70_000), fc.anything());
  const machine = fc.record(
    { name: any, address: any, port: any, http: any },
    { requiredKeys: [] },
  );
  const options = fc.record(
    {
      hosts: fc.oneof(fc.array(fc.oneof(machine, fc.anything())), fc.anything()),
      members: fc.oneof(fc.array(fc.oneof(fc.array(any), any)), any),
      secret: any,
      provider: any,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(options, (junk) => {
      try {
        resolveAnything({ ...GOOD, ...junk });
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
  );
});
