/**
 * A cluster across machines, as an operator runs it: `tram host` three times, here on the loopback, and real signals.
 *
 * The tests with three hosts share a cluster, so that not each of them waits for its start. A test may find it in any
 * state in which it works: hosts may have been restarted, messages sent, unauthenticated peers refused.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type * as mirrors from '../../../src/hosting/machines/mirror.js';
import { Calm } from '../../../src/hosting/oversight.js';
import type * as statuses from '../../../src/hosting/status.js';
import type { ClusterStatus, HostStatus } from '../../../src/hosting/status.js';
import { Fabric } from '../../../src/memory/fabric/fabric.js';
import { Client, decode, encode } from '../../built.js';
import { freePorts } from '../../free-ports.js';
import { Witness } from '../../memory/fabric/pair.js';
import { needLibfabric } from '../../memory/fabric/present.js';

const built = (path: string): string => new URL(`../../../dist/${path}`, import.meta.url).href;
const { Mirror } = (await import(built('hosting/machines/mirror.js'))) as typeof mirrors;
const { statusOf } = (await import(built('hosting/status.js'))) as typeof statuses;

const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const NAMES = ['alpha', 'beta', 'gamma'] as const;
type Name = (typeof NAMES)[number];
const PATIENCE_MS = 20_000;
const CLIENTS = 4;
/** As libfabric makes it, and the data that it announces is missing. */
const HALF_A_REQUEST = Buffer.from(`0300000b${'00'.repeat(20)}0100000000000000`, 'hex');
/**
 * Replies with how many messages the group has delivered, and the payload; fails, goes astray, or never replies, if it is
 * told to. `gone` tells how many messages without a reply were abandoned.
 */
const SERVICE = `
  let count = 0;
  let gone = 0;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  export function deliver({ payload }, context) {
    const text = decoder.decode(payload);
    if (text === 'wait') return context.defer();
    if (text === 'gone') return encoder.encode(String(gone));
    if (text === 'fail') throw new Error('as it was told');
    if (text === 'stray') Promise.reject(new Error('nobody handles this'));
    return encoder.encode(++count + ' ' + text);
  }
  export const abandoned = () => { gone++; };
  export const snapshot = () => encoder.encode(JSON.stringify([count, gone]));
  export const restore = (state) => { [count, gone] = JSON.parse(decoder.decode(state)); };
`;
/** As if the library were not installed. */
const NO_LIBFABRIC = `
  const koffi = require('koffi');
  const { load } = koffi;
  koffi.load = (path) => {
    if (path !== null) throw new Error('cannot open shared object file');
    return load(path);
  };
`;

const children: ChildProcess[] = [];
const clients: Client[] = [];
const folders: string[] = [];
const allClusters = `hosts-test-${process.pid}`;

/** The cluster under test, in a folder of its own. */
let cluster: string;
let folder: string;
let config: string;
let trace: string;
/** Of each host: where it is reached, and where it tells how it is. */
let ports: number[];
let httpPorts: number[];
/** The hosts that were started last, by name; and all that were ever started. */
const hosts = new Map<Name, HostProcess>();
const lives: HostProcess[] = [];

beforeEach(needLibfabric);

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

afterAll(async () => {
  await killAll();
  for (const each of folders) rmSync(each, { recursive: true });
  for (const file of memories(allClusters)) rmSync(join('/dev/shm', file));
});

async function killAll(): Promise<void> {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(children.splice(0).map(ended));
  hosts.clear();
}

/** Nothing of it runs yet. */
async function newCluster(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'tram-hosts-test-'));
  folders.push(folder);
  cluster = `${allClusters}-${folders.length}`;
  config = join(folder, 'cluster.yaml');
  trace = join(folder, 'history');
  lives.length = 0;
  const free = await freePorts(2 * NAMES.length);
  ports = free.slice(0, NAMES.length);
  httpPorts = free.slice(NAMES.length);
  writeFileSync(join(folder, 'service.mjs'), SERVICE);
  writeConfig(config, cluster);
  expect(await tram('secret', join(folder, 'cluster.secret'))).toMatchObject({ code: 0 });
}

/** All three run and are level. If none was started, they are now, in an order that is not that of their numbers. */
async function runHosts(): Promise<void> {
  if (hosts.size === 0) {
    await newCluster();
    await new HostProcess('gamma').says('waits for alpha');
    await new HostProcess('alpha').says('connected to gamma');
  }
  for (const name of NAMES) if (hosts.get(name)?.isRunning !== true) new HostProcess(name);
  for (const host of hosts.values()) await host.says('runs its replicas');
  await untilLevel();
}

async function connectClient(): Promise<Client> {
  const client = await Client.connect(config);
  clients.push(client);
  return client;
}

function memories(of = cluster): string[] {
  return readdirSync('/dev/shm').filter((file) => file.startsWith(`tram-${of}-`));
}

function writeConfig(file: string, name: string, more = ''): void {
  const machines = NAMES.map(
    (host, i) =>
      `  - { name: ${host}, address: 127.0.0.1, port: ${ports[i]}, http: ${httpPorts[i]} }\n`,
  );
  writeFileSync(
    file,
    `memory: machines\nname: ${name}\ngroups: 3\nclients: ${CLIENTS}\nlogBytes: 65536\nleaders: together\n` +
      `service: ./service.mjs\ntrace: ./history\nsecret: cluster.secret\nhosts:\n${machines.join('')}${more}`,
  );
}

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  });
  children.push(child);
  return child;
}

async function tram(...args: string[]): Promise<Result> {
  const child = start(...args);
  const stdout = textOf(child.stdout!);
  const stderr = textOf(child.stderr!);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: stdout.text, stderr: stderr.text };
}

function textOf(stream: NodeJS.ReadableStream): { text: string } {
  const seen = { text: '' };
  stream.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text;
  });
  return seen;
}

function ended(child: ChildProcess): Promise<unknown> {
  return child.exitCode === null && child.signalCode === null
    ? once(child, 'exit')
    : Promise.resolve();
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadlineMs) throw new Error('waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A `tram host`, and what it logs. */
class HostProcess {
  readonly child: ChildProcess;
  private readonly stdout: { text: string };
  private readonly stderr: { text: string };

  constructor(readonly name: Name) {
    this.child = start('host', name, '--config', config);
    this.stdout = textOf(this.child.stdout!);
    this.stderr = textOf(this.child.stderr!);
    hosts.set(name, this);
    lives.push(this);
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Every line is an object. */
  get log(): { level: number; host: string; msg: string }[] {
    const lines = this.stdout.text.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  async says(text: string | RegExp): Promise<void> {
    const isSaid = (): boolean =>
      this.log.some(({ msg }) => (typeof text === 'string' ? msg.includes(text) : text.test(msg)));
    try {
      await until(isSaid);
    } catch (cause) {
      const said = `${this.stdout.text}${this.stderr.text}`;
      throw new Error(`${this.name} never said ${text}:\n${said}`, { cause });
    }
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    await ended(this.child);
    return this.child.exitCode;
  }
}

async function status(): Promise<ClusterStatus & { hosts: (HostStatus & { why?: string })[] }> {
  const result = await tram('status', '--config', config, '--json');
  expect(result).toMatchObject({ code: 0 });
  return JSON.parse(result.stdout);
}

/** The same without a process and without rates. */
async function look(): Promise<ClusterStatus> {
  const mirror = await Mirror.open(config);
  const seen = statusOf(mirror.context);
  await mirror.close();
  return seen;
}

/** Every group has a leader, and all its replicas take part and have delivered the same. */
async function untilLevel(): Promise<void> {
  await until(async () =>
    (await look()).groups.every(({ leader, replicas }) => {
      const isMember = replicas.every(({ role }) => role === 'leader' || role === 'follower');
      const delivered = new Set(replicas.map((replica) => replica.delivered));
      return leader !== undefined && isMember && delivered.size === 1;
    }),
  );
}

function send(text: string, ...args: string[]): Promise<Result> {
  return tram('send', '--config', config, '--to', '0,2', '--text', text, ...args);
}

describe('a host', () => {
  beforeEach(newCluster);
  afterEach(killAll);

  test('waits for the others, says so, can be seen, and ends when it is told to', async () => {
    const gamma = new HostProcess('gamma');
    const [first, second] = ports;
    await gamma.says(`waits for alpha (127.0.0.1:${first}) and beta (127.0.0.1:${second})`);
    const { hosts: seen } = await status();
    expect(seen.map(({ name, state }) => `${name} ${state}`)).toEqual([
      'alpha unreachable',
      'beta unreachable',
      'gamma starting',
    ]);
    expect(seen[0].why).toMatch(/refused/i);
    expect(await get(2, '/healthz')).toEqual({ code: 200, text: 'ok\n' });
    expect(await get(2, '/readyz')).toMatchObject({ code: 503 });
    expect(await gamma.end('SIGTERM')).toBe(0);
    expect(memories()).toEqual([]);
  });

  test('refuses to mix two histories', async () => {
    mkdirSync(trace);
    const replicas = NAMES.flatMap((_, group) => NAMES.map((_, member) => `${group}-${member}`));
    for (const replica of replicas) writeFileSync(join(trace, `replica-${replica}.jsonl`), '');
    // The first that has met all others ends, and those wait for it.
    const first = await Promise.race(NAMES.map((name) => tram('host', name, '--config', config)));
    expect(first).toMatchObject({ code: 2 });
    expect(first.stderr).toContain('history holds a history already');
  });

  test('says how to install libfabric where it is missing', async () => {
    const preload = join(folder, 'no-libfabric.cjs');
    const koffi = createRequire(import.meta.url).resolve('koffi');
    writeFileSync(preload, NO_LIBFABRIC.replace("'koffi'", JSON.stringify(koffi)));
    const child = spawn(
      process.execPath,
      ['--require', preload, MAIN, 'host', 'alpha', '--config', config],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    children.push(child);
    const stderr = textOf(child.stderr!);
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(stderr.text).toContain('apt-get install libfabric1');
    expect(memories()).toEqual([]);
  });
});

describe('a state that is lost', () => {
  beforeEach(newCluster);
  afterEach(killAll);

  test('is told by hosts, status and readiness', async () => {
    for (const name of NAMES) new HostProcess(name);
    for (const host of hosts.values()) await host.says('runs its replicas');
    const client = await connectClient();
    for (let i = 0; i < 40; i++) {
      const calls = Array.from({ length: 100 }, () => client.multicast([0], encode('x')));
      await Promise.all(calls);
    }
    client.destroy();
    for (const host of hosts.values()) await host.end('SIGKILL');
    for (const name of ['alpha', 'beta'] as const) {
      await new HostProcess(name).says('runs its replicas');
    }
    // The third one may still have it.
    await until(async () => (await look()).groups[0].health === 'no-majority');
    new HostProcess('gamma');
    for (const host of hosts.values())
      await host.says(/^the state of g0 is lost: .*start it anew$/);
    expect((await look()).groups.map(({ health }) => health)).toEqual(['state-lost', 'ok', 'ok']);
    expect(await get(1, '/readyz')).toMatchObject({
      code: 503,
      text: expect.stringMatching(/^the state of g0 is lost/),
    });
    const { stdout } = await tram('status', '--config', config);
    expect(stdout).toContain(`${cluster} state-lost: 3 groups`);
    expect(stdout).toContain('the state of g0 is lost: too many of their replicas have lost it');
    expect(stdout).toContain('down --force');
    expect(await tram('down', '--config', config, '--force')).toMatchObject({ code: 0 });
    expect(memories()).toEqual([]);
  });
});

describe('three hosts', () => {
  beforeEach(runHosts, 2 * PATIENCE_MS);

  test('start in any order', async () => {
    const firstLives = lives.slice(0, NAMES.length);
    expect(firstLives.map(({ name }) => name)).toEqual(['gamma', 'alpha', 'beta']);
    for (const host of firstLives) {
      await host.says('starts for the first time');
      await host.says('runs its replicas');
      expect(host.log.every((line) => line.host === host.name)).toBe(true);
    }
    const text = await tram('status', '--config', config);
    expect(text).toMatchObject({ code: 0, stderr: '' });
    expect(text.stdout).toContain(`${cluster} running: 3 groups of 3 replicas on 3 hosts`);
    for (const [i, name] of NAMES.entries()) {
      expect(text.stdout).toMatch(
        new RegExp(`${name} up at 127.0.0.1:${ports[i]} \\(process \\d+\\)`),
      );
    }
    expect(text.stdout).not.toContain('×');
  });

  test('are written to, read along, and led', async () => {
    const tail = start('tail', '--config', config, '--group', '2', '--count', '3');
    const tailed = textOf(tail.stdout!);
    const following = textOf(tail.stderr!);
    await until(() => following.text.includes('following g2'));
    const { stdout, ...sent } = await send('hello');
    expect(sent).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^g0 {2}\d+ hello\ng2 {2}\d+ hello\n$/);
    expect(await send('again', '--count', '2')).toMatchObject({ code: 0 });
    await ended(tail);
    expect(tail.exitCode).toBe(0);
    expect(tailed.text).toMatch(/^g2 +\d+ .* 0,2 {2}hello\ng2 +\d+ .*again\ng2 +\d+ .*again\n$/);
    const [first, ...others] = [...tailed.text.matchAll(/^g2 +(\d+)/gm)].map(([, at]) =>
      Number(at),
    );
    expect(others).toEqual([first! + 1, first! + 2]);

    const { groups } = await look();
    const next = (groups[1].leader! + 1) % NAMES.length;
    expect(await tram('lead', `g1/${next}`, '--config', config)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`g1/${next} leads its group under ballot`),
    });
    expect((await look()).groups[1].leader).toBe(next);
    await hosts.get(NAMES[next])!.says(`g1/${next} leads its group`);
  });

  test('tell over HTTP how they are', async () => {
    expect(await get(0, '/healthz')).toEqual({ code: 200, text: 'ok\n' });
    expect(await get(1, '/readyz?now')).toEqual({ code: 200, text: 'ready\n' });
    const { code, text } = await get(2, '/metrics');
    expect(code).toBe(200);
    expect(text).toContain('# TYPE tram_messages_total counter\n');
    expect(text).toContain('tram_connected{host="alpha"} 1\n');
    expect(text).toMatch(/tram_network_calls_total\{call="write"\} [1-9]/);
    const messages = /^tram_messages_total{group="2",member="2"} (\d+)$/m;
    const before = Number(messages.exec(text)![1]);
    expect(await send('counted', '--count', '3')).toMatchObject({ code: 0 });
    await until(async () => {
      const counted = Number(messages.exec((await get(2, '/metrics')).text)![1]);
      expect(counted).toBeLessThanOrEqual(before + 3);
      return counted === before + 3;
    });
    expect(await get(0, '/')).toMatchObject({ code: 404 });
    expect(await get(0, '//')).toMatchObject({ code: 404 });
    expect(await get(0, '/healthz', 'POST')).toMatchObject({ code: 405 });
  });

  test('show what clients measure, and log what the service throws', async () => {
    const before = await look();
    const client = await connectClient();
    for (let i = 0; i < 20; i++) await client.multicast([i % 3], encode('measured'));
    await expect(client.multicast([1], encode('fail'))).rejects.toMatchObject({
      code: 'TRAM_SERVICE_FAILED',
    });
    await until(async () => (await look()).answered === before.answered + 21);
    expect(await look()).toMatchObject({ clients: { connected: 1, most: CLIENTS } });
    await client.close();
    const after = await status();
    expect(after).toMatchObject({ clients: { connected: 0 }, answered: before.answered + 21 });
    expect(after.latencyNsP50).toBeGreaterThan(0);
    const alpha = hosts.get('alpha')!;
    await alpha.says('the service threw');
    const failures = alpha.log.filter(({ msg }) => msg.startsWith('the service threw'));
    expect(failures).toEqual([
      expect.objectContaining({
        level: 50,
        msg: expect.stringMatching(/^the service threw at g1\/0: Error: as it was told/),
      }),
    ]);
  });

  test('survive a rejection that the service does not handle, and log it', async () => {
    const client = await connectClient();
    await client.multicast([0, 1, 2], encode('stray'));
    const report = 'the service failed outside of its functions: Error: nobody handles this';
    for (const name of NAMES) await hosts.get(name)!.says(report);
    const replies = await client.multicast([0, 1, 2], encode('goes on'));
    expect([...replies.values()].map(decode)).toEqual(
      Array(3).fill(expect.stringMatching(/goes on$/)),
    );
  });

  test('have so many slots and no more, and get them back', async () => {
    await Promise.all(Array.from({ length: CLIENTS }, connectClient));
    expect(new Set(clients.map(({ name }) => name)).size).toBe(CLIENTS);
    await expect(connectClient()).rejects.toMatchObject({ code: 'TRAM_NO_CLIENT_SLOT' });
    await clients[1].close();
    const last = await connectClient();
    expect(decode((await last.multicast([0], encode('last'))).get(0))).toContain('last');
    for (const client of clients) await client.close();
    expect((await look()).clients.connected).toBe(0);
  });

  test('know when a client that waits for a reply has ended', async () => {
    const [one, other] = [await connectClient(), await connectClient()];
    const gone = async (): Promise<number> =>
      Number(decode((await other.multicast([1], encode('gone'))).get(1)));
    const before = await gone();
    const call = one.multicast([0, 1, 2], encode('wait'));
    call.catch(() => undefined);
    // Its message is before the next one in the order of group 1.
    await one.multicast([0, 1, 2], encode('next'));
    expect(await gone()).toBe(before);
    one.destroy();
    await until(async () => (await gone()) === before + 1);
    await expect(call).rejects.toMatchObject({ code: 'TRAM_OUTCOME_UNKNOWN' });
  });

  test('a client goes on without its home, and is known there when it is back', async () => {
    const client = await connectClient();
    // Sessions tell who gave them.
    const home = NAMES[Number(client.name.slice(1)) % NAMES.length];
    await hosts.get(home)!.end('SIGKILL');
    const replies = await client.multicast([0, 1, 2], encode('homeless'));
    expect(replies.size).toBe(3);
    const { hosts: seen } = await status();
    expect(seen.map(({ name, state }) => (state === 'up' ? '' : name)).join('')).toBe(home);

    const again = new HostProcess(home);
    await again.says('resumes with the memory that it left behind');
    await again.says(/connected to client \d/);
    await untilLevel();
    expect((await client.multicast([0, 1, 2], encode('at home'))).size).toBe(3);
    expect((await look()).clients.connected).toBe(1);
    await client.close();
  });

  test('one that has lost its memory recovers', async () => {
    await hosts.get('beta')!.end('SIGKILL');
    rmSync(`/dev/shm/tram-${cluster}-beta`);
    expect(await send('without beta')).toMatchObject({ code: 0 });
    const beta = new HostProcess('beta');
    await beta.says('has lost its memory, and recovers from its groups');
    await beta.says('runs its replicas');
    await untilLevel();
    expect(await send('with beta')).toMatchObject({ code: 0 });
  });

  /** Sends more to every group than its log holds. Returns the count in a reply of the last one. */
  async function fillLogs(client: Client): Promise<number> {
    let last = '';
    for (let i = 0; i < 40; i++) {
      const calls = Array.from({ length: 100 }, () => client.multicast([0, 1, 2], encode('x')));
      for (const replies of await Promise.all(calls)) last = decode(replies.get(2))!;
    }
    return Number.parseInt(last, 10);
  }

  test('keep their state when all of them are ended in an orderly way', async () => {
    const client = await connectClient();
    const count = await fillLogs(client);
    expect(await hosts.get('beta')!.end('SIGTERM')).toBe(0);
    // As an operator does it, for the hosts of this machine.
    const down = await tram('down', '--config', config);
    expect(down).toMatchObject({ code: 0, stdout: expect.not.stringContaining('killed') });
    for (const { name } of [...hosts.values()]) {
      await hosts.get(name)!.says('has left the state of');
    }
    for (const name of NAMES) new HostProcess(name);
    for (const host of hosts.values()) await host.says('runs its replicas');
    const reply = decode((await client.multicast([2], encode('after'))).get(2));
    expect(reply).toBe(`${count + 1} after`);
    await untilLevel();
  });

  test('log at most once a second that they refuse peers, and how many lines were suppressed', async () => {
    const beta = hosts.get('beta')!;
    const lines = (): string[] =>
      beta.log.map(({ msg }) => msg).filter((msg) => msg.includes('was refused'));
    const told = (): number =>
      lines().reduce((sum, line) => sum + 1 + Number(/\((\d+) similar/.exec(line)?.[1] ?? 0), 0);
    let sent = 0;
    const refuse = async (count: number): Promise<void> => {
      await refuseUnauthenticatedPeers(count);
      sent += count;
    };
    const linesBefore = lines().length;
    // The first is told at once, unless others were refused just before.
    await until(async () => {
      await refuse(1);
      return lines().length > linesBefore;
    });
    await beta.says(/^127\.0\.0\.1:\d+ was refused: it has another configuration/);
    const toldBefore = told();
    await refuse(1000);
    // One that comes later tells of those before.
    await until(async () => {
      await refuse(1);
      return told() >= toldBefore + 1000;
    });
    expect(told()).toBeLessThan(toldBefore + sent);
    expect(lines().length).toBeLessThan(linesBefore + 100);
    expect(await send('after unauthenticated peers')).toMatchObject({ code: 0 });
  });

  test('outlive more unauthenticated peers than they have descriptors, and disconnect them', async () => {
    const beta = hosts.get('beta')!;
    const { pid } = beta.child;
    const prlimit = (...args: string[]): string =>
      execFileSync('prlimit', ['--pid', String(pid), ...args], { encoding: 'utf8' });
    const limit = (most: number): string => prlimit(`--nofile=${most}:`);
    const usual = Number(prlimit('--nofile', '--noheadings', '--output=SOFT'));
    const descriptors = (): number[] => readdirSync(`/proc/${pid}/fd`).map(Number);
    const most = descriptors().length + 8;
    // The limit is one of numbers, not of how many there are: some that were opened before it may be above it.
    const hasNoneLeft = (): boolean =>
      descriptors().filter((number) => number < most).length === most;
    limit(most);
    const peers = Array.from({ length: 50 }, () => {
      const peer = connect(ports[1], '127.0.0.1').resume();
      peer.on('error', () => undefined).write(HALF_A_REQUEST);
      return peer;
    });
    try {
      // It stays so for seconds, until beta disconnects some peers. Then others connect, and it is so again.
      await until(hasNoneLeft);
      await until(() => peers.some(({ closed }) => closed));
    } finally {
      for (const peer of peers) peer.destroy();
      limit(usual);
    }
    expect(await send('after them')).toMatchObject({ code: 0 });
    expect(beta.child.exitCode).toBe(null);
  });

  test('tell what is wrong', async () => {
    const fails = async (code: number, text: string | RegExp, ...args: string[]): Promise<void> => {
      const result = await tram(...args);
      expect(result, args.join(' ')).toMatchObject({
        code,
        stdout: expect.not.stringContaining('runs'),
      });
      expect(result.stderr).toMatch(text);
    };
    const host = ['host', 'alpha', '--config'];
    const other = join(folder, 'other');
    mkdirSync(other);
    copyFileSync(join(folder, 'service.mjs'), join(other, 'service.mjs'));
    const file = join(other, 'cluster.yaml');
    const secret = join(other, 'cluster.secret');
    writeConfig(file, `${cluster}-other`);
    await Promise.all([
      fails(
        2,
        /there is no host delta: there are alpha, beta, gamma/,
        'host',
        'delta',
        '--config',
        config,
      ),
      fails(1, /already running, as process \d+/, ...host, config),
      fails(1, /there is no file .*nowhere\.yaml/, ...host, join(folder, 'nowhere.yaml')),
      fails(1, /there is no file .*cluster\.secret.*\n.*tram secret/, ...host, file),
      fails(2, /describes a cluster across machines\n.*tram host NAME/, 'up', '--config', config),
      fails(2, /cannot be used with/, 'status', '--config', config, '--name', 'default'),
      fails(
        2,
        /unknown destination group 7/,
        'send',
        '--config',
        config,
        '--to',
        '7',
        '--text',
        'x',
      ),
      fails(2, /no group 7/, 'tail', '--config', config, '--group', '7'),
      fails(2, /no replica g7\/0/, 'lead', 'g7/0', '--config', config),
    ]);
    expect(await tram('secret', secret)).toMatchObject({ code: 0 });
    chmodSync(secret, 0o644);
    await fails(1, /open to others than its owner/, ...host, file);
    chmodSync(secret, 0o600);
    await Promise.all([
      fails(
        1,
        new RegExp(`listen at 127.0.0.1:${ports[0]}: another process uses that address`),
        ...host,
        file,
      ),
      fails(
        1,
        /alpha \(127[^)]*\): it has another secret, or is another host; beta/,
        'status',
        '--config',
        file,
      ),
      fails(1, /it has another secret/, 'send', '--config', file, '--to', '0', '--text', 'x'),
      expect(Client.connect(file)).rejects.toMatchObject({ code: 'TRAM_UNREACHABLE' }),
    ]);
    writeConfig(file, `${cluster}-other`, 'heartbeatMs: 7\n');
    copyFileSync(join(folder, 'cluster.secret'), secret);
    await fails(1, /it has another configuration/, 'lead', 'g0/0', '--config', file);
    const arenas = memories().filter((name) => !name.includes('~left-'));
    expect(arenas.sort()).toEqual(NAMES.map((name) => `tram-${cluster}-${name}`));
    expect(
      hosts
        .get('alpha')!
        .log.map(({ msg }) => msg)
        .join('\n'),
    ).toMatch(/was refused: it could not prove that it knows the secret/);
  });

  test('end when they are told to; the history holds', async () => {
    expect(await send('the last')).toMatchObject({ code: 0 });
    // What a replica has delivered may show later than its reply, so that all are level once is not enough.
    const calm = new Calm();
    await until(async () => calm.holds((await look()).groups, Date.now()));
    for (const host of hosts.values()) expect(await host.end('SIGTERM')).toBe(0);
    // The next test starts another cluster.
    hosts.clear();
    expect(await tram('status', '--config', config)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/can't reach the cluster\. alpha .*refused.*gamma/i),
    });
    // All was level and still, and nobody was connected: that is for us to say.
    writeFileSync(join(trace, 'end.jsonl'), '{"event":"end","quiescent":true}\n');
    const judged = await tram('check', trace);
    expect(judged.stdout).toContain('verdict: holds');
    // Each host has a replica of every group.
    const restarts = 3 * (lives.length - NAMES.length);
    expect(judged.stdout).toContain(
      `3 groups, 9 replicas, ${restarts} crashes, ${restarts} restarts`,
    );
  });
});

/** Peers that do not know the secret call beta with data that it does not understand. */
async function refuseUnauthenticatedPeers(count: number): Promise<void> {
  const fabric = Fabric.open({ address: '127.0.0.1' });
  const witness = new Witness();
  const { heard } = witness;
  try {
    for (let i = 1; i <= count; i++) {
      fabric.connect('127.0.0.1', ports[1], encode('a peer'));
      const deadlineMs = Date.now() + PATIENCE_MS;
      while (heard.length < i && Date.now() < deadlineMs) {
        fabric.wait(1000);
        fabric.poll(witness);
      }
    }
  } finally {
    fabric.close();
  }
  expect(heard).toHaveLength(count);
  expect(heard.every((what) => what.startsWith('refused'))).toBe(true);
}

interface Answer {
  readonly code: number | undefined;
  readonly text: string;
}

/** With the path as it is, which `fetch` would tidy up. */
async function get(host: number, path: string, method = 'GET'): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port: httpPorts[host], path, method }).end();
  const [response] = await once(sent, 'response');
  const body = textOf(response);
  await once(response, 'end');
  return { code: response.statusCode, text: body.text };
}
