/** Several versions of TRAM and one cluster: the same memory version is enough, and another one is refused. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FORMAT_VERSION } from '../../src/journal/format.js';
import { ARENA_VERSION } from '../../src/memory/arena.js';
import { Cluster, projectDirectory, until } from '../built.js';

const NAME = `versions-test-${process.pid}`;
const LAYOUT = `ARENA_VERSION = ${ARENA_VERSION}`;

let folder: string;
let cluster: Cluster;

beforeAll(async () => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), 'tram-versions-'));
  install('later', { version: '0.1.7' });
  install('other', { version: '0.2.0', memoryVersion: ARENA_VERSION + 1 });
  cluster = await Cluster.start({ groups: 1, memory: 'processes', name: NAME, clients: 2 });
});

afterAll(async () => {
  await cluster?.destroy();
  rmSync(folder, { recursive: true });
});

/** Another version of the package: the built one, with other numbers. */
function install(
  directory: string,
  { version, memoryVersion = ARENA_VERSION }: { version: string; memoryVersion?: number },
): void {
  const source = join(projectDirectory, 'packages/tram');
  const target = join(folder, directory);
  cpSync(join(source, 'dist'), join(target, 'dist'), { recursive: true });
  symlinkSync(join(projectDirectory, 'node_modules'), join(target, 'node_modules'));
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as object;
  writeFileSync(join(target, 'package.json'), JSON.stringify({ ...manifest, version }));
  const arena = join(target, 'dist/memory/arena.js');
  const text = readFileSync(arena, 'utf8');
  expect(text).toContain(LAYOUT);
  writeFileSync(arena, text.replace(LAYOUT, `ARENA_VERSION = ${memoryVersion}`));
}

function run(directory: string, ...args: string[]) {
  const main = join(folder, directory, 'dist/cli/main.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('--version shows all versions', () => {
  const of = (memory: number) => `(memory version ${memory}, journal format ${FORMAT_VERSION})\n`;
  expect(run('later', '--version').stdout).toBe(`0.1.7 ${of(ARENA_VERSION)}`);
  expect(run('other', '--version').stdout).toBe(`0.2.0 ${of(ARENA_VERSION + 1)}`);
});

test('a host of the same memory version joins, and commands work', async () => {
  await cluster.crash(1);
  expect(run('later', 'restart', 'g0/1', '--name', NAME)).toMatchObject({ status: 0, stderr: '' });
  await until(() => cluster.status().hosts[1].state === 'up');
  const { status, stderr } = run('later', 'send', '--name', NAME, '--to', '0', '--text', 'x');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

describe('another memory version is refused', () => {
  const message = `has memory version ${ARENA_VERSION}, and this version of TRAM has memory version ${ARENA_VERSION + 1}`;

  test.each([['status'], ['send', '--to', '0', '--text', 'x'], ['restart', 'g0/0'], ['down']])(
    '%s',
    (...words) => {
      const { status, stderr } = run('other', ...words, '--name', NAME);
      expect(status).toBe(1);
      expect(stderr).toContain(message);
      expect(stderr).toContain('Use the version');
      expect(stderr).toContain('docs/upgrading.md');
    },
  );

  test('Client.connect', async () => {
    const { Client } = (await import(join(folder, 'other/dist/index.js'))) as {
      Client: typeof import('../../src/index.js').Client;
    };
    const error: unknown = await Client.connect(NAME).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'TRAM_VERSION_MISMATCH' });
    expect(String(error)).toContain(message);
  });
});
