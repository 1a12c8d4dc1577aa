/** Who may import whom (ARCHITECTURE.md): the folder tree is the architecture, and this keeps it. */

import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const PACKAGES = fileURLToPath(new URL('../../', import.meta.url));

interface Rule {
  /** What files of the folder may import: `package/path` below its src/; a folder ends with a slash. */
  readonly imports: readonly string[];
  /** Files that may import `node:` modules. */
  readonly node?: RegExp;
  readonly packages?: readonly string[];
  /** Words that must not occur in the code. */
  readonly bans?: readonly RegExp[];
}

const CHANCE = /\bcrypto\b/;
/** Time, chance and waiting: what is to run in a simulator gets them from outside. */
const TIMELESS: readonly RegExp[] = [
  /\bDate\b/,
  /\bperformance\b/,
  /\bMath\.random\b/,
  CHANCE,
  /\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/,
  /\bqueueMicrotask\b/,
  /\bPromise\b/,
  /\basync\b/,
  /\bawait\b/,
  /\bprocess\./,
];

/** What a rule says of a file counts for it alone; of a folder, for all below that have no rule of their own. */
const RULES: Readonly<Record<string, Rule>> = {
  tram: {
    imports: [
      'tram/attached-cluster.ts',
      'tram/client.ts',
      'tram/cluster.ts',
      'tram/codec.ts',
      'tram/define-service.ts',
      'tram/destinations.ts',
      'tram/errors.ts',
      'tram/multicast-request.ts',
      'tram/stalled-requests.ts',
      'tram/start-options.ts',
      'tram/config/',
      'tram/hosting/',
      'tram/journal/',
      'tram/memory/',
      'tram/page/',
      'tram/protocol/',
    ],
    node: /./,
  },
  'tram/config': {
    imports: ['tram/config/', 'tram/errors.ts', 'tram/protocol/'],
    node: /./,
  },
  'tram/config/yaml-document.ts': { imports: ['tram/config/'], packages: ['yaml'] },
  'tram/protocol': {
    imports: [
      'tram/protocol/',
      'tram/memory/contract.ts',
      'tram/memory/record.ts',
      'tram/memory/words.ts',
    ],
    bans: TIMELESS,
  },
  /** Runs in the simulator: only the disk is outside of it. Checksums are those of Node, which are native. */
  'tram/journal': {
    imports: [
      'tram/journal/',
      'tram/protocol/',
      'tram/memory/record.ts',
      'tram/memory/words.ts',
      'tram/errors.ts',
    ],
    node: /^tram\/journal\/(?:disk|format)\.ts$/,
    bans: TIMELESS,
  },
  'tram/memory': { imports: ['tram/memory/'] },
  'tram/memory/koffi.ts': { imports: ['tram/errors.ts'], node: /./, packages: ['koffi'] },
  'tram/memory/processes': { imports: ['tram/memory/', 'tram/errors.ts'], node: /./ },
  'tram/memory/fabric': { imports: ['tram/memory/', 'tram/errors.ts'], node: /./ },
  'tram/memory/machines/handshake.ts': { imports: ['tram/memory/arena.ts'], node: /./ },
  'tram/hosting': {
    imports: [
      'tram/hosting/',
      'tram/journal/',
      'tram/memory/',
      'tram/protocol/',
      'tram/check/events.ts',
      'tram/config/',
      'tram/errors.ts',
    ],
    node: /./,
  },
  /** Run any agent, and know nothing of TRAM. */
  'tram/hosting/duty.ts': { imports: ['tram/memory/'] },
  'tram/hosting/histogram.ts': { imports: [] },
  'tram/page': {
    imports: ['tram/page/', 'tram/hosting/', 'tram/config/', 'tram/errors.ts'],
    node: /./,
  },
  /** The page in the browser has its types from here. */
  'tram/page/wire.ts': { imports: ['tram/hosting/status.ts'] },
  'tram/check': { imports: ['tram/check/'] },
  'tram/cli': { imports: ['tram/'], node: /./, packages: ['commander', 'pino'] },
  'lab/baselines': {
    imports: ['lab/baselines/', 'tram/memory/', 'tram/protocol/overlay.ts'],
    bans: TIMELESS,
  },
  'lab/baselines/tcp': { imports: ['lab/baselines/'], node: /./ },
  'lab/sim': {
    imports: [
      'lab/sim/',
      'lab/baselines/',
      'tram/protocol/',
      'tram/memory/',
      'tram/journal/',
      'tram/check/',
      'tram/errors.ts',
    ],
    node: /^lab\/sim\/(?:pool|worker|mutations\/mutant)\.ts$/,
  },
  'lab/explore': { imports: ['lab/explore/', 'lab/sim/', 'tram/protocol/', 'tram/memory/'] },
  'lab/bench': { imports: ['lab/bench/', 'lab/baselines/', 'lab/sim/', 'tram/'], node: /./ },
  'lab/cli': { imports: ['lab/', 'tram/'], node: /./, packages: ['commander'] },
  /** Uses the library as its users do. Each folder may import those above it. */
  'store/check': { imports: ['store/check/'], bans: TIMELESS },
  'store/resp': { imports: ['store/resp/'], node: /^store\/resp\/parser\.ts$/, bans: TIMELESS },
  /** Lua 5.1. It runs at every replica, and knows nothing of the store. */
  'store/lua': { imports: ['store/lua/'], bans: TIMELESS },
  'store/engine': { imports: ['store/engine/', 'store/resp/'], bans: TIMELESS },
  /** Its hash is secret, so that nobody can choose keys with the same one. No state depends on it. */
  'store/engine/position-table.ts': {
    imports: ['store/resp/'],
    bans: TIMELESS.filter((ban) => ban !== CHANCE),
  },
  'store/commands': {
    imports: ['store/commands/', 'store/lua/', 'store/engine/', 'store/resp/'],
    node: /^store\/commands\/scripting\/scripts\.ts$/,
    bans: TIMELESS,
  },
  /** Merges replies of shards, at a gateway. */
  'store/commands/keys-spreads.ts': {
    imports: ['store/commands/', 'store/engine/', 'store/resp/'],
  },
  'store/messages': {
    imports: ['store/messages/', 'store/engine/', 'store/resp/', 'store/version.ts'],
    bans: TIMELESS,
  },
  /** Runs at every replica, so it must be deterministic. Of TRAM it has types only. */
  'store/shard': {
    imports: [
      'store/shard/',
      'store/messages/',
      'store/commands/',
      'store/engine/',
      'store/resp/',
      'tram/index.ts',
    ],
    node: /^store\/shard\/shard\.ts$/,
    bans: TIMELESS,
  },
  'store/gateway': {
    imports: ['store/gateway/', 'store/commands/', 'store/engine/', 'store/resp/'],
    node: /./,
  },
  'store/backend': {
    imports: [
      'store/backend/',
      'store/gateway/',
      'store/messages/',
      'store/commands/',
      'store/engine/',
      'store/resp/',
      'tram/index.ts',
    ],
    node: /./,
  },
  /** A client of stores and of Redis. */
  'store/import': {
    imports: ['store/import/', 'store/engine/', 'store/resp/', 'store/options.ts'],
    node: /./,
  },
  store: { imports: ['store/', 'tram/index.ts'], node: /./ },
  'store/cli': { imports: ['store/'], node: /./, packages: ['commander'] },
};

/** What needs a package that the library does without: it is only loaded, by `import(…)`, when it is used. */
const LOADED_ONLY = ['tram/config/yaml-document.ts'];

/** Import and export-from statements, bare imports, and dynamic imports. */
const IMPORT = /(?<![.\w-])(?:from|import\s*\(|import)\s*(['"`])([^'"`\n]+)\1/g;

/** What is wrong with a file; empty if nothing is. @param path  `package/path` below its src/, with slashes */
function complaints(path: string, text: string): string[] {
  const rule = ruleOf(path);
  const code = withoutComments(text);
  const found: string[] = [];
  for (const [statement, , target] of code.matchAll(IMPORT)) {
    if (!mayImport(rule, path, target, statement.includes('(')))
      found.push(`${path} must not import ${target}`);
  }
  for (const ban of rule.bans ?? []) {
    const word = ban.exec(withoutStrings(code))?.[0];
    if (word !== undefined) found.push(`${path} must not use ${word}`);
  }
  return found;
}

function ruleOf(path: string): Rule {
  for (let place = path; place !== '.'; place = posix.dirname(place)) {
    if (RULES[place] !== undefined) return RULES[place];
  }
  throw new Error(`${path} has no rule: add its folder to RULES and to ARCHITECTURE.md`);
}

function mayImport(rule: Rule, path: string, target: string, isLoaded: boolean): boolean {
  if (target.startsWith('node:')) return rule.node?.test(path) ?? false;
  const resolved = resolve(path, target);
  if (resolved === undefined) return rule.packages?.includes(target) ?? false;
  if (LOADED_ONLY.includes(resolved) && !isLoaded) return false;
  return rule.imports.some((allowed) =>
    allowed.endsWith('/') ? resolved.startsWith(allowed) : resolved === allowed,
  );
}

/** `package/path` below its src/, or undefined if it is none of our packages. */
function resolve(path: string, target: string): string | undefined {
  const source = (place: string): string => place.replace(/\.js$/, '.ts');
  if (target.startsWith('.')) return source(posix.join(posix.dirname(path), target));
  if (target === 'tram-multicast') return 'tram/index.ts';
  if (target === 'tram-multicast/check') return 'tram/check/index.ts';
  const [, inner] = /^tram-multicast\/internal\/(.*)$/.exec(target) ?? [];
  return inner && source(`tram/${inner}`);
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

function withoutStrings(code: string): string {
  return code.replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''");
}

function sourceFiles(name: string): string[] {
  return readdirSync(join(PACKAGES, name, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.split(sep).join('/'));
}

test.each(['tram', 'lab', 'store'])('every file of %s keeps the rules of its folder', (name) => {
  const files = sourceFiles(name);
  expect(files.length).toBeGreaterThan(50);
  const found = files.flatMap((path) =>
    complaints(`${name}/${path}`, readFileSync(join(PACKAGES, name, 'src', path), 'utf8')),
  );
  expect(found).toEqual([]);
});

/** Of built modules: which of its package each one imports, or exports from. */
type Graph = ReadonlyMap<string, readonly string[]>;

const FROM = /^(?:import|export) [^'"]*\bfrom ['"](\.[^'"]+)['"]/gm;

function builtModules(name: string): Graph {
  const folder = join(PACKAGES, name, 'dist');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const paths = files
    .filter((path) => path.endsWith('.js'))
    .map((path) => path.split(sep).join('/'));
  return new Map(
    paths.map((path) => {
      const text = readFileSync(join(folder, path), 'utf8');
      const targets = [...text.matchAll(FROM)].map(([, target]) => target);
      return [path, targets.map((target) => posix.join(posix.dirname(path), target))];
    }),
  );
}

/** Modules of which each imports the next one, and the last one the first; empty if there is no circle. */
function circleIn(imports: Graph): readonly string[] {
  const done = new Set<string>();
  const from = (path: string, way: readonly string[]): readonly string[] => {
    if (way.includes(path)) return way.slice(way.indexOf(path));
    if (done.has(path)) return [];
    for (const target of imports.get(path) ?? []) {
      const circle = from(target, [...way, path]);
      if (circle.length > 0) return circle;
    }
    done.add(path);
    return [];
  };
  for (const path of imports.keys()) {
    const circle = from(path, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

/** packages/own-imports.mjs makes constants of imports, so the modules of a circle may not load. */
test.each(['tram', 'lab', 'store'])(
  'no built module of %s imports itself by way of others',
  (name) => {
    const imports = builtModules(name);
    expect([...imports.values()].flat().length).toBeGreaterThan(imports.size);
    expect(circleIn(imports)).toEqual([]);
  },
);

test('a planted circle is found', () => {
  const imports = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', []],
    ['d', ['c', 'b']],
  ]);
  expect(circleIn(imports)).toEqual(['b', 'd']);
});

/** The variables that a built module exports, and may change. */
function exportedVariables(text: string): string[] {
  const variables = [...text.matchAll(/^(?:export )?(?:let|var) (\w+)/gm)].map(([, name]) => name);
  const lists = [...text.matchAll(/^export \{([^}]*)\}(?! from)/gm)].map(([, names]) => names);
  const exported = new Set(
    lists.flatMap((names) => names.split(',').map((name) => name.trim().split(' as ')[0])),
  );
  return variables.filter(
    (name) => exported.has(name) || new RegExp(`^export (?:let|var) ${name}\\b`, 'm').test(text),
  );
}

/** packages/own-imports.mjs makes constants of imports, which keep the first value of a variable. */
test.each(['tram', 'lab', 'store'])('no built module of %s exports a variable', (name) => {
  const folder = join(PACKAGES, name, 'dist');
  const variables = [...builtModules(name).keys()].flatMap((path) =>
    exportedVariables(readFileSync(join(folder, path), 'utf8')).map((found) => `${path}: ${found}`),
  );
  expect(variables).toEqual([]);
});

test('a planted variable is found', () => {
  expect(exportedVariables('export let a = 1;\nexport const b = 2;')).toEqual(['a']);
  expect(exportedVariables('let c = 1;\nconst d = 2;\nexport { c as e, d };')).toEqual(['c']);
  expect(exportedVariables("let f = 1;\nexport { f } from './g.js';")).toEqual([]);
});

describe('a planted offence is found', () => {
  test.each([
    ['tram/client.ts', "import { YamlDocument } from './config/yaml-document.js';"],
    ['tram/client.ts', "const { parse } = await import('yaml');"],
    ['tram/client.ts', "import { judge } from './check/judge.js';"],
    ['tram/cluster.ts', "import { simulate } from 'tram-lab';"],
    ['tram/cluster.ts', "import { simulate } from '../../lab/src/sim/simulate.js';"],
    ['tram/config/options.ts', "import { parse } from 'yaml';"],
    ['tram/config/file.ts', "import { parse } from 'yaml';"],
    ['tram/config/file.ts', "import { YamlDocument } from './yaml-document.js';"],
    ['tram/protocol/replica.ts', "import { readFileSync } from 'node:fs';"],
    ['tram/protocol/data-path/leader.ts', "import { Arena } from '../../memory/arena.js';"],
    ['tram/protocol/data-path/leader.ts', "export * from '../../check/judge.js';"],
    ['tram/protocol/replica.ts', "import\n{ a,\n b }\nfrom\n'../cli/main.js';"],
    ['tram/protocol/replica.ts', "import '../hosting/duty.js';"],
    ['tram/protocol/replica.ts', "import { parse } from 'yaml';"],
    ['tram/protocol/data-path/leader.ts', 'const now = Date.now();'],
    ['tram/protocol/data-path/leader.ts', 'const dice = Math.random();'],
    ['tram/protocol/data-path/leader.ts', 'setTimeout(() => {}, 10);'],
    ['tram/protocol/leadership/takeover.ts', 'async function f() {}'],
    ['tram/protocol/leadership/takeover.ts', 'return new Promise(() => {});'],
    ['tram/journal/writer.ts', "import { writeSync } from 'node:fs';"],
    ['tram/journal/writer.ts', "import { Arena } from '../memory/arena.js';"],
    ['tram/journal/reader.ts', 'const now = Date.now();'],
    ['tram/memory/shared.ts', "import { entryGroup } from '../protocol/overlay.js';"],
    ['tram/memory/shared.ts', "import { join } from 'node:path';"],
    ['tram/memory/shared.ts', "import { TramError } from '../errors.js';"],
    ['tram/memory/arena.ts', "import koffi from 'koffi';"],
    ['tram/memory/processes/native.ts', "import { Replica } from '../../protocol/replica.js';"],
    ['tram/memory/processes/native.ts', "import koffi from 'koffi';"],
    ['tram/memory/machines/network.ts', "import { createHmac } from 'node:crypto';"],
    ['tram/memory/fabric/fabric.ts', "import { Replica } from '../../protocol/replica.js';"],
    ['tram/hosting/duty.ts', "import { Replica } from '../protocol/replica.js';"],
    ['tram/hosting/duty.ts', "import { performance } from 'node:perf_hooks';"],
    ['tram/hosting/host.ts', "import { Cluster } from '../cluster.js';"],
    ['tram/hosting/host.ts', "import { parse } from 'yaml';"],
    ['tram/hosting/host.ts', "import { YamlDocument } from '../config/yaml-document.js';"],
    ['tram/page/server.ts', "import { Cluster } from '../cluster.js';"],
    ['tram/page/watcher.ts', "import { Arena } from '../memory/arena.js';"],
    ['tram/page/wire.ts', "import { createServer } from 'node:http';"],
    ['tram/check/judge.ts', "const m = await import('../protocol/overlay.js');"],
    ['tram/check/judge.ts', "import { createReadStream } from 'node:fs';"],
    ['lab/baselines/skeen/group.ts', "import { createServer } from 'node:net';"],
    [
      'lab/baselines/ramcast/leader.ts',
      "import { Replica } from 'tram-multicast/internal/protocol/replica.js';",
    ],
    ['lab/baselines/ramcast/leader.ts', "import { join } from 'node:path';"],
    ['lab/baselines/ramcast/leader.ts', 'const now = performance.now();'],
    ['lab/sim/world.ts', "import { cpus } from 'node:os';"],
    ['lab/sim/mutations/table.ts', "import { readFileSync } from 'node:fs';"],
    ['lab/sim/world.ts', "import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';"],
    ['lab/sim/world.ts', "import { order } from '../bench/order.js';"],
    ['lab/sim/world.ts', "import { Search } from '../explore/search.js';"],
    ['store/engine/keyspace.ts', 'const now = Date.now();'],
    ['store/commands/sets.ts', 'const dice = Math.random();'],
    ['store/shard/shard.ts', "import { Batches } from '../backend/batches.js';"],
    [
      'store/backend/wire.ts',
      "import { Client } from 'tram-multicast/internal/protocol/data-path/client.js';",
    ],
    ['lab/explore/search.ts', "import { performance } from 'node:perf_hooks';"],
  ])('%s: %s', (path, text) => {
    expect(complaints(path, text)).toHaveLength(1);
  });

  test.each([
    ['tram/client.ts', "const { readConfigFile } = await import('./config/file.js');"],
    ['tram/config/file.ts', "const { YamlDocument } = await import('./yaml-document.js');"],
    ['tram/config/yaml-document.ts', "import { parseDocument } from 'yaml';"],
    ['tram/protocol/data-path/leader.ts', "import { Log } from './log.js';"],
    ['tram/protocol/data-path/leader.ts', "import { Rows } from '../leadership/rows.js';"],
    ['tram/protocol/replica.ts', "import type { Memory } from '../memory/contract.js';"],
    ['tram/protocol/replica.ts', "// Date and import x from 'node:fs' are only words here"],
    ['tram/protocol/replica.ts', "assert(ok, 'await the grant');"],
    ['tram/journal/disk.ts', "import { writeSync } from 'node:fs';"],
    ['tram/journal/format.ts', "import { crc32 } from 'node:zlib';"],
    ['lab/sim/world.ts', "import type { Disk } from 'tram-multicast/internal/journal/disk.js';"],
    ['tram/memory/koffi.ts', "import type { KoffiFunction } from 'koffi';"],
    ['tram/memory/processes/arena-file.ts', "import { openSync } from 'node:fs';"],
    ['tram/memory/processes/arena-file.ts', "import { TramError } from '../../errors.js';"],
    ['tram/memory/fabric/fabric.ts', "import { TramError } from '../../errors.js';"],
    ['tram/memory/machines/handshake.ts', "import { createHmac } from 'node:crypto';"],
    ['tram/hosting/duty.ts', "import type { Arena } from '../memory/arena.js';"],
    ['tram/hosting/host.ts', "import { Replica } from '../protocol/replica.js';"],
    ['tram/hosting/host.ts', "const { readConfigFile } = await import('../config/file.js');"],
    ['tram/hosting/host-thread.ts', "import { parentPort } from 'node:worker_threads';"],
    [
      'lab/baselines/byzcast/group.ts',
      "import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';",
    ],
    ['lab/baselines/tcp/link.ts', "import type { Socket } from 'node:net';"],
    [
      'lab/baselines/ramcast/leader.ts',
      "import { OPEN } from 'tram-multicast/internal/memory/contract.js';",
    ],
    ['lab/sim/world.ts', "import { judge } from 'tram-multicast/check';"],
    ['lab/sim/pool.ts', "import { Worker } from 'node:worker_threads';"],
    ['lab/sim/mutations/mutant.ts', "import { readFileSync } from 'node:fs';"],
    ['lab/explore/hunt.ts', "import { Random } from '../sim/random.js';"],
    ['lab/cli/sim.ts', "import { Command } from 'commander';"],
  ])('but not in %s: %s', (path, text) => {
    expect(complaints(path, text)).toEqual([]);
  });
});
