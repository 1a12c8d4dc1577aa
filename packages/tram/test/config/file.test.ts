/** Configuration files: the options of programs, and mistakes with their line and column. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/config.js';
import { readConfigFile } from '../../src/config/file.js';
import { type ClusterOptions, OPTION_NAMES } from '../../src/config/options.js';
import { TramError } from '../../src/errors.js';
import { SALT } from './given.js';

let directory: string;
let path: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tram-config-'));
  path = join(directory, 'cluster.yaml');
});

afterAll(() => rm(directory, { recursive: true }));

async function errorOf(text: string): Promise<TramError> {
  await writeFile(path, text);
  const error = await readConfigFile(path).catch((thrown: unknown) => thrown);
  if (error instanceof TramError) return error;
  throw new Error(`expected a TramError, not ${String(error)}`);
}

test('a file has the options of Cluster.start', async () => {
  await writeFile(
    path,
    `# Orders
groups: 3
replicas: 5
tree: [-1, 0, 0]
memory: processes
name: orders
service: ./service.js
trace: trace.jsonl
clients: 8
heartbeatMs: 2.5
payloadBytesMax: 0x200
`,
  );
  expect(await readConfigFile(path)).toStrictEqual({
    groups: 3,
    replicas: 5,
    tree: [-1, 0, 0],
    memory: 'processes',
    name: 'orders',
    service: pathToFileURL(join(directory, 'service.js')).href,
    trace: join(directory, 'trace.jsonl'),
    clients: 8,
    heartbeatMs: 2.5,
    payloadBytesMax: 512,
  });
});

test('every option can stand in a file', async () => {
  await writeFile(
    path,
    `{ groups: 1, replicas: 3, tree: base, order: strict, memory: machines, name: a, service: s.js,
       hosts: [{ name: a, address: a.example, port: 1, http: 2 },
               { name: b, address: b.example, port: 1, http: "b.example:2" },
               { name: c, address: 10.0.0.3, port: 1, http: 10.0.0.3:2 }],
       members: [[c, b, a]], secret: s.secret, revision: 3, threads: 1, provider: tcp, clients: 1,
       payloadBytesMax: 1, replyBytesMax: 1, callsMax: 1, logBytes: 4096, inboxBytes: 4096,
       feedBytes: 4096, heartbeatMs: 1, suspectAfterMs: 9, resendAfterMs: 9, trace: t.jsonl,
       durability: always, journal: j, snapshotBytes: 8192 }`,
  );
  const options = await readConfigFile(path);
  // `leaders` stands in for `members`.
  expect([...Object.keys(options), 'leaders'].sort()).toEqual([...OPTION_NAMES].sort());
  expect(resolveConfig(options, SALT)).toMatchObject({
    hosts: 3,
    machines: [
      { name: 'a', address: 'a.example', port: 1, http: { address: '127.0.0.1', port: 2 } },
      { name: 'b', address: 'b.example', port: 1, http: { address: 'b.example', port: 2 } },
      { name: 'c', address: '10.0.0.3', port: 1, http: { address: '10.0.0.3', port: 2 } },
    ],
    placement: [2, 1, 0],
    secretFile: join(directory, 's.secret'),
    provider: 'tcp',
  });
});

test('leaders may stand in a file', async () => {
  await writeFile(path, 'groups: 2\nmemory: processes\nleaders: spread\n');
  expect(resolveConfig(await readConfigFile(path), SALT).placement).toEqual([0, 1, 2, 1, 2, 0]);
});

test('hosts may be a number, where they are threads or processes', async () => {
  await writeFile(path, 'groups: 2\nmemory: processes\nhosts: 6\n');
  expect(await readConfigFile(path)).toMatchObject({ hosts: 6 });
});

test.each(['options', 'operating'])('the files shown in docs/%s.md are right', async (name) => {
  const document = new URL(`../../../../docs/${name}.md`, import.meta.url);
  const text = await readFile(document, 'utf8');
  const files = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)];
  expect(files.length).toBeGreaterThan(0);
  for (const [, yaml] of files) {
    await writeFile(path, yaml!);
    expect(await readConfigFile(path)).toMatchObject({ replicas: 3 });
  }
});

test('lines may end as on Windows', async () => {
  await writeFile(path, 'groups: 3\r\ntree: depth\r\n');
  expect(await readConfigFile(path)).toStrictEqual({ groups: 3, tree: 'depth' });
  expect((await errorOf('groups: 3\r\nreplicas: 4\r\n')).message).toBe(
    `${path}:2:11: replicas must be 1, 3, 5 or 7, not 4`,
  );
});

const NAME =
  'a name of 1 to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit';

/** The text of a file, and the message after its path. */
const MISTAKES: Record<string, [text: string, complaint: string]> = {
  'an empty file': ['', ': expected options such as "groups: 8", not an empty file'],
  'only a comment': ['# later\n', ': expected options such as "groups: 8", not an empty file'],
  'an empty document': ['---\n', ':1:4: expected options such as "groups: 8", not an empty file'],
  'a list': ['# two\n- groups\n- 8\n', ':2:1: expected options such as "groups: 8", not a list'],
  'a word': ['groups\n', ':1:1: expected options such as "groups: 8", not the string "groups"'],
  'no groups': ['replicas: 3\n', ': groups is required: an integer from 1 to 64'],

  'a key twice': ['groups: 8\nreplicas: 3\ngroups: 4\n', ':3:1: groups is given twice'],
  'a quoted key twice': ['groups: 8\n"groups": 4\n', ':2:1: "groups" is given twice'],
  'a tab as indentation': [
    'groups: 2\ntree:\n\t- -1\n\t- 0\n',
    ":3:1: a tab can't indent a line: use spaces",
  ],
  'a bracket left open': [
    'groups: 2\ntree: [-1, 0\nreplicas: 3\n',
    ':3:1: this is not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]',
  ],
  'a quote left open': [
    'groups: 2\nname: "orders\n',
    ':3:1: this is not valid YAML: Missing closing "quote',
  ],
  'a line indented too far': [
    'groups: 8\n  replicas: 3\n',
    ':1:9: this is not valid YAML: Nested mappings are not allowed in compact mappings',
  ],
  'two documents': [
    'groups: 8\n---\ngroups: 4\n',
    ':2:1: a second document begins here; a cluster has one',
  ],
  'an unknown tag': ['groups: !count 8\n', ':1:9: this is not valid YAML: Unresolved tag: !count'],
  'an alias': [
    'groups: &few 3\nreplicas: *few\n',
    ':2:11: aliases such as *few are not supported here',
  ],
  'an alias of nothing': ['groups: *few\n', ':1:9: aliases such as *few are not supported here'],

  'an unknown key': [
    'groups: 8\nreplica: 3\n',
    ':2:1: unknown option "replica": did you mean replicas?',
  ],
  'a key spelled otherwise': [
    'groups: 8\npayload-bytes-max: 3\n',
    ':2:1: unknown option "payload-bytes-max": did you mean payloadBytesMax?',
  ],
  'a key like no other': [
    'groups: 8\n__proto__: 3\n',
    `:2:1: unknown option "__proto__": the options are ${OPTION_NAMES.join(', ')}`,
  ],
  'a list as key': [
    'groups: 8\n? [a]\n: 3\n',
    `: unknown option "[ a ]": the options are ${OPTION_NAMES.join(', ')}`,
  ],
  'a number in quotes': [
    'groups: "8"\n',
    ':1:9: groups must be an integer from 1 to 64, not the string "8"',
  ],
  'not a number': ['groups: .nan\n', ':1:9: groups must be an integer from 1 to 64, not NaN'],
  'an endless number': [
    'groups: -.inf\n',
    ':1:9: groups must be an integer from 1 to 64, not -Infinity',
  ],
  'a word for a number': [
    'groups: many\n',
    ':1:9: groups must be an integer from 1 to 64, not the string "many"',
  ],
  'a list for a number': [
    'groups: [8]\n',
    ':1:9: groups must be an integer from 1 to 64, not a list',
  ],
  'a number for a word': ['groups: 8\nname: 7\n', `:2:7: name must be ${NAME}, not 7`],
  'nothing after the colon': [
    'groups: 8\nreplicas:\nclients: 4\n',
    ':2:10: replicas has no value: give it one, or leave the line out',
  ],
  'a key alone': ['{ groups }\n', ': groups has no value: give it one, or leave the line out'],
  null: ['groups: 8\ntree: null\n', ':2:7: tree has no value: give it one, or leave the line out'],
  'a number for a tree': [
    'groups: 8\ntree: 3\n',
    ':2:7: tree must be a shape or a list of parents, not 3',
  ],
  'a word among the parents': [
    'groups: 2\ntree:\n  - -1\n  - zero\n',
    ':4:5: tree[1] must be the number of a group, or -1 for the root, not the string "zero"',
  ],

  'an even number': [
    '# a\n# b\ngroups: 8\nreplicas: 4\n',
    ':4:11: replicas must be 1, 3, 5 or 7, not 4',
  ],
  'a number out of range': ['groups: 65\n', ':1:9: groups must be an integer from 1 to 64, not 65'],
  'no such shape': [
    'groups: 3\ntree: broad\n',
    ':2:7: "broad" is no tree: expected base, breadth, depth, simple or parents such as -1,0,0',
  ],
  'parents that are no tree': [
    'groups: 2\ntree: [1, 0]\n',
    ':2:7: a tree has exactly one root (parent -1); found none',
  ],
  'no such memory': [
    'groups: 3\nmemory: thread\n',
    ':2:9: memory must be threads, processes or machines, not the string "thread"',
  ],
};

const ALPHA = '{ name: alpha, address: 10.0.0.1, port: 7411 }';
const ON_MACHINES = `memory: machines
groups: 2
replicas: 1
secret: cluster.secret
hosts:
  - ${ALPHA}
`;

/** The same for clusters across machines, whose file begins as above. */
const MACHINE_MISTAKES: Record<string, [text: string, complaint: string]> = {
  'a word for a port': [
    '  - name: beta\n    address: 10.0.0.2\n    port: http\n',
    ':9:11: hosts[1].port must be an integer from 1 to 65535, not the string "http"',
  ],
  'a port out of range': [
    '  - name: beta\n    address: 10.0.0.2\n    port: 70000\n',
    ':9:11: hosts[1].port must be an integer from 1 to 65535, not 70000',
  ],
  'a port that is missing': [
    '  - name: beta\n    address: 10.0.0.2\n',
    ':7:5: hosts[1].port is required: an integer from 1 to 65535',
  ],
  'a port without a number': [
    '  - name: beta\n    address: 10.0.0.2\n    port:\n',
    ':9:10: hosts[1].port has no value: give it one, or leave the line out',
  ],
  'an unknown key': [
    '  - name: beta\n    adress: 10.0.0.2\n    port: 7411\n',
    ':8:5: unknown key "adress" in hosts[1]: did you mean address?',
  ],
  'a number for an address': [
    '  - { name: beta, address: 10.1, port: 7411 }\n',
    ':7:28: hosts[1].address must be an IPv4 address other than 0.0.0.0, or a name that resolves to one, not 10.1',
  ],
  'a word for a machine': [
    '  - beta\n',
    `:7:5: hosts[1] must be a machine such as ${ALPHA}, not the string "beta"`,
  ],
  'a list for a status port': [
    '  - { name: beta, address: 10.0.0.2, port: 7411, http: [7412] }\n',
    ':7:56: hosts[1].http must be a port from 1 to 65535, or an address and a port such as "10.0.0.1:7412", not a list',
  ],
  'a name twice': [
    '  - { name: alpha, address: 10.0.0.2, port: 7411 }\n',
    ':7:13: hosts[1].name is "alpha", and so is hosts[0].name',
  ],
  'a member on no host': [
    'members:\n  - [alpha]\n  - [alph]\n',
    ':9:6: members[1][0] is "alph", and there is no such host: did you mean alpha?',
  ],
  'a number for a host': [
    'members: [[alpha], [1]]\n',
    ':7:21: members[1][0] must be the name of a host, not 1',
  ],
  'a name for the hosts of a group': [
    'members: [alpha, [alpha]]\n',
    ':7:11: members[0] must be a list of hosts, not the string "alpha"',
  ],
  'a host without a replica': [
    `  - { name: beta, address: 10.0.0.2, port: 7411 }\nmembers: [[alpha], [alpha]]\n`,
    ':7:5: hosts[1], beta, runs no member of any group',
  ],
};

describe('mistakes about machines', () => {
  test.each(Object.entries(MACHINE_MISTAKES))('%s', async (_, [text, complaint]) => {
    const { code, message } = await errorOf(ON_MACHINES + text);
    expect(message).toBe(`${path}${complaint}`);
    expect(code).toBe('TRAM_INVALID_CONFIG');
  });

  test('all are told, in the order of the file', async () => {
    const text =
      '  - { nam: beta, address: 10.0.0.2, port: x, http: no }\n  - gamma\nmembers: [7]\n';
    const { message, hint } = await errorOf(ON_MACHINES + text);
    expect(message.split('\n')).toEqual([
      `${path}:7:7: unknown key "nam" in hosts[1]: did you mean name?`,
      `${path}:7:43: hosts[1].port must be an integer from 1 to 65535, not the string "x"`,
      `${path}:7:52: hosts[1].http must be a port from 1 to 65535, or an address and a port such as "10.0.0.1:7412", not the string "no"`,
      `${path}:8:5: hosts[2] must be a machine such as ${ALPHA}, not the string "gamma"`,
      `${path}:9:11: members[0] must be a list of hosts, not 7`,
    ]);
    expect(hint).toBeUndefined();
  });

  test('what is missing has no line', async () => {
    expect((await errorOf('memory: machines\ngroups: 2\nsecret: a.secret\n')).message).toBe(
      `${path}: hosts is required with memory: machines: a list of machines such as ${ALPHA}`,
    );
  });

  test('a list of hosts for another memory', async () => {
    const { message, hint } = await errorOf(`groups: 2\nhosts:\n  - ${ALPHA}\n`);
    expect(message).toBe(`${path}:3:3: hosts must be an integer from 1 to 448, not a list`);
    expect(hint).toContain('"memory: machines"');
  });
});

describe('mistakes', () => {
  test.each(Object.entries(MISTAKES))('%s', async (_, [text, complaint]) => {
    const { code, message } = await errorOf(text);
    expect(message).toBe(`${path}${complaint}`);
    expect(code).toMatch(/^TRAM_INVALID_(CONFIG|TREE)$/);
  });

  test('all are told, in the order of the file', async () => {
    const { message } = await errorOf('replica: 3\ngroups: "8"\nname: 7\ncolor: red\n');
    expect(message.split('\n')).toEqual([
      `${path}:1:1: unknown option "replica": did you mean replicas?`,
      `${path}:2:9: groups must be an integer from 1 to 64, not the string "8"`,
      `${path}:3:7: name must be ${NAME}, not 7`,
      `${path}:4:1: unknown option "color": the options are ${OPTION_NAMES.join(', ')}`,
    ]);
  });

  test('a mistake that is in no single key has no line', async () => {
    const { message } = await errorOf('groups: 64\nreplicas: 7\nclients: 1024\n');
    expect(message.startsWith(`${path}: the cluster needs `)).toBe(true);
  });

  test('code and hint are those of the options', async () => {
    expect(await errorOf('groups: 2\ntree: [1, 0]\n')).toMatchObject({ code: 'TRAM_INVALID_TREE' });
    expect(await errorOf('groups: 2\nreplicas: 4\n')).toMatchObject({
      code: 'TRAM_INVALID_CONFIG',
      hint: expect.stringContaining('even number'),
      retry: 'useless',
    });
  });
});

test('any file has valid options, or mistakes', async () => {
  const piece = fc.oneof(
    fc.constantFrom(...OPTION_NAMES),
    fc.constantFrom(
      ': ',
      '\n',
      '- ',
      '[',
      ']',
      '{',
      '}',
      ', ',
      '"',
      '&a ',
      '*a',
      '!x ',
      '? ',
      '#',
      '  ',
      '\t',
      '--- ',
      '%',
    ),
    fc.constantFrom('2', '3', '-1', 'base', 'null', '.nan', '~', '<<'),
    fc.string({ maxLength: 5 }),
  );
  const file = fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join(''));
  await fc.assert(
    fc.asyncProperty(file, async (text) => {
      await writeFile(path, text);
      const outcome = await readConfigFile(path).catch((thrown: unknown) => thrown);
      if (outcome instanceof Error) expect(outcome).toBeInstanceOf(TramError);
      else resolveConfig(outcome as ClusterOptions, SALT);
    }),
    { numRuns: 500 },
  );
});

test('a file that is not there', async () => {
  const missing = join(directory, 'missing.yaml');
  await expect(readConfigFile(missing)).rejects.toMatchObject({
    code: 'TRAM_NOT_FOUND',
    message: `there is no file ${missing}`,
  });
});

test("a file that can't be read", async () => {
  await expect(readConfigFile(directory)).rejects.toMatchObject({
    code: 'TRAM_SYSTEM',
    message: expect.stringContaining(`${directory} can't be read: EISDIR`),
  });
});
