/** The options of a cluster: what is filled in, and every way in which they can be wrong. */

import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type ClusterConfig,
  type ClusterOptions,
  ConfigError,
  memoryBytes,
  OPTION_NAMES,
  resolveConfig,
} from '../../src/config/options.js';
import { TramError } from '../../src/errors.js';
import { Layout } from '../../src/protocol/layout.js';

const SALT = 12345;

/** From anybody's JavaScript: types are no protection there. */
function resolveAnything(options: unknown): ClusterConfig {
  return resolveConfig(options as ClusterOptions, SALT);
}

function errorOf(options: unknown): ConfigError {
  try {
    resolveAnything(options);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('these options were accepted');
}

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

test('only groups must be given', () => {
  expect(resolveConfig({ groups: 4 }, SALT, undefined, 4)).toStrictEqual({
    memory: 'threads',
    hosts: 3,
    parents: [-1, 0, 1, 1],
    sizes: {
      groups: 4,
      replicas: 3,
      clients: 16,
      payloadBytesMax: 1024,
      replyBytesMax: 256,
      callsMax: 64,
      logBytes: 131_072,
      inboxBytes: 32_768,
      feedBytes: 65_536,
      snapshotChunkBytes: 16_384,
      origin: 0,
      salt: SALT,
    },
    timing: {
      heartbeatUs: 5000,
      restUs: 100_000,
      suspectAfterUs: 500_000,
      askAgainUs: 10_000,
      backOffUs: 10_000,
      resendAfterUs: 50_000,
    },
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
  });
});

test('an option that is undefined is not given', () => {
  const absent = Object.fromEntries(OPTION_NAMES.map((name) => [name, undefined]));
  expect(resolveAnything({ ...absent, groups: 4 })).toStrictEqual(resolveAnything({ groups: 4 }));
});

test('the salt becomes one word', () => {
  expect(resolveConfig({ groups: 1 }, 2 ** 32 - 1).sizes.salt).toBe(-1);
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

/** What is wrong, and how it is told. */
const MISTAKES: [unknown, string][] = [
  [undefined, 'the options must be an object, not undefined'],
  [null, 'the options must be an object, not null'],
  [8, 'the options must be an object, not 8'],
  [[8], 'the options must be an object, not a list'],
  [{}, 'groups is required: an integer from 1 to 64'],

  [{ groups: 65 }, 'groups must be an integer from 1 to 64, not 65'],
  [{ groups: 0 }, 'groups must be an integer from 1 to 64, not 0'],
  [{ groups: 1.5 }, 'groups must be an integer from 1 to 64, not 1.5'],
  [{ groups: Number.NaN }, 'groups must be an integer from 1 to 64, not NaN'],
  [{ groups: Number.POSITIVE_INFINITY }, 'groups must be an integer from 1 to 64, not Infinity'],
  [{ groups: '8' }, 'groups must be an integer from 1 to 64, not the string "8"'],
  [{ groups: null }, 'groups must be an integer from 1 to 64, not null'],
  [{ groups: 8n }, 'groups must be an integer from 1 to 64, not 8n'],
  [{ groups: true }, 'groups must be an integer from 1 to 64, not true'],
  [{ groups: [8] }, 'groups must be an integer from 1 to 64, not a list'],
  [{ groups: {} }, 'groups must be an integer from 1 to 64, not an object'],
  [{ groups: () => 8 }, 'groups must be an integer from 1 to 64, not a function'],

  [{ groups: 2, replicas: 4 }, 'replicas must be odd, not 4'],
  [{ groups: 2, replicas: 9 }, 'replicas must be an integer from 1 to 7, not 9'],
  [{ groups: 2, clients: 1025 }, 'clients must be an integer from 1 to 1024, not 1025'],
  [{ groups: 2, clients: 0 }, 'clients must be an integer from 1 to 1024, not 0'],
  [{ groups: 2, callsMax: 32769 }, 'callsMax must be an integer from 1 to 32768, not 32769'],
  [
    { groups: 2, payloadBytesMax: -1 },
    'payloadBytesMax must be an integer from 0 to 16777216, not -1',
  ],
  [
    { groups: 2, replyBytesMax: null },
    'replyBytesMax must be an integer from 0 to 16777216, not null',
  ],

  [{ groups: 2, hosts: 4 }, 'hosts must be 1 to 3, or a multiple of replicas up to 6, not 4'],
  [{ groups: 2, hosts: 9 }, 'hosts must be 1 to 3, or a multiple of replicas up to 6, not 9'],
  [{ groups: 1, hosts: 6 }, 'hosts must be 1 to 3, the number of replicas, not 6'],

  [
    { groups: 2, tree: 'broad' },
    '"broad" is no tree: expected base, breadth, depth, simple or parents such as -1,0,0',
  ],
  [
    { groups: 2, tree: '' },
    '"" is no tree: expected base, breadth, depth, simple or parents such as -1,0,0',
  ],
  [{ groups: 2, tree: 3 }, 'tree must be a shape or a list of parents, not 3'],
  [{ groups: 2, tree: null }, 'tree must be a shape or a list of parents, not null'],
  [{ groups: 2, tree: [] }, 'a tree needs at least one group'],
  [{ groups: 2, tree: [-1, 0, 0] }, 'tree has 3 groups, but groups is 2'],
  [{ groups: 2, tree: '-1,0,0' }, 'tree has 3 groups, but groups is 2'],
  [{ groups: 2, tree: [1, 0] }, 'a tree has exactly one root (parent -1); found none'],
  [{ groups: 3, tree: [-1, 2, 1] }, 'group 1 is its own ancestor: follow its parents and see'],
  [
    { groups: 2, tree: [-1, '0'] },
    'tree[1], the parent of group 1, must be a number, not the string "0"',
  ],
  [
    { groups: 2, tree: new Array(2) },
    'tree[0], the parent of group 0, must be a number, not undefined',
  ],
  [
    { groups: 2, tree: [-1, Number.NaN] },
    'group 1 has parent NaN: expected -1 for the root or a group from 0 to 1',
  ],

  [
    { groups: 2, memory: 'thread' },
    'memory must be threads, processes, hosts or simulated, not "thread"',
  ],
  [{ groups: 2, memory: 1 }, 'memory must be a string, not 1'],

  [
    { groups: 2, name: 'a/b' },
    'name must be 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first, not "a/b"',
  ],
  [
    { groups: 2, name: '..' },
    'name must be 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first, not ".."',
  ],
  [
    { groups: 2, name: '' },
    'name must be 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first, not ""',
  ],
  [{ groups: 2, name: 7 }, 'name must be a string, not 7'],
  [
    { groups: 2, service: 'https://host/a.js' },
    'service must be a path or a URL with file: or data:, not "https://host/a.js"',
  ],
  [{ groups: 2, service: '' }, 'service must not be empty'],
  [{ groups: 2, service: {} }, 'service must be a string, not an object'],
  [{ groups: 2, trace: '' }, 'trace must not be empty'],
  [{ groups: 2, trace: false }, 'trace must be a string, not false'],

  [
    { groups: 2, logBytes: 2048 },
    'logBytes is 2048, too small for payloadBytesMax 1024: two messages of that size must fit, which takes 4096 bytes',
  ],
  [
    { groups: 2, inboxBytes: 1024 },
    'inboxBytes is 1024, too small for payloadBytesMax 1024: one message of that size must fit, which takes 2048 bytes',
  ],
  [
    { groups: 2, feedBytes: 1024 },
    'feedBytes is 1024, too small for payloadBytesMax 1024: one message of that size must fit, which takes 2048 bytes',
  ],
  [
    { groups: 2, logBytes: 2 ** 31 },
    'logBytes must be an integer from 64 to 1073741824, not 2147483648',
  ],

  [{ groups: 2, heartbeatMs: 0 }, 'heartbeatMs must be a number from 0.1 to 1000, not 0'],
  [
    { groups: 2, heartbeatMs: '5ms' },
    'heartbeatMs must be a number from 0.1 to 1000, not the string "5ms"',
  ],
  [
    { groups: 2, resendAfterMs: Number.NaN },
    'resendAfterMs must be a number from 1 to 60000, not NaN',
  ],
  [
    { groups: 2, suspectAfterMs: 9 },
    'suspectAfterMs must be at least twice heartbeatMs, 10, not 9',
  ],

  [{ groups: 2, replica: 3 }, 'unknown option "replica": did you mean replicas?'],
  [
    { groups: 2, payload_bytes_max: 3 },
    'unknown option "payload_bytes_max": did you mean payloadBytesMax?',
  ],
  [{ groups: 2, payload: 3 }, 'unknown option "payload": did you mean payloadBytesMax?'],
  [{ groups: 2, heartBeat: 3 }, 'unknown option "heartBeat": did you mean heartbeatMs?'],
  [{ groups: 2, trees: 'base' }, 'unknown option "trees": did you mean tree?'],
  [
    { groups: 2, colour: 'red' },
    `unknown option "colour": the options are ${OPTION_NAMES.join(', ')}`,
  ],
  [
    JSON.parse('{"groups":2,"__proto__":1}'),
    `unknown option "__proto__": the options are ${OPTION_NAMES.join(', ')}`,
  ],
];

describe('mistakes', () => {
  test.each(MISTAKES.map(([options, message]) => ({ message, options })))(
    '$message',
    ({ options, message }) => {
      const error = errorOf(options);
      expect(error).toBeInstanceOf(TramError);
      expect(error.message).toBe(message);
      expect(error.retry).toBe('useless');
    },
  );

  test('a tree that is none has a code of its own', () => {
    expect(errorOf({ groups: 2, tree: [1, 0] }).code).toBe('TRAM_INVALID_TREE');
    expect(errorOf({ groups: 2, tree: 3 }).code).toBe('TRAM_INVALID_CONFIG');
  });

  test('they say where they are', () => {
    expect(errorOf({ groups: 2, replicas: 4 }).path).toEqual(['replicas']);
    expect(errorOf({ groups: 2, tree: [-1, null] }).path).toEqual(['tree', 1]);
    expect(errorOf(null).path).toEqual([]);
  });

  test('more memory than can be addressed', () => {
    const { message, path, hint } = errorOf({ groups: 64, replicas: 7, clients: 1024 });
    expect(message).toMatch(
      /^the cluster would take \d\d\.\d GB of shared memory; 8\.0 GB is the most$/,
    );
    expect(path).toEqual([]);
    expect(hint).toContain('clients');
  });

  test('a long value is cut short', () => {
    expect(errorOf({ groups: 2, name: '/'.repeat(5000) }).message.length).toBeLessThan(200);
  });
});

test('a longer heartbeat makes suspicion more patient', () => {
  const { timing } = resolveConfig({ groups: 1, heartbeatMs: 50 }, SALT);
  expect(timing.suspectAfterUs).toBe(1_000_000);
});

test('a ring that is rounded up to what is needed is large enough', () => {
  expect(resolveConfig({ groups: 2, inboxBytes: 1025 }, SALT).sizes.inboxBytes).toBe(1025);
});

const odd = fc.constantFrom(1, 3, 5, 7);

test('by default at least eight of the largest messages fit into every ring', () => {
  const options = fc.record({ groups: fc.constant(1), payloadBytesMax: fc.nat(2 ** 20) });
  fc.assert(
    fc.property(options, (asked) => {
      const layout = new Layout(resolveConfig(asked, SALT).sizes);
      expect(layout.logWords).toBeGreaterThanOrEqual(8 * layout.entryWordsMax);
      expect(layout.inboxWords).toBeGreaterThanOrEqual(8 * layout.inboxRecordWordsMax);
      expect(layout.feedWords).toBeGreaterThanOrEqual(8 * layout.inboxRecordWordsMax);
    }),
  );
});

test('a ring that was asked for and accepted is that ring, rounded up', () => {
  const ring = fc.integer({ min: 64, max: 8192 });
  const options = fc.record({
    groups: fc.constant(1),
    payloadBytesMax: fc.nat(4096),
    logBytes: ring,
    inboxBytes: ring,
    feedBytes: ring,
  });
  const roundedUp = (bytes: number): number => 2 ** Math.ceil(Math.log2(bytes));
  let accepted = 0;
  fc.assert(
    fc.property(options, (asked) => {
      let config: ClusterConfig;
      try {
        config = resolveConfig(asked, SALT);
      } catch (error) {
        expect((error as Error).message).toMatch(/^(log|inbox|feed)Bytes is \d+, too small/);
        return;
      }
      accepted++;
      const layout = new Layout(config.sizes);
      expect(layout.logWords * 4).toBe(roundedUp(asked.logBytes));
      expect(layout.inboxWords * 4).toBe(roundedUp(asked.inboxBytes));
      expect(layout.feedWords * 4).toBe(roundedUp(asked.feedBytes));
    }),
  );
  expect(accepted).toBeGreaterThan(0);
});

test('a configuration is the same after a detour through JSON, and knows its memory', () => {
  const options = fc.record(
    {
      groups: fc.integer({ min: 1, max: 64 }),
      replicas: odd,
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
      const { groups, replicas, clients } = config.sizes;
      const layout = new Layout(config.sizes);
      expect(memoryBytes(config)).toBe(
        4 * groups * replicas * layout.replicaRegionWords + 4 * clients * layout.clientRegionWords,
      );
    }),
  );
});

test('whatever it is given, it resolves or says what is wrong', () => {
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
