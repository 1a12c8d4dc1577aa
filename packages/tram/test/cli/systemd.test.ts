/** The units of docs/systemd.md: their commands start, and end in order on SIGTERM. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { projectDirectory } from '../built.js';
import { freePort } from '../free-ports.js';
import { needLibfabric } from '../memory/fabric/present.js';
import { MAIN, textOf, until } from './command-line.js';

const DIRECTORY = '/srv/orders';
const TRAM = `${DIRECTORY}/node_modules/.bin/tram`;
const text = readFileSync(join(projectDirectory, 'docs/systemd.md'), 'utf8');
const units = [...text.matchAll(/```ini\n(.*?)```/gs)].map(([, unit]) => unit!);

const name = `systemd-test-${process.pid}`;
let folder = '';
const children: ChildProcess[] = [];

beforeEach((context) => {
  context.skip(process.platform !== 'linux', 'for Linux only');
  folder = mkdtempSync(join(tmpdir(), 'tram-systemd-'));
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** Starts the command of a unit, in its directory. */
function start(unit: string): ChildProcess {
  expect(unit).toContain(`\nWorkingDirectory=${DIRECTORY}\n`);
  const [, command] = /^ExecStart=(.*)$/m.exec(unit)!;
  const [program, ...words] = command!.split(' ');
  expect(program).toBe(TRAM);
  // Other clusters on this machine may have the name in the document.
  const args = words.map((word) => (word === 'orders' ? name : word));
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder });
  children.push(child);
  return child;
}

test('there are two units', () => {
  expect(units).toHaveLength(2);
});

test('the cluster of processes starts, and is down after SIGTERM', async () => {
  writeFileSync(join(folder, 'cluster.yaml'), 'groups: 1\nclients: 2\n');
  const child = start(units[0]!);
  const said = textOf(child.stderr!);
  await until(() => said.text.includes('up: cluster'));
  expect(existsSync(`/dev/shm/tram-${name}`)).toBe(true);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(existsSync(`/dev/shm/tram-${name}`)).toBe(false);
});

test('the host of a machine starts, and ends after SIGTERM with its memory kept', async (context) => {
  needLibfabric(context);
  const machine = `{ name: alpha, address: 127.0.0.1, port: ${await freePort()} }`;
  writeFileSync(
    join(folder, 'cluster.yaml'),
    `name: ${name}\nmemory: machines\ngroups: 1\nreplicas: 1\nsecret: secret\nhosts: [${machine}]\n`,
  );
  spawnSync(process.execPath, [MAIN, 'secret', join(folder, 'secret')]);
  const child = start(units[1]!);
  const said = textOf(child.stdout!);
  await until(() => said.text.includes('g0/0 leads'));
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  const memory = `/dev/shm/tram-${name}-alpha`;
  expect(existsSync(memory)).toBe(true);
  rmSync(memory);
});
