/** The package as it is published: packed, installed elsewithout a network, imported, run and typechecked. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectDirectory } from './built.js';

const directory = mkdtempSync(join(tmpdir(), 'tram-package-'));
const modules = join(projectDirectory, 'node_modules');
const { version, dependencies } = JSON.parse(
  readFileSync(join(projectDirectory, 'package.json'), 'utf8'),
) as { version: string; dependencies: Record<string, string> };

/** Paths in the package. */
let contents: string[];

beforeAll(() => {
  // Without scripts: a second build would rewrite files that other tests are using.
  const packed = run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', directory],
    {
      cwd: projectDirectory,
    },
  );
  const [{ filename, files }] = JSON.parse(packed.stdout) as [
    { filename: string; files: { path: string }[] },
  ];
  contents = files.map(({ path }) => path);
  write('package.json', JSON.stringify({ private: true, type: 'module' }));
  const linked = Object.keys(dependencies).map((name) => join(modules, name));
  // An empty cache, so that nothing comes from there by luck.
  const offline = ['--offline', '--cache', join(directory, 'cache'), '--omit', 'optional'];
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts'];
  run('npm', ['install', ...offline, ...quiet, join(directory, filename), ...linked]);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string } = {},
): SpawnSyncReturns<string> {
  const result = spawnSync(command, args, { cwd: directory, encoding: 'utf8', ...options });
  if (result.status === 0) return result;
  throw new Error(`${command} ${args.join(' ')} failed:\n${result.stdout}${result.stderr}`);
}

/** Run a program that uses the package, and read the JSON that it prints. */
function program(source: string): unknown {
  write('program.mjs', source);
  return JSON.parse(run(process.execPath, ['program.mjs']).stdout);
}

test('it has what its users need, and nothing else', () => {
  const folders = new Set(contents.map((path) => path.replace(/\/.*$/, '/')));
  expect([...folders].sort()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/',
    'docs/',
    'examples/',
    'package.json',
  ]);
  expect(
    contents.filter(
      (path) => !/\.(js|d\.ts|md|json)$|^LICENSE$|^docs\/figures\/.*\.svg$/.test(path),
    ),
  ).toEqual([]);
});

test('it exports the API and the judge, and no other path', () => {
  const source = `
    import { createRequire } from 'node:module';
    import * as api from 'tram-multicast';
    import * as check from 'tram-multicast/check';
    const { version } = createRequire(import.meta.url)('tram/package.json');
    const inner = await import('tram-multicast/dist/cluster.js').catch(({ code }) => code);
    console.log(JSON.stringify({ version, inner, api: Object.keys(api), check: Object.keys(check) }));
  `;
  expect(program(source)).toEqual({
    version,
    inner: 'ERR_PACKAGE_PATH_NOT_EXPORTED',
    api: ['Client', 'Cluster', 'ConfigError', 'ERRORS', 'TramError'],
    check: [
      'DEFINITIONS',
      'History',
      'MalformedTraceError',
      'PROPERTIES',
      'judge',
      'parseTrace',
      'readTrace',
    ],
  });
});

const CLUSTER = (memory: string): string => `
  import { Cluster } from 'tram-multicast';
  const service = 'data:text/javascript,export const deliver = ({ payload }) => payload;';
  try {
    const cluster = await Cluster.start({ groups: 2, memory: '${memory}', service });
    const client = await cluster.connect();
    const replies = await client.multicast([0, 1], new TextEncoder().encode('hello'));
    await cluster.close();
    console.log(JSON.stringify([...replies].map(([g, reply]) => [g, new TextDecoder().decode(reply)])));
  } catch ({ code, hint }) {
    console.log(JSON.stringify({ code, hint }));
  }
`;
const HELLOS = [
  [0, 'hello'],
  [1, 'hello'],
];

const koffi = join(directory, 'node_modules', 'koffi');

describe('without koffi', () => {
  beforeAll(() => {
    // There may be one in a folder above: hide it.
    mkdirSync(koffi);
    write('node_modules/koffi/package.json', JSON.stringify({ main: 'missing.js' }));
  });

  afterAll(() => rmSync(koffi, { recursive: true }));

  test('threads work', () => expect(program(CLUSTER('threads'))).toEqual(HELLOS));

  test('processes say what is missing', () => {
    expect(program(CLUSTER('processes'))).toEqual({
      code: 'TRAM_NATIVE_MISSING',
      hint: 'npm install koffi',
    });
  });
});

describe('with koffi', () => {
  beforeAll(() => symlinkSync(join(modules, 'koffi'), koffi));

  test('processes work', () => expect(program(CLUSTER('processes'))).toEqual(HELLOS));
});

test('its examples run where it is installed', () => {
  const main = join('node_modules', 'tram', 'examples', 'counter', 'main.js');
  expect(run(process.execPath, [main]).stdout).toContain('no increment was lost');
});

test('it brings the command', () => {
  expect(run(join(directory, 'node_modules', '.bin', 'tram'), ['--version']).stdout.trim()).toBe(
    version,
  );
});

test('its types are right for strict users', () => {
  symlinkSync(join(modules, '@types'), join(directory, 'node_modules', '@types'));
  write(
    'tsconfig.json',
    JSON.stringify({
      compilerOptions: {
        module: 'nodenext',
        target: 'es2022',
        lib: ['es2022'],
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        // The declarations of the package are judged too.
        skipLibCheck: false,
        noEmit: true,
      },
      files: ['typed.ts'],
    }),
  );
  write('typed.ts', TYPED);
  run(process.execPath, [join(modules, 'typescript', 'bin', 'tsc'), '-p', directory]);
});

const TYPED = `
import { type Client, Cluster, type ErrorCode, type Message, type Service, TramError } from 'tram-multicast';
import { History, judge } from 'tram-multicast/check';

export const service: Service = {
  deliver: ({ payload, destinations, id }: Message, { group }) =>
    destinations.includes(group) && id !== '' ? payload : undefined,
};

export async function main(signal: AbortSignal): Promise<void> {
  const cluster: Cluster = await Cluster.start({ groups: 8, tree: 'base', memory: 'threads', signal });
  const client: Client = await cluster.connect({
    listener: {
      replied: (ticket, group, reply, outcome) => console.log(ticket, group, reply.length, outcome),
      answered: () => undefined,
    },
  });
  try {
    const replies: Map<number, Uint8Array> = await client.multicast([0, 7], Uint8Array.of(1), { signal });
    const offer: 'accepted' | 'backPressured' | 'closed' = client.offer(client.destinations([1]), new Uint8Array());
    for await (const { index, payload } of cluster.deliveries({ group: 0 })) console.log(index, payload, replies, offer);
  } catch (error) {
    const code: ErrorCode | undefined = error instanceof TramError ? error.code : undefined;
    console.log(code, judge(new History()).outcome);
  }
  // @ts-expect-error groups are needed
  await Cluster.start({});
  // @ts-expect-error text is no payload
  await client.multicast([0], 'text');
  await cluster.close();
}
`;
