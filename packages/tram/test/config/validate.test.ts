/** The validator: every way in which a single option can be wrong, and how the user learns of it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError, type Mistake } from '../../src/config/mistakes.js';
import { OPTION_NAMES } from '../../src/config/options.js';
import { mistakesIn, validOptions } from '../../src/config/validate.js';

const ALPHA = { name: 'alpha', address: '10.0.0.1', port: 7411 };
const BETA = { name: 'beta', address: '10.0.0.2', port: 7411 };
const ON_MACHINES = { groups: 2, memory: 'machines', hosts: [ALPHA, BETA], secret: 'a.secret' };

const GROUPS = 'groups must be an integer from 1 to 64';
const NAMES =
  'must be a name of 1 to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit';
const MACHINE = '{ name: alpha, address: 10.0.0.1, port: 7411 }';

/** The only mistake in these options. */
function mistakeIn(options: unknown): Mistake {
  const mistakes = mistakesIn(options);
  expect(mistakes).toHaveLength(1);
  return mistakes[0];
}

function onMachines(machine: unknown): unknown {
  return { ...ON_MACHINES, hosts: [machine, BETA] };
}

describe('the mistake is', () => {
  test.each<[message: string, options: unknown]>([
    ['the options must be an object, not undefined', undefined],
    ['the options must be an object, not null', null],
    ['the options must be an object, not 8', 8],
    ['the options must be an object, not a list', [8]],
    ['groups is required: an integer from 1 to 64', {}],

    [`${GROUPS}, not 65`, { groups: 65 }],
    [`${GROUPS}, not 0`, { groups: 0 }],
    [`${GROUPS}, not 1.5`, { groups: 1.5 }],
    [`${GROUPS}, not NaN`, { groups: Number.NaN }],
    [`${GROUPS}, not Infinity`, { groups: Number.POSITIVE_INFINITY }],
    [`${GROUPS}, not the string "8"`, { groups: '8' }],
    [`${GROUPS}, not null`, { groups: null }],
    [`${GROUPS}, not 8n`, { groups: 8n }],
    [`${GROUPS}, not true`, { groups: true }],
    [`${GROUPS}, not a list`, { groups: [8] }],
    [`${GROUPS}, not an object`, { groups: {} }],
    [`${GROUPS}, not a function`, { groups: () => 8 }],

    ['replicas must be 1, 3, 5 or 7, not 4', { groups: 2, replicas: 4 }],
    ['replicas must be 1, 3, 5 or 7, not 9', { groups: 2, replicas: 9 }],
    ['replicas must be 1, 3, 5 or 7, not the string "3"', { groups: 2, replicas: '3' }],
    ['hosts must be an integer from 1 to 448, not 0', { groups: 2, hosts: 0 }],
    ['hosts must be an integer from 1 to 448, not a list', { groups: 2, hosts: [ALPHA] }],
    ['clients must be an integer from 1 to 1024, not 1025', { groups: 2, clients: 1025 }],
    ['clients must be an integer from 1 to 1024, not 0', { groups: 2, clients: 0 }],
    ['callsMax must be an integer from 1 to 32768, not 32769', { groups: 2, callsMax: 32769 }],
    [
      'payloadBytesMax must be an integer from 0 to 16777216, not -1',
      { groups: 2, payloadBytesMax: -1 },
    ],
    [
      'replyBytesMax must be an integer from 0 to 16777216, not null',
      { groups: 2, replyBytesMax: null },
    ],
    [
      'logBytes must be an integer from 64 to 1073741824, not 2147483648',
      { groups: 2, logBytes: 2 ** 31 },
    ],
    ['heartbeatMs must be a number from 0.1 to 1000, not 0', { groups: 2, heartbeatMs: 0 }],
    [
      'heartbeatMs must be a number from 0.1 to 1000, not the string "5ms"',
      { groups: 2, heartbeatMs: '5ms' },
    ],
    [
      'resendAfterMs must be a number from 1 to 60000, not NaN',
      { groups: 2, resendAfterMs: Number.NaN },
    ],

    ['tree must be a shape or a list of parents, not 3', { groups: 2, tree: 3 }],
    ['tree must be a shape or a list of parents, not null', { groups: 2, tree: null }],
    [
      'tree[1] must be the number of a group, or -1 for the root, not the string "0"',
      { groups: 2, tree: [-1, '0'] },
    ],
    [
      'memory must be threads, processes or machines, not the string "thread"',
      { groups: 2, memory: 'thread' },
    ],
    [
      'memory must be threads, processes or machines, not the string "simulated"',
      { groups: 2, memory: 'simulated' },
    ],
    ['memory must be threads, processes or machines, not 1', { groups: 2, memory: 1 }],

    [`name ${NAMES}, not the string "a/b"`, { groups: 2, name: 'a/b' }],
    [`name ${NAMES}, not the string ".."`, { groups: 2, name: '..' }],
    [`name ${NAMES}, not the string ""`, { groups: 2, name: '' }],
    [`name ${NAMES}, not 7`, { groups: 2, name: 7 }],
    [
      'service must be a path or a URL with file: or data:, not the string "https://host/a.js"',
      { groups: 2, service: 'https://host/a.js' },
    ],
    [
      'service must be a path or a URL with file: or data:, not an object',
      { groups: 2, service: new URL('https://host/a.js') },
    ],
    [
      'service must be a path or a URL with file: or data:, not the string ""',
      { groups: 2, service: '' },
    ],
    ['trace must be a path, not the string ""', { groups: 2, trace: '' }],
    ['trace must be a path, not false', { groups: 2, trace: false }],

    ['unknown option "replica": did you mean replicas?', { groups: 2, replica: 3 }],
    [
      'unknown option "payload_bytes_max": did you mean payloadBytesMax?',
      { groups: 2, payload_bytes_max: 3 },
    ],
    [
      `unknown option "colour": the options are ${OPTION_NAMES.join(', ')}`,
      { groups: 2, colour: 'red' },
    ],
    [
      `unknown option "__proto__": the options are ${OPTION_NAMES.join(', ')}`,
      JSON.parse('{"groups":2,"__proto__":1}'),
    ],
  ])('%s', (message, options) => {
    expect(mistakeIn(options).message).toBe(message);
  });

  test.each<[message: string, options: object]>([
    [
      `hosts is required with memory: machines: a list of machines such as ${MACHINE}`,
      { hosts: undefined },
    ],
    [`hosts must be a list of machines such as ${MACHINE}, not 3`, { hosts: 3 }],
    ['secret is required with memory: machines: a path', { secret: undefined }],
    ['secret must be a path, not the string ""', { secret: '' }],
    ['secret must be a path, not 7', { secret: 7 }],
    [
      'provider must be the name of a libfabric provider such as tcp, not the string ""',
      { provider: '' },
    ],
    [
      'provider must be the name of a libfabric provider such as tcp, not the string "tcp udp"',
      { provider: 'tcp udp' },
    ],
    [
      'members must be a list with the hosts of each group, not the string "alpha"',
      { members: 'alpha' },
    ],
    [
      'members[1] must be a list of hosts, not the string "alpha"',
      { members: [['alpha'], 'alpha'] },
    ],
    ['members[0][1] must be the name of a host, not 2', { members: [['alpha', 2], ['beta']] }],
  ])('with memory: machines: %s', (message, options) => {
    expect(mistakeIn({ ...ON_MACHINES, ...options }).message).toBe(message);
  });

  test.each<[message: string, machine: unknown]>([
    [`hosts[0] must be a machine such as ${MACHINE}, not the string "alpha"`, 'alpha'],
    [`hosts[0] must be a machine such as ${MACHINE}, not null`, null],
    [`hosts[0] must be a machine such as ${MACHINE}, not a list`, [ALPHA]],
    ['hosts[0].port is required: an integer from 1 to 65535', { ...ALPHA, port: undefined }],
    [`hosts[0].name ${NAMES}, not the string "rack 1"`, { ...ALPHA, name: 'rack 1' }],
    ['hosts[0].port must be an integer from 1 to 65535, not 0', { ...ALPHA, port: 0 }],
    [
      'hosts[0].port must be an integer from 1 to 65535, not the string "7411"',
      { ...ALPHA, port: '7411' },
    ],
    [
      'hosts[0].address must be an IPv4 address other than 0.0.0.0, or a name that resolves to one, not the string "0.0.0.0"',
      { ...ALPHA, address: '0.0.0.0' },
    ],
    [
      'hosts[0].http must be a port from 1 to 65535, or an address and a port such as "10.0.0.1:7412", not 65536',
      { ...ALPHA, http: 65_536 },
    ],
    ['unknown key "prt" in hosts[0]: did you mean port?', { ...ALPHA, prt: 7411 }],
    [
      'unknown key "colour" in hosts[0]: the keys are name, address, port, http',
      { ...ALPHA, colour: 'red' },
    ],
  ])('in a machine: %s', (message, machine) => {
    expect(mistakeIn(onMachines(machine)).message).toBe(message);
  });

  test.each(['secret', 'members', 'provider'])('%s without memory: machines', (name) => {
    const expected = {
      path: [name],
      message: `${name} is for memory: machines, but memory is processes`,
      hint: `Add "memory: machines", or leave ${name} out.`,
    };
    expect(mistakeIn({ groups: 2, memory: 'processes', [name]: 'any' })).toEqual(expected);
  });
});

test('a list with holes has mistakes there', () => {
  expect(mistakesIn({ groups: 2, tree: new Array(2) }).map(({ path }) => path)).toEqual([
    ['tree', 0],
    ['tree', 1],
  ]);
});

test('all mistakes are found: unknown names first, then in the order of the list', () => {
  const hosts = [{ nam: 'alpha', address: '10.0.0.1', port: 'x', http: 'no' }, 'beta'];
  const junk = { colour: 'red', members: [7], hosts, memory: 'machines', groups: '8' };
  const mistakes = mistakesIn(junk);
  expect(mistakes.map(({ path, isInKey }) => [path.join('.'), isInKey ?? false])).toEqual([
    ['colour', true],
    ['groups', false],
    ['hosts.0.nam', true],
    ['hosts.0.port', false],
    ['hosts.0.http', false],
    ['hosts.1', false],
    ['members.0', false],
    ['secret', false],
  ]);
});

test('an option with a misspelled name is not missing as well', () => {
  expect(mistakesIn({ group: 2 }).map(({ message }) => message)).toEqual([
    'unknown option "group": did you mean groups?',
  ]);
});

test('while the memory is unknown, nothing is said of what depends on it', () => {
  const options = { groups: 2, memory: 'machine', hosts: 'many', secret: 7, clients: 0 };
  expect(mistakesIn(options).map(({ path }) => path)).toEqual([['memory'], ['clients']]);
});

test('programs get the first mistake, with its path and its hint', () => {
  const wrong = { groups: 2, clients: 0, replicas: 4 };
  expect(() => validOptions(wrong)).toThrow(ConfigError);
  expect(() => validOptions(wrong)).toThrow(
    expect.objectContaining({
      code: 'TRAM_INVALID_CONFIG',
      retry: 'useless',
      path: ['replicas'],
      message: 'replicas must be 1, 3, 5 or 7, not 4',
      hint: expect.stringContaining('even number'),
    }),
  );
});

test('hints say what to do', () => {
  expect(mistakeIn({ ...ON_MACHINES, secret: undefined }).hint).toContain('tram secret');
  expect(mistakeIn({ groups: 2, hosts: [ALPHA] }).hint).toContain('"memory: machines"');
  expect(mistakeIn({ ...ON_MACHINES, hosts: 3 }).hint).toContain('a list of machines');
});

test('a long value is cut short', () => {
  expect(mistakeIn({ groups: 2, name: '/'.repeat(5000) }).message.length).toBeLessThan(250);
});

test('valid options are copied, and what is undefined counts as left out', () => {
  const absent = Object.fromEntries(OPTION_NAMES.map((name) => [name, undefined]));
  const options = { ...absent, groups: 4 };
  expect(validOptions(options)).toEqual(options);
  expect(validOptions(options)).not.toBe(options);
});

test('only what an object has itself counts', () => {
  expect(mistakesIn(Object.create({ groups: 2 }))).toHaveLength(1);
  expect(mistakesIn(Object.assign(Object.create({ memory: 'tape' }), { groups: 2 }))).toEqual([]);
  expect(mistakesIn(Object.assign(Object.create({ colour: 'red' }), { groups: 2 }))).toEqual([]);
});

test('anything is either valid, or a list of mistakes that name their place', () => {
  const name = fc.oneof(fc.constantFrom(...OPTION_NAMES), fc.string());
  fc.assert(
    fc.property(fc.dictionary(name, fc.anything()), fc.boolean(), (junk, isGrouped) => {
      const options = isGrouped ? { ...junk, groups: 2 } : junk;
      for (const { path, message } of mistakesIn(options)) {
        expect(path.length).toBeGreaterThan(0);
        expect(message).not.toBe('');
      }
    }),
  );
});
