/** The package as it is published: packed, installed without a network, imported, run and type-checked. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORMAT_VERSION } from '../src/journal/format.js';
import { ARENA_VERSION } from '../src/memory/arena.js';
import { projectDirectory } from './built.js';
import { deliver, end, groups, multicast } from './check/events.js';

const PACKAGE = join(projectDirectory, 'packages/tram');
const MODULES = join(projectDirectory, 'node_modules');
/** The library is small. Journals, recovery and the commands for them take a sixth of it, the page a tenth. */
const FILES_MAX = 340;
const COMPRESSED_BYTES_MAX = 420_000;
/** The page that `tram watch` serves. */
const PAGE = ['index.html', 'page.css', 'page.js'].map((name) => `dist/page/built/${name}`);
const HOOK_MS = 60_000;
const { version, optionalDependencies } = JSON.parse(
  readFileSync(join(PACKAGE, 'package.json'), 'utf8'),
) as { version: string; optionalDependencies: Record<string, string> };

interface Packed {
  readonly filename: string;
  /** Compressed, in bytes. */
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

const directory = mkdtempSync(join(tmpdir(), 'tram-package-'));
/** A folder into which a user has installed the package. */
class Project {
  readonly path: string;

  constructor(name: string) {
    this.path = join(directory, name);
    mkdirSync(this.path);
    this.write('package.json', JSON.stringify({ private: true, type: 'module' }));
  }

  install(tarball: string): void {
    // An empty cache and no network, so that nothing else can be installed.
    const offline = ['--offline', '--cache', join(directory, 'cache'), '--omit=optional'];
    this.run('npm', 'install', ...offline, '--no-audit', '--no-fund', tarball);
  }

  /** Another folder with the same, and with packages that this checkout has. */
  copyWith(name: string, ...packages: string[]): Project {
    const copy = new Project(name);
    const modules = join(copy.path, 'node_modules');
    cpSync(join(this.path, 'node_modules'), modules, { recursive: true, verbatimSymlinks: true });
    for (const added of packages) symlinkSync(join(MODULES, added), join(modules, added));
    return copy;
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.path, name), text);
  }

  run(command: string, ...args: string[]): SpawnSyncReturns<string> {
    return run(this.path, command, args);
  }

  /** Runs a program that uses the package, and reads the JSON that it prints. */
  program(source: string): unknown {
    this.write('program.mjs', source);
    return JSON.parse(this.run(process.execPath, 'program.mjs').stdout);
  }

  tram(...args: string[]): Pick<SpawnSyncReturns<string>, 'status' | 'stdout' | 'stderr'> {
    const command = join(this.path, 'node_modules/.bin/tram');
    return spawnSync(command, args, { cwd: this.path, encoding: 'utf8' });
  }

  typeCheck(file: string, options: object): void {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      lib: ['es2023'],
      types: ['node'],
      strict: true,
      // The declarations of the package are checked too.
      skipLibCheck: false,
      noEmit: true,
      ...options,
    };
    this.write('tsconfig.json', JSON.stringify({ compilerOptions, files: [file] }));
    this.run(process.execPath, join(MODULES, 'typescript/bin/tsc'), '-p', this.path);
  }
}

/** A project with the package and nothing else: `npm install --omit=optional`. */
const bare = new Project('bare');
/** A project with the optional dependencies too. */
let full: Project;
let packed: Packed;
let contents: string[];

beforeAll(() => {
  const { stdout } = run(PACKAGE, 'npm', ['pack', '--json', '--pack-destination', directory]);
  // The output of prepack and postpack comes first.
  [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [Packed];
  contents = packed.files.map(({ path }) => path);
  bare.install(join(directory, packed.filename));
  full = bare.copyWith('full', ...Object.keys(optionalDependencies));
}, HOOK_MS);

afterAll(() => rmSync(directory, { recursive: true, force: true }));

function run(cwd: string, command: string, args: readonly string[]): SpawnSyncReturns<string> {
  const result = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (result.status === 0) return result;
  throw new Error(`${command} ${args.join(' ')} failed:\n${result.stdout}${result.stderr}`);
}

/** The code of a file in the quick start of README.md. */
function quickStart(file: string): string {
  const readme = readFileSync(join(projectDirectory, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/```js\n([^`]*)```/g)].map(([, code]) => code);
  return blocks.find((code) => code.startsWith(`// ${file}\n`))!;
}

describe('the package', () => {
  test('has what its users need, and nothing else', () => {
    expect(contents.filter((path) => !path.startsWith('dist/')).sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'package.json',
    ]);
    expect(contents.filter((path) => path.startsWith('dist/page/built/')).sort()).toEqual(PAGE);
    const others = contents.filter((path) => !PAGE.includes(path));
    expect(others.filter((path) => !/\.(js|d\.ts|md|json)$|^LICENSE$/.test(path))).toEqual([]);
  });

  test('has every module of the sources, and none that an earlier build has left', () => {
    const modules = contents.filter((path) => path.endsWith('.js') && !PAGE.includes(path));
    const sources = readdirSync(join(PACKAGE, 'src'), { recursive: true, encoding: 'utf8' });
    expect(modules.sort()).toEqual(
      sources
        .filter((path) => path.endsWith('.ts'))
        .map((path) => `dist/${path.slice(0, -'.ts'.length)}.js`)
        .sort(),
    );
  });

  test('has nothing of the lab', () => {
    const folders = new Set(contents.flatMap((path) => path.split('/').slice(0, -1)));
    for (const folder of ['sim', 'bench', 'baselines', 'chaos', 'demo', 'test']) {
      expect([...folders]).not.toContain(folder);
    }
    expect(contents.filter((path) => /\b(sim|bench|chaos|demo)\b/.test(path))).toEqual([]);
  });

  test('is small', () => {
    expect(contents.length).toBeLessThanOrEqual(FILES_MAX);
    expect(packed.size).toBeLessThanOrEqual(COMPRESSED_BYTES_MAX);
  });

  test('leaves no copies of the documents in the checkout', () => {
    for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md']) {
      expect(existsSync(join(PACKAGE, name))).toBe(false);
    }
  });
});

describe('without any other package', () => {
  test('nothing else is installed', () => {
    const installed = readdirSync(join(bare.path, 'node_modules'));
    expect(installed.filter((name) => !name.startsWith('.'))).toEqual(['tram-multicast']);
  });

  test('it exports the API and the judge', () => {
    const source = `
      import { createRequire } from 'node:module';
      import * as api from 'tram-multicast';
      import * as check from 'tram-multicast/check';
      const { version } = createRequire(import.meta.url)('tram-multicast/package.json');
      const inner = await import('tram-multicast/dist/cluster.js').catch(({ code }) => code);
      console.log(JSON.stringify({ version, inner, api: Object.keys(api), check: Object.keys(check) }));
    `;
    expect(bare.program(source)).toEqual({
      version,
      inner: 'ERR_PACKAGE_PATH_NOT_EXPORTED',
      api: [
        'Client',
        'Cluster',
        'ConfigError',
        'ERRORS',
        'ReplyError',
        'TramError',
        'bytesCodec',
        'defineService',
      ],
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

  test('the quick start of the README runs', () => {
    bare.write('service.js', quickStart('service.js'));
    bare.write('main.js', quickStart('main.js'));
    const { stdout } = bare.run(process.execPath, 'main.js');
    expect(stdout).toBe('{ total: 5 } { total: 5 }\n');
  });

  test('the page of a cluster is served', () => {
    const source = `
      import { Cluster } from 'tram-multicast';
      const cluster = await Cluster.start({ groups: 1, page: { port: 0 } });
      const get = async (path) => {
        const response = await fetch(new URL(path, cluster.page));
        return [response.status, response.headers.get('content-type')];
      };
      const answers = [await get('/'), await get('/page.js'), await get('/page.css')];
      await cluster.close();
      console.log(JSON.stringify(answers));
    `;
    expect(bare.program(source)).toEqual([
      [200, 'text/html; charset=utf-8'],
      [200, 'text/javascript; charset=utf-8'],
      [200, 'text/css; charset=utf-8'],
    ]);
  });

  test('processes name the package that is missing', () => {
    expect(bare.program(ON_PROCESSES)).toEqual({
      code: 'TRAM_NATIVE_MISSING',
      hint: 'npm install koffi',
    });
  });

  test.each([
    ['commander', [], ['--help']],
    ['commander', [], ['check', 'trace.jsonl']],
    ['pino', ['commander'], ['host', 'alpha']],
  ])(
    'a command says in one line that %s is missing, and how to install it',
    (name, linked, args) => {
      const project = bare.copyWith(`without-${name}-${args[0]}`, ...linked);
      const { status, stdout, stderr } = project.tram(...args);
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      const range = optionalDependencies[name];
      expect(stderr).toBe(
        `tram: this command needs the package ${name}, which is not installed: npm install "${name}@${range}"\n`,
      );
    },
  );

  test('a command that reads a configuration file says that yaml is missing, and how to install it', () => {
    const project = bare.copyWith('without-yaml', 'commander');
    project.write('cluster.yaml', 'groups: 1\n');
    const { status, stdout, stderr } = project.tram('up', '--config', 'cluster.yaml');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('yaml');
    expect(stderr).toContain('npm install yaml');
    expect(stderr).not.toContain('    at ');
  });
});

describe('with its optional dependencies', () => {
  test('the command tells its version and explains itself', () => {
    expect(full.tram('--version')).toMatchObject({
      status: 0,
      stdout: `${version} (memory version ${ARENA_VERSION}, journal format ${FORMAT_VERSION})\n`,
    });
    const help = full.tram('--help');
    expect(help).toMatchObject({ status: 0, stderr: '' });
    expect(help.stdout).toContain('Usage: tram');
  });

  test('tram check judges a history', () => {
    const events = [groups(1), multicast('a', [0], 'c1'), ...deliver('0/0', 'a'), end()];
    full.write('trace.jsonl', events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    expect(full.tram('check', 'trace.jsonl')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/verdict: holds\n$/),
      stderr: '',
    });
  });

  test('processes work', () => {
    expect(full.program(ON_PROCESSES)).toEqual([
      [0, 'hello'],
      [1, 'hello'],
    ]);
  });
});

describe('its types', () => {
  test('are right for strict users', () => {
    const project = bare.copyWith('typed', '@types');
    project.write('typed.ts', TYPED);
    project.typeCheck('typed.ts', { exactOptionalPropertyTypes: true });
  });

  test('compile the example of a typed service, which runs', () => {
    const example = join(projectDirectory, 'examples/inventory');
    const project = bare.copyWith('inventory', '@types');
    cpSync(example, project.path, { recursive: true, filter: (path) => !path.endsWith('dist') });
    project.run(process.execPath, join(MODULES, 'typescript/bin/tsc'), '-p', project.path);
    const { stdout, stderr } = project.run(process.execPath, 'dist/main.js');
    expect(stderr).toBe('');
    expect(stdout.trimEnd().split('\n')).toEqual(Array(3).fill(expect.stringMatching(/^ok: /)));
  });

  test('accept the quick start of the README', () => {
    const project = bare.copyWith('typed-readme', '@types');
    project.write('service.js', quickStart('service.js'));
    project.write('main.js', quickStart('main.js'));
    // Parameters in JavaScript have no types.
    const options = { allowJs: true, checkJs: true, noImplicitAny: false };
    project.typeCheck('main.js', options);
    project.typeCheck('service.js', options);
  });
});

const ON_PROCESSES = `
  import { Cluster } from 'tram-multicast';
  const service = 'data:text/javascript,export const deliver = ({ payload }) => payload;';
  try {
    const cluster = await Cluster.start({ groups: 2, memory: 'processes', service });
    const client = await cluster.connect();
    const replies = await client.multicast([0, 1], new TextEncoder().encode('hello'));
    await cluster.close();
    console.log(JSON.stringify([...replies].map(([g, reply]) => [g, new TextDecoder().decode(reply)])));
  } catch ({ code, hint }) {
    console.log(JSON.stringify({ code, hint }));
  }
`;

const TYPED = `
import { type AttachedCluster, bytesCodec, type Client, Cluster, type Deferred, defineService, type ErrorCode, type Message, ReplyError, type Service, TramError } from 'tram-multicast';
import { History, judge } from 'tram-multicast/check';

export const service: Service = {
  deliver: ({ payload, destinations, id }: Message, { group }) =>
    destinations.includes(group) && id !== '' ? payload : undefined,
};

export const stateful: Service = {
  deliver: () => undefined,
  snapshot: () => new Uint8Array(1),
  restore: (snapshot: Uint8Array) => console.log(snapshot.length),
};
// @ts-expect-error snapshot needs restore
export const half: Service = { deliver: () => undefined, snapshot: () => new Uint8Array(1) };

const sums = defineService({
  initial: (group) => ({ sum: group }),
  deliver(state, { add }: { add: number }) {
    state.sum += add;
    return { sum: state.sum };
  },
});
export const echo = defineService({
  initial: () => ({}),
  deliver: (_state, bytes: Uint8Array) => bytes,
  codecs: { command: bytesCodec, reply: bytesCodec, state: undefined },
});
export const box = defineService({
  initial: () => ({ ids: [] as string[] }),
  deliver({ ids }, text: string, context): number | Deferred {
    if (context.reply(ids[0], text.length)) return 0;
    // @ts-expect-error a reply is a number
    context.reply(ids[0], text);
    return context.defer();
  },
  abandoned: ({ ids }, id, { reply }) => void (ids.includes(id) && reply(id, 1)),
});
// @ts-expect-error a service without "abandoned" must not defer
export const forgetful = defineService({ initial: () => ({}), deliver: (_state, _text: string, { defer }) => defer() });
// @ts-expect-error deliver must be synchronous
export const late = defineService({ initial: () => ({}), deliver: async (_state, command: string) => command });

export async function typed(cluster: Cluster, timeoutMs: number | undefined): Promise<number | undefined> {
  const client = sums.client(await cluster.connect({ listener: undefined }));
  const { sum } = await client.call(1, { add: 5 }, { timeoutMs, signal: undefined });
  const replies: Map<number, { sum: number }> = await client.multicast([1, 3], { add: sum });
  // @ts-expect-error not a command
  await client.call(1, { subtract: 5 });
  await client.close();
  return replies.get(1)?.sum;
}

export function failedGroups(error: unknown): number[] {
  return error instanceof ReplyError ? [...error.failedGroups.keys()] : [];
}

export async function main(signal: AbortSignal | undefined, name: string | undefined): Promise<void> {
  await Cluster.start({ groups: 8, name, hosts: undefined, logger: undefined, startTimeoutMs: undefined, signal });
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
    console.log(cluster.status().groups.map(({ leader, replicas }) => replicas[leader ?? 0].delivered));
  } catch (error) {
    const code: ErrorCode | undefined = error instanceof TramError ? error.code : undefined;
    console.log(code, judge(new History()).outcome);
  }
  const attached: AttachedCluster = await Cluster.attach('bank');
  for await (const { index } of attached.deliveries({ group: 0, signal })) console.log(index, attached.status().state);
  await attached.restart(0, { fresh: true });
  await attached.shutDown({ force: true });
  // @ts-expect-error only its starter can
  await attached.destroy();
  // @ts-expect-error groups are needed
  await Cluster.start({});
  // @ts-expect-error text is no payload
  await client.multicast([0], 'text');
  // @ts-expect-error internal
  await Client.join('cluster.yaml');
  await cluster.close();
}
`;
