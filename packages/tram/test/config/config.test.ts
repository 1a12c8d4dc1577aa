/** The configuration of a cluster: defaults, and the rules that relate several options. */
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { journalFolder, resolveConfig } from '../../src/config/config.js';
import { ConfigError } from '../../src/config/mistakes.js';
import { OPTION_NAMES } from '../../src/config/options.js';
import { errorOf, resolveAnything, SALT } from './given.js';

test.each([
  ['threads', 1, 1],
  ['threads', 2, 1],
  ['threads', 3, 2],
  ['threads', 4, 3],
  ['threads', 6, 3],
  ['threads', 8, 6],
  ['threads', 64, 12],
  ['processes', 2, 3],
] as const)('%s on %i cores: %i hosts', (memory, cores, hosts) => {
  expect(resolveConfig({ groups: 4, memory }, SALT, undefined, cores).hosts).toBe(hosts);
});

describe('leaders', () => {
  const TOGETHER = [0, 1, 2, 0, 1, 2];
  const SPREAD = [0, 1, 2, 1, 2, 0];

  test.each([
    ['together without a core for clients', { hosts: 3 }, 3, TOGETHER],
    ['spread with a core for each host and one for clients', { hosts: 3 }, 4, SPREAD],
    ['together if asked', { hosts: 3, leaders: 'together' }, 4, TOGETHER],
    ['spread if asked', { hosts: 3, leaders: 'spread' }, 1, SPREAD],
    ['together with fewer hosts than replicas', { hosts: 2 }, 8, [0, 1, 1, 0, 1, 1]],
  ] as const)('%s', (_, options, cores, placement) => {
    for (const memory of ['threads', 'processes'] as const) {
      const config = resolveConfig({ groups: 2, memory, ...options }, SALT, undefined, cores);
      expect(config.placement).toEqual(placement);
    }
  });
});

test('only groups must be given', () => {
  expect(resolveConfig({ groups: 4 }, SALT, undefined, 4)).toStrictEqual({
    memory: 'threads',
    hosts: 3,
    placement: [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2],
    parents: [-1, 0, 1, 1],
    sizes: {
      groups: 4,
      replicas: 3,
      clients: 16,
      payloadBytesMax: 1024,
      replyBytesMax: 1024,
      callsMax: 64,
      logBytes: 131_072,
      inboxBytes: 32_768,
      feedBytes: 65_536,
      snapshotChunkBytes: 65_536,
      firstIndex: 0,
      salt: SALT,
    },
    timing: {
      heartbeatUs: 5000,
      restUs: 100_000,
      quickUs: 250,
      suspectAfterUs: 500_000,
      askAgainUs: 10_000,
      backOffUs: 10_000,
      resendAfterUs: 50_000,
    },
    order: 'multicast',
    durability: 'none',
    snapshotBytes: 67_108_864,
  });
});

test('everything can be given', () => {
  const config = resolveConfig(
    {
      groups: 3,
      replicas: 5,
      tree: [1, -1, 1],
      memory: 'processes',
      name: 'orders-1',
      service: new URL('file:///srv/service.js'),
      hosts: 15,
      clients: 1,
      payloadBytesMax: 0,
      replyBytesMax: 0,
      callsMax: 32_768,
      logBytes: 4096,
      inboxBytes: 1024,
      feedBytes: 2048,
      heartbeatMs: 0.5,
      suspectAfterMs: 2.5,
      resendAfterMs: 7,
      trace: 'trace.jsonl',
      durability: 'everySecond',
      journal: 'journals',
      snapshotBytes: 4096,
    },
    SALT,
    resolve('/data'),
  );
  expect(config).toMatchObject({
    memory: 'processes',
    hosts: 15,
    parents: [1, -1, 1],
    sizes: { replicas: 5, callsMax: 32_768, logBytes: 4096, inboxBytes: 1024, feedBytes: 2048 },
    timing: { heartbeatUs: 500, suspectAfterUs: 2500, resendAfterUs: 7000 },
    name: 'orders-1',
    service: 'file:///srv/service.js',
    trace: resolve('/data', 'trace.jsonl'),
    durability: 'everySecond',
    journal: resolve('/data', 'journals'),
    snapshotBytes: 4096,
  });
});

describe('durability', () => {
  test('needs a directory for the journals', () => {
    expect(() => resolveConfig({ groups: 1, durability: 'always' }, SALT)).toThrow(
      expect.objectContaining({
        path: ['journal'],
        message: "durability is 'always', but journal is missing",
      }),
    );
  });

  test('is not forgotten where a directory for the journals is given', () => {
    expect(() => resolveConfig({ groups: 1, journal: 'journals' }, SALT)).toThrow(
      expect.objectContaining({ path: ['journal'] }),
    );
  });

  test('starts counts at 2, so that the index 0 means a member without state', () => {
    const durable = { groups: 1, durability: 'always', journal: 'journals' } as const;
    expect(resolveConfig(durable, SALT).sizes.firstIndex).toBe(2);
    expect(resolveConfig({ groups: 1, durability: 'none' }, SALT).sizes.firstIndex).toBe(0);
  });

  test('gives each host a folder of its own', () => {
    const durable = { groups: 1, hosts: 3, durability: 'always', journal: '/data' } as const;
    expect(journalFolder(resolveConfig(durable, SALT), 2)).toBe('/data/host-2');
    expect(journalFolder(resolveConfig({ groups: 1 }, SALT), 0)).toBeUndefined();
    const hosts = ['a', 'b', 'c'].map((name, i) => ({ name, address: '10.0.0.1', port: i + 1 }));
    const onMachines = { ...durable, memory: 'machines', hosts, secret: 'secret' } as const;
    expect(journalFolder(resolveConfig(onMachines, SALT), 1)).toBe('/data/b');
  });
});

test('an option that is undefined is not given', () => {
  const absent = Object.fromEntries(OPTION_NAMES.map((name) => [name, undefined]));
  expect(resolveAnything({ ...absent, groups: 4 })).toStrictEqual(resolveAnything({ groups: 4 }));
});

describe('trees', () => {
  test.each([
    ['breadth', [-1, 0, 0, 0]],
    ['depth', [-1, 0, 1, 2]],
    ['simple', [-1, 0, 0, 0]],
    ['1, -1, 1, 2', [1, -1, 1, 2]],
    ['[-1,0,0,0]', [-1, 0, 0, 0]],
  ])('%s', (tree, parents) => {
    expect(resolveConfig({ groups: 4, tree }, SALT).parents).toEqual(parents);
  });

  test('the list is copied', () => {
    const tree = [-1, 0];
    const { parents } = resolveConfig({ groups: 2, tree }, SALT);
    tree[1] = 7;
    expect(parents).toEqual([-1, 0]);
  });
});

describe('services', () => {
  test.each([
    ['service.js', pathToFileURL(resolve('/data/service.js')).href],
    ['./lib/a #1.js', pathToFileURL(resolve('/data/lib/a #1.js')).href],
    [resolve('/srv/service.js'), pathToFileURL(resolve('/srv/service.js')).href],
    ['file:///srv/service.js', 'file:///srv/service.js'],
    ['data:text/javascript,export{}', 'data:text/javascript,export{}'],
  ])('%s', (service, href) => {
    expect(resolveConfig({ groups: 1, service }, SALT, resolve('/data')).service).toBe(href);
  });

  test('a path starts from the working directory', () => {
    const { service } = resolveConfig({ groups: 1, service: 'service.js' }, SALT);
    expect(service).toBe(pathToFileURL(join(process.cwd(), 'service.js')).href);
  });
});

describe('mistakes', () => {
  test.each<[message: string, options: unknown]>([
    ['hosts must be 1 to 3, or a multiple of replicas up to 6, not 4', { groups: 2, hosts: 4 }],
    ['hosts must be 1 to 3, or a multiple of replicas up to 6, not 9', { groups: 2, hosts: 9 }],
    ['hosts must be 1 to 3, the number of replicas, not 6', { groups: 1, hosts: 6 }],
  ])('%s', (message, options) => {
    const code = 'TRAM_INVALID_CONFIG';
    expect(errorOf(options)).toMatchObject({ message, code, retry: 'useless', path: ['hosts'] });
  });

  test.each<[message: string, options: unknown]>([
    [
      '"broad" is no tree: expected base, breadth, depth, simple or parents such as -1,0,0',
      { groups: 2, tree: 'broad' },
    ],
    [
      '"" is no tree: expected base, breadth, depth, simple or parents such as -1,0,0',
      { groups: 2, tree: '' },
    ],
    ['a tree needs at least one group', { groups: 2, tree: [] }],
    ['tree has 3 groups, but groups is 2', { groups: 2, tree: [-1, 0, 0] }],
    ['tree has 3 groups, but groups is 2', { groups: 2, tree: '-1,0,0' }],
    ['a tree has exactly one root (parent -1); found none', { groups: 2, tree: [1, 0] }],
    ['group 1 is its own ancestor: follow its parents and see', { groups: 3, tree: [-1, 2, 1] }],
    [
      'group 1 has parent NaN: expected -1 for the root or a group from 0 to 1',
      { groups: 2, tree: [-1, Number.NaN] },
    ],
  ])('%s', (message, options) => {
    const code = 'TRAM_INVALID_TREE';
    expect(errorOf(options)).toMatchObject({ message, code, retry: 'useless', path: ['tree'] });
  });
});

test('a configuration survives a round trip through JSON', () => {
  const options = fc.record(
    {
      groups: fc.integer({ min: 1, max: 64 }),
      replicas: fc.constantFrom(1, 3, 5, 7),
      tree: fc.constantFrom('base', 'breadth', 'depth'),
      memory: fc.constantFrom('threads' as const, 'processes' as const),
      name: fc.constant('orders'),
      service: fc.constant('service.js'),
      clients: fc.integer({ min: 1, max: 32 }),
      heartbeatMs: fc.double({ min: 0.1, max: 5, noNaN: true }),
      trace: fc.constant('trace.jsonl'),
    },
    { requiredKeys: ['groups'] },
  );
  fc.assert(
    fc.property(options, (asked) => {
      const config = resolveConfig(asked, SALT);
      expect(JSON.parse(JSON.stringify(config))).toStrictEqual(config);
    }),
  );
});

test('any options resolve, or are a mistake', () => {
  const name = fc.oneof(fc.constantFrom(...OPTION_NAMES), fc.string());
  fc.assert(
    fc.property(fc.dictionary(name, fc.anything()), fc.boolean(), (junk, isGrouped) => {
      try {
        resolveAnything(isGrouped ? { ...junk, groups: 2 } : junk);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
  );
});
