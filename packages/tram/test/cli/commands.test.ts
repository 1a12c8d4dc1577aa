/** Clusters of processes as an operator runs them, with the built `tram` and real signals. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ClusterStatus } from '../../src/hosting/status.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const INDEX = new URL('../../dist/index.js', import.meta.url).href;
/** Small clusters start faster, and fit anywhere. */
const SMALL = ['--groups', '3', '--clients', '4', '--log-bytes', '65536'];
const PATIENCE_MS = 20_000;
/** Replies with how many messages the group has delivered, and the payload. */
const SERVICE = `
  let count = 0;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  export function deliver({ payload }) {
    return encoder.encode(++count + ' ' + decoder.decode(payload));
  }
  export const snapshot = () => encoder.encode(String(count));
  export const restore = (state) => { count = Number(decoder.decode(state)); };
`;

const folder = mkdtempSync(join(tmpdir(), 'tram-cli-test-'));
const service = join(folder, 'service.mjs');
writeFileSync(service, SERVICE);

let name: string;
let tests = 0;
const children: ChildProcess[] = [];

beforeEach((context) => {
  context.skip(process.platform !== 'linux', 'for Linux only');
  name = `cli-test-${process.pid}-${tests++}`;
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await tram('down', '--force');
  expect(remains()).toEqual([]);
});

afterAll(() => rmSync(folder, { recursive: true }));

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command on this test's cluster. */
async function tram(command: string, ...args: string[]): Promise<Result> {
  return finish(start(command, ...args));
}

function start(command: string, ...args: string[]): ChildProcess {
  const named = command === 'check' ? [] : ['--name', name];
  const child = spawn(process.execPath, [MAIN, command, ...args, ...named], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  });
  children.push(child);
  return child;
}

async function finish(child: ChildProcess, input = ''): Promise<Result> {
  let stdout = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin!.on('error', () => undefined).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** The same for a command that must succeed and prints JSON. */
async function json<Value>(command: string, ...args: string[]): Promise<Value> {
  const result = await tram(command, ...args, '--json');
  expect(result, `${command} ${args.join(' ')}`).toMatchObject({ code: 0 });
  return JSON.parse(result.stdout) as Value;
}

async function up(...args: string[]): Promise<Result> {
  const result = await tram('up', ...SMALL, ...args);
  expect(result).toMatchObject({ code: 0 });
  return result;
}

function status(): Promise<ClusterStatus> {
  return json<ClusterStatus>('status');
}

async function pids(): Promise<number[]> {
  return (await status()).hosts.map(({ pid }) => pid);
}

/** What is left of this test's cluster: files, and processes. */
function remains(): string[] {
  const files = [`/dev/shm/tram-${name}`, stateDirectory()].filter((file) => existsSync(file));
  return [...files, ...processes().map((pid) => `process ${pid}`)];
}

function stateDirectory(): string {
  return join(tmpdir(), `tram-${name}-${process.getuid!()}`);
}

function processes(): string[] {
  return readdirSync('/proc').filter((entry) => {
    try {
      const words = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      return words.includes(`/dev/shm/tram-${name}`);
    } catch {
      return false;
    }
  });
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadlineMs) throw new Error('waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function textOf(stream: NodeJS.ReadableStream): { text: string } {
  const seen = { text: '' };
  stream.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text;
  });
  return seen;
}

test('a cluster lives, loses hosts, gets them back and ends; its history holds', async () => {
  const trace = join(folder, 'history');
  const started = await up('--service', service, '--trace', trace);
  expect(started.stdout).toContain('└─ g1     leader g1/');
  expect(started.stderr).toContain(`tram down --name ${name}`);
  expect(statSync(join(stateDirectory(), 'host-0.log')).mode & 0o777).toBe(0o600);

  const first = await status();
  expect(first).toMatchObject({ state: 'running', clients: { connected: 0, most: 4 } });
  expect(first.groups.map(({ parent }) => parent)).toEqual([-1, 0, 1]);
  expect(first.groups.every(({ leader }) => leader !== undefined)).toBe(true);
  expect(first.hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);

  // Send and tail.
  const tail = start('tail', '--group', '2', '--count', '2');
  const tailEnds = once(tail, 'close');
  const tailed = textOf(tail.stdout!);
  const following = textOf(tail.stderr!);
  await until(() => following.text.includes('following g2'));
  expect(await tram('send', '--to', '0,g2', '--text', 'hello')).toEqual({
    code: 0,
    stdout: 'g0  1 hello\ng2  1 hello\n',
    stderr: '',
  });
  expect(await finish(start('send', '--to', '2', '--count', '1'), 'from a pipe')).toMatchObject({
    stdout: 'g2  2 from a pipe\n',
  });
  expect(await tailEnds).toEqual([0, null]);
  expect(tailed.text).toMatch(/^g2 +0 +c1:0\.0 +0,2 {2}hello\ng2 +1 +c2:2\.0 +2 {2}from a pipe\n$/);

  // A host with leaders is lost: the others go on.
  const leader = `g2/${first.groups[2]!.leader}`;
  const killed = await json<{ host: number; replicas: string[]; led: string[] }>('kill', leader);
  expect(killed.replicas).toEqual([0, 1, 2].map((group) => `g${group}/${killed.host}`));
  expect(killed.led).toContain(leader);
  expect(await tram('send', '--to', '2', '--text', 'still here')).toMatchObject({
    code: 0,
    stdout: 'g2  3 still here\n',
  });
  expect((await status()).hosts[killed.host]).toMatchObject({ state: 'down' });
  expect(await tram('kill', leader)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not running'),
  });

  // It comes back with nothing, and has the state.
  const fresh = await tram('restart', leader, '--fresh');
  expect(fresh).toMatchObject({ code: 0, stdout: expect.stringContaining('with empty memory') });
  expect(await tram('lead', leader)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${leader} leads its group under ballot`),
  });
  expect((await tram('send', '--to', '2', '--text', 'x')).stdout).toBe('g2  4 x\n');

  // And with the memory that it left behind.
  await tram('kill', leader);
  await tram('send', '--to', '2', '--text', 'y');
  const resumed = await tram('restart', leader);
  expect(resumed).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('with the memory that they had left behind'),
  });
  expect(await tram('restart', leader)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is running, as process'),
  });
  expect((await tram('lead', leader)).code).toBe(0);
  expect((await tram('send', '--to', '2', '--text', 'z')).stdout).toBe('g2  6 z\n');

  const shown = (await tram('status')).stdout.split('\n');
  expect(shown.join('\n')).toContain('×3');
  expect(shown.filter((line) => line.length > 80)).toEqual([]);

  expect(await tram('down')).toMatchObject({ code: 0, stdout: `cluster "${name}" is down\n` });
  expect(remains()).toEqual([]);
  const verdict = await tram('check', trace);
  expect(verdict, verdict.stdout).toMatchObject({ code: 0, stderr: '' });
  expect(verdict.stdout).toMatch(/verdict: holds\n$/);
  expect(verdict.stdout).toContain('6 messages');
});

test('memory outlives its processes: hosts that were killed and resume have lost nothing', async () => {
  const trace = join(folder, 'resumed');
  await up('--service', service, '--trace', trace);
  await tram('send', '--to', '1,2', '--text', 'x', '--count', '20');
  for (const group of [0, 1, 2]) expect((await tram('lead', `g${group}/0`)).code).toBe(0);
  await tram('kill', 'g0/1');
  await tram('kill', 'g0/2');
  expect((await tram('status')).stdout).toContain('nobody could succeed the leader of g0, g1, g2');
  expect((await tram('send', '--to', '1', '--text', 'alone')).stdout).toBe('g1  21 alone\n');
  expect((await tram('restart', 'g0/1')).code).toBe(0);
  await tram('kill', 'g0/0');
  expect(await tram('send', '--to', '1', '--text', 'x', '--timeout-ms', '300')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('no leader in g0, g1, g2'),
  });
  expect((await tram('restart', 'g0/2')).code).toBe(0);
  expect((await tram('send', '--to', '1', '--text', 'two')).stdout).toMatch(/^g1 {2}2[23] two\n$/);
  expect((await tram('restart', 'g0/0')).code).toBe(0);
  expect(await json('down')).toMatchObject({ drained: true });
  const verdict = await tram('check', trace);
  expect(verdict.stdout).toMatch(/verdict: holds\n$/);
});

test('what is killed and does not come back is told in the history', async () => {
  const trace = join(folder, 'losses');
  await up('--trace', trace);
  await tram('send', '--to', '0,1,2', '--text', 'x', '--count', '20');
  await tram('kill', 'g0/1');
  await tram('send', '--to', '0,1,2', '--text', 'x', '--count', '20');
  expect(await json('down')).toMatchObject({ drained: true, killed: [] });
  expect(readFileSync(join(trace, 'end.jsonl'), 'utf8')).toBe(
    [0, 1, 2].map((group) => `{"event":"crash","replica":"${group}/1"}\n`).join('') +
      '{"event":"end","quiescent":true}\n',
  );
  const verdict = await json<{ outcome: string; counts: unknown }>('check', trace);
  expect(verdict).toMatchObject({ outcome: 'holds', counts: { messages: 40, crashes: 3 } });
});

test('a client that is killed gives its slot back; its crash is told in the history', async () => {
  const trace = join(folder, 'clients');
  await up('--clients', '1', '--trace', trace);
  const source = `
    const { Client } = await import(${JSON.stringify(INDEX)});
    const client = await Client.connect(${JSON.stringify(name)});
    console.log('connected');
    for (;;) await client.multicast([0, 2], new Uint8Array(9));
  `;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(holder);
  await once(holder.stdout!, 'data');
  expect(await tram('send', '--to', '1', '--text', 'x')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('all 1 client slots are taken'),
  });
  const holderEnds = once(holder, 'exit');
  holder.kill('SIGKILL');
  await holderEnds;
  expect((await status()).clients.connected).toBe(0);
  expect((await tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
  expect(await json('down')).toMatchObject({ drained: true });
  const verdict = await json<{ outcome: string; counts: unknown }>('check', trace);
  expect(verdict).toMatchObject({ outcome: 'holds', counts: { clients: 2, clientCrashes: 1 } });
});

describe('up', () => {
  test('refuses a name that is taken, with the processes that have it', async () => {
    await up();
    const taken = await tram('up', ...SMALL);
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain(`its hosts are the processes ${(await pids()).join(', ')}`);
    expect(taken.stderr).toContain(`tram down --name ${name}`);
    expect((await tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
  });

  test('makes way when all hosts of the cluster of that name are dead', async () => {
    await up();
    for (const pid of await pids()) process.kill(pid, 'SIGKILL');
    await until(() => processes().length === 0);
    expect((await tram('status')).stdout).toContain('all hosts are down');
    const again = await up();
    expect(again.stderr).toContain('all of its hosts had ended');
    expect((await tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
  });

  test('leaves nothing behind when it is interrupted', async () => {
    const trace = join(folder, 'interrupted');
    const slow = join(folder, 'slow.mjs');
    writeFileSync(slow, 'await new Promise((resolve) => setTimeout(resolve, 60_000));');
    const child = start('up', ...SMALL, '--trace', trace, '--service', slow);
    await until(() => processes().length > 0 || child.exitCode !== null);
    child.kill('SIGINT');
    expect(await finish(child)).toMatchObject({
      code: 130,
      stderr: expect.stringContaining('interrupted'),
    });
    expect(remains()).toEqual([]);
    expect(existsSync(trace)).toBe(false);
  });

  test('leaves nothing behind when the service can not be loaded', async () => {
    const trace = join(folder, 'unloaded');
    const missing = await tram('up', ...SMALL, '--service', join(folder, 'nowhere.mjs'));
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('nowhere.mjs') });
    const broken = join(folder, 'broken.mjs');
    writeFileSync(broken, 'export const nothing = 0;');
    const empty = await tram('up', ...SMALL, '--service', broken, '--trace', trace);
    expect(empty).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exports no function'),
    });
    expect(remains()).toEqual([]);
    expect(existsSync(trace)).toBe(false);
  });

  test('names what is wrong with a file or an option', async () => {
    const file = join(folder, 'wrong.yaml');
    writeFileSync(file, 'groups: 3\nreplikas: 3\n');
    const wrong = await tram('up', '--config', file);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain(
      `${file}:2:1: unknown option "replikas": did you mean replicas?`,
    );
    expect(await tram('up', '--config', join(folder, 'nowhere.yaml'))).toMatchObject({ code: 2 });
    expect(await tram('up', '--groups', '99')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('groups must be an integer from 1 to 64, not 99'),
    });
    expect(remains()).toEqual([]);
  });

  test('takes its options from a file, and those of the command line before', async () => {
    const file = join(folder, 'right.yaml');
    writeFileSync(file, 'groups: 5\ntree: simple\nclients: 4\nservice: ./service.mjs\n');
    const result = await tram('up', '--config', file, '--groups', '2');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stdout.split('\n')).toHaveLength(3);
    expect((await tram('send', '--to', '1', '--text', 'x')).stdout).toBe('g1  1 x\n');
  });

  test('stays with --foreground, until Ctrl-C or until somebody takes it down', async () => {
    const child = start('up', ...SMALL, '--foreground');
    const said = textOf(child.stderr!);
    await until(() => said.text.includes('logs '));
    expect((await tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
    const ends = once(child, 'close');
    child.kill('SIGINT');
    expect(await ends).toEqual([130, null]);
    expect(remains()).toEqual([]);

    const other = start('up', ...SMALL, '--foreground');
    const otherEnds = once(other, 'close');
    const saidToo = textOf(other.stderr!);
    await until(() => saidToo.text.includes('logs '));
    expect((await tram('down')).code).toBe(0);
    expect(await otherEnds).toEqual([0, null]);
    expect(remains()).toEqual([]);
  });
});

test('a host that hangs is deposed, shown, and killed in the end', async () => {
  await up();
  const [group] = (await status()).groups;
  await tram('kill', `g0/${group!.leader}`, '--signal', 'SIGSTOP');
  expect((await tram('send', '--to', '0', '--text', 'x')).code).toBe(0);
  expect((await tram('status')).stdout).toContain('stopped');
  expect(await tram('restart', `g0/${group!.leader}`)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('stopped (SIGSTOP)'),
  });
  const lead = await tram('lead', `g0/${group!.leader}`, '--timeout-ms', '300');
  expect(lead).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/after 300 ms: g0\/\d does/),
  });
  await tram('kill', `g0/${group!.leader}`, '--signal', 'SIGCONT');
  expect((await tram('lead', `g0/${group!.leader}`)).code).toBe(0);
});

test('errors name what there is instead', async () => {
  const nothing = await tram('status');
  expect(nothing).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no cluster'),
  });
  expect(nothing.stderr).toContain(`tram up --name ${name}`);
  expect((await tram('down')).code).toBe(1);
  await up();
  for (const [command, replica] of [
    ['kill', 'g3/0'],
    ['restart', '0/3'],
    ['lead', 'nonsense'],
  ] as const) {
    const result = await tram(command, replica);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('this cluster has g0/0 to g2/2');
  }
  expect((await tram('send', '--to', '7', '--text', 'x')).code).toBe(2);
  expect((await tram('tail', '--group', '7')).code).toBe(2);
  expect(await tram('send', '--to', '0', '--text', 'x'.repeat(2000))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('payloadBytesMax'),
  });
});

test('a history that was cut off is judged without its last line; a wrong line is named', async () => {
  const trace = join(folder, 'cut');
  await up('--trace', trace);
  await tram('send', '--to', '0,1', '--text', 'x');
  await tram('down');
  expect(await tram('up', ...SMALL, '--trace', trace)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('holds a history already'),
  });
  const file = join(trace, 'replica-1-2.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n').length;
  appendFileSync(file, '{"event":"deli');
  const cut = await tram('check', trace);
  expect(cut).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('replica-1-2.jsonl breaks off'),
  });
  appendFileSync(file, '\n');
  const wrong = await tram('check', trace);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain(`replica-1-2.jsonl, line ${lines}: this is not JSON`);
  expect(await tram('check', folder)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no groups.jsonl'),
  });
});
