/** Who may import whom (ARCHITECTURE.md): the folder tree is the architecture, and this keeps it. */

import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));

interface Rule {
  /** What files of the folder may import, as paths below src/; a folder ends with a slash. */
  readonly imports: readonly string[];
  /** What they may import only when it is used: by `import(…)`. */
  readonly loads?: readonly string[];
  /** Files that may import `node:` modules. */
  readonly node?: RegExp;
  readonly packages?: readonly string[];
  /** Words that must not occur in the code. */
  readonly bans?: readonly RegExp[];
}

/** Time, chance and waiting: what is to run in a simulator gets them from outside. */
const TIMELESS: readonly RegExp[] = [
  /\bDate\b/,
  /\bperformance\b/,
  /\bMath\.random\b/,
  /\bcrypto\b/,
  /\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/,
  /\bqueueMicrotask\b/,
  /\bPromise\b/,
  /\basync\b/,
  /\bawait\b/,
  /\bprocess\./,
];

const LIBRARY = [
  'client.ts',
  'cluster.ts',
  'config.ts',
  'config-checks.ts',
  'config-machines.ts',
  'errors.ts',
];

/** By file, or else by its folder, or else by the folder at the top. */
const RULES: Readonly<Record<string, Rule>> = {
  '.': {
    imports: [...LIBRARY, 'hosting/', 'memory/', 'protocol/', 'runtime/'],
    loads: ['config-file.ts'],
    node: /./,
  },
  'config-file.ts': { imports: LIBRARY, node: /./, packages: ['yaml', 'zod'] },
  protocol: {
    imports: ['protocol/', 'memory/contract.ts', 'memory/layout.ts', 'memory/window.ts'],
    bans: TIMELESS,
  },
  memory: { imports: ['memory/'] },
  'memory/native.ts': { imports: ['memory/', 'errors.ts'], node: /./, packages: ['koffi'] },
  'memory/processes.ts': { imports: ['memory/', 'errors.ts'], node: /./, packages: ['koffi'] },
  'memory/koffi.ts': { imports: ['errors.ts'], node: /./, packages: ['koffi'] },
  'memory/fabric': { imports: ['memory/', 'errors.ts'], node: /./, packages: ['koffi'] },
  'memory/hosts': { imports: ['memory/'] },
  'memory/hosts/handshake.ts': { imports: [], node: /./ },
  runtime: { imports: ['runtime/', 'memory/'] },
  hosting: {
    imports: [
      'hosting/',
      'memory/',
      'protocol/',
      'runtime/',
      'check/events.ts',
      'config.ts',
      'errors.ts',
    ],
    loads: ['config-file.ts'],
    node: /./,
  },
  baselines: {
    imports: ['baselines/', 'memory/', 'runtime/', 'protocol/overlay.ts'],
    bans: TIMELESS,
  },
  'baselines/tcp': { imports: ['baselines/'], node: /./ },
  check: { imports: ['check/'] },
  sim: {
    imports: ['sim/', 'protocol/', 'memory/', 'baselines/', 'check/'],
    node: /^sim\/(?:run-[^/]*|pool|worker)\.ts$/,
  },
};

/** Import and export-from statements, bare imports, and dynamic imports. */
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*(['"`])([^'"`]+)\1/g;

/** What is wrong with a file; empty if nothing is. @param path  below src/, with slashes */
function complaints(path: string, text: string): string[] {
  const rule = RULES[path] ?? RULES[posix.dirname(path)] ?? RULES[path.split('/')[0]];
  if (rule === undefined) return [];
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

function mayImport(rule: Rule, path: string, target: string, isLoaded: boolean): boolean {
  if (target.startsWith('node:')) return rule.node?.test(path) ?? false;
  if (!target.startsWith('.')) return rule.packages?.includes(target) ?? false;
  const resolved = posix.join(posix.dirname(path), target).replace(/\.js$/, '.ts');
  const mayBe = [...rule.imports, ...((isLoaded && rule.loads) || [])];
  return mayBe.some((allowed) =>
    allowed.endsWith('/') ? resolved.startsWith(allowed) : resolved === allowed,
  );
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

function withoutStrings(code: string): string {
  return code.replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''");
}

function sourceFiles(): string[] {
  return readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.split(sep).join('/'));
}

test('every file keeps the rules of its folder', () => {
  const files = sourceFiles();
  expect(files).toContain('check/judge.ts');
  const found = files.flatMap((path) => complaints(path, readFileSync(join(SOURCE, path), 'utf8')));
  expect(found).toEqual([]);
});

describe('a planted offence is found', () => {
  test.each([
    ['client.ts', "import { readConfigFile } from './config-file.js';"],
    ['client.ts', "const { parse } = await import('yaml');"],
    ['cluster.ts', "import { simulate } from './sim/simulate.js';"],
    ['config.ts', "import { z } from 'zod';"],
    ['protocol/leader.ts', "import { readFileSync } from 'node:fs';"],
    ['protocol/leader.ts', "import { SimulatedMemory } from '../memory/simulated.js';"],
    ['protocol/leader.ts', "import type { World } from '../sim/world.js';"],
    ['protocol/leader.ts', "export * from '../check/judge.js';"],
    ['protocol/leader.ts', "import\n{ a,\n b }\nfrom\n'../cli/main.js';"],
    ['protocol/leader.ts', "import '../runtime/agent.js';"],
    ['protocol/leader.ts', "import { z } from 'zod';"],
    ['protocol/leader.ts', 'const now = Date.now();'],
    ['protocol/leader.ts', 'const dice = Math.random();'],
    ['protocol/leader.ts', 'setTimeout(() => {}, 10);'],
    ['protocol/leader.ts', 'async function f() {}'],
    ['protocol/leader.ts', 'return new Promise(() => {});'],
    ['memory/simulated.ts', "import { entryGroup } from '../protocol/overlay.js';"],
    ['memory/simulated.ts', "import { join } from 'node:path';"],
    ['memory/shared.ts', "import { TramError } from '../errors.js';"],
    ['memory/arena.ts', "import koffi from 'koffi';"],
    ['memory/native.ts', "import { Rules } from '../protocol/rules.js';"],
    ['memory/native.ts', "import { z } from 'zod';"],
    ['memory/hosts/network.ts', "import { createHmac } from 'node:crypto';"],
    ['memory/fabric/fabric.ts', "import { Replica } from '../../protocol/replica.js';"],
    ['runtime/duty.ts', "import { Replica } from '../protocol/replica.js';"],
    ['runtime/duty.ts', "import { performance } from 'node:perf_hooks';"],
    ['hosting/host.ts', "import { Cluster } from '../cluster.js';"],
    ['hosting/host.ts', "import { simulate } from '../sim/simulate.js';"],
    ['hosting/host.ts', "import { parse } from 'yaml';"],
    ['hosting/host.ts', "import { readConfigFile } from '../config-file.js';"],
    ['baselines/skeen/group.ts', "import { createServer } from 'node:net';"],
    ['baselines/skeen/group.ts', "import { Replica } from '../../protocol/replica.js';"],
    ['baselines/ramcast/leader.ts', "import { Replica } from '../../protocol/replica.js';"],
    ['baselines/ramcast/leader.ts', "import { join } from 'node:path';"],
    ['baselines/ramcast/leader.ts', 'const now = performance.now();'],
    ['check/judge.ts', "const m = await import('../protocol/overlay.js');"],
    ['check/judge.ts', "import { createReadStream } from 'node:fs';"],
    ['sim/world.ts', "import { cpus } from 'node:os';"],
    ['sim/world.ts', "import { ExitCode } from '../cli/exit-codes.js';"],
  ])('%s: %s', (path, text) => {
    expect(complaints(path, text)).toHaveLength(1);
  });

  test.each([
    ['client.ts', "const { readConfigFile } = await import('./config-file.js');"],
    ['config-file.ts', "import { parseDocument } from 'yaml';"],
    ['protocol/leader.ts', "import { Log } from './log.js';"],
    ['protocol/leader.ts', "import type { Memory } from '../memory/contract.js';"],
    ['protocol/leader.ts', "// Date and import x from 'node:fs' are only words here"],
    ['protocol/leader.ts', "assert(ok, 'await the grant');"],
    ['memory/native.ts', "import type { KoffiFunction } from 'koffi';"],
    ['memory/processes.ts', "import { openSync } from 'node:fs';"],
    ['memory/processes.ts', "import { TramError } from '../errors.js';"],
    ['memory/fabric/fabric.ts', "import { TramError } from '../../errors.js';"],
    ['memory/hosts/handshake.ts', "import { createHmac } from 'node:crypto';"],
    ['runtime/duty.ts', "import type { Arena } from '../memory/arena.js';"],
    ['hosting/host.ts', "import { Replica } from '../protocol/replica.js';"],
    ['hosting/host.ts', "const { readConfigFile } = await import('../config-file.js');"],
    ['hosting/host-thread.ts', "import { parentPort } from 'node:worker_threads';"],
    ['baselines/byzcast/group.ts', "import { Overlay } from '../../protocol/overlay.js';"],
    ['baselines/tcp/link.ts', "import type { Socket } from 'node:net';"],
    ['baselines/ramcast/leader.ts', "import { contains } from '../../protocol/overlay.js';"],
    ['baselines/ramcast/leader.ts', "import { OPEN } from '../../memory/contract.js';"],
    ['sim/world.ts', "import { judge } from '../check/judge.js';"],
    ['sim/run-seeds.ts', "import { Worker } from 'node:worker_threads';"],
    ['cli/sim.ts', "import { Command } from 'commander';"],
  ])('but not in %s: %s', (path, text) => {
    expect(complaints(path, text)).toEqual([]);
  });
});
