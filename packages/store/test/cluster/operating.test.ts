/** The command `tram-store` as operators run it: how it ends, what it leaves, and what it shows of its shards. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePorts } from '../../../tram/test/free-ports.js';
import { Store } from '../../src/index.js';
import { PlainClient } from '../gateway/started.js';
import { parseMetrics } from '../metrics/prometheus.js';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const STORE = path('dist/cli/main.js');
const TRAM = path('../tram/dist/cli/main.js');

let folder: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-operating-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) await ended(child, 'SIGKILL');
  rmSync(folder, { recursive: true });
});

function start(command: string, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [command, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  children.push(child);
  return child;
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill(signal);
    await once(child, 'exit');
  }
  return child.exitCode;
}

async function startStore(port: number, ...args: string[]): Promise<ChildProcess> {
  const child = start(STORE, '--port', String(port), '--shards', '1', '--replicas', '1', ...args);
  await new Promise<void>((resolve, reject) => {
    let said = '';
    child.stderr!.on('data', (chunk: Buffer) => {
      said += chunk;
      if (said.includes('ready for clients')) resolve();
    });
    child.once('exit', () => reject(new Error(`the store has ended: ${said}`)));
  });
  return child;
}

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}

test('SHUTDOWN and SIGTERM end it with success, and the next start has all keys', async () => {
  const [port, metrics] = await freePorts(2);
  const journal = join(folder, 'journal');
  const options = ['--memory', 'processes', '--durability', 'everySecond', '--journal', journal];
  const first = await startStore(port, ...options, '--metrics', String(metrics));
  const exit = once(first, 'exit');
  const [client, waiting, busy] = await Promise.all([1, 2, 3].map(() => PlainClient.connect(port)));
  await client.ask('set a 1');
  waiting.send(['blpop', 'queue', '0']);
  await expect.poll(() => client.ask('info clients')).toContain('blocked_clients:1');
  expect(await (await fetch(`http://127.0.0.1:${metrics}/readyz`)).text()).toBe('ready\n');
  // Its replies are on their way when the store is asked to end.
  busy.sendRaw('INCR n\r\n'.repeat(500));
  expect(await busy.read()).toBe(1);
  client.send(['shutdown', 'save']);
  await waiting.readAll();
  const replies = await busy.readAll();
  expect(replies).toMatch(/^(:\d+\r\n)*$/);
  const counted = replies === '' ? 1 : Number(replies.trimEnd().split(':').at(-1));
  expect(await exit).toEqual([0, null]);
  expect(await isRefused(port)).toBe(true);
  expect(await isRefused(metrics)).toBe(true);

  const second = await startStore(port, ...options);
  const after = await PlainClient.connect(port);
  expect(await after.ask('mget a n')).toEqual(['1', String(counted)]);
  expect(await ended(second, 'SIGTERM')).toBe(0);
});

test('a store in a program closes when a client asks for it, and tells the program', async () => {
  const store = await Store.start({ port: 0, shards: 1, replicas: 1 });
  const client = await PlainClient.connect(store.port!);
  for (const [request, error] of [
    ['shutdown save', 'ERR the store has no journal to save to. Use SHUTDOWN NOSAVE'],
    ['shutdown abort', 'ERR No shutdown in progress.'],
    ['shutdown save nosave', 'ERR syntax error'],
    ['shutdown later', 'ERR syntax error'],
  ]) {
    expect(await client.ask(request)).toMatchObject({ message: error });
  }
  await client.ask('multi');
  expect(await client.ask('shutdown')).toMatchObject({
    message: 'ERR Command not allowed inside a transaction',
  });
  await client.ask('discard');
  client.send(['shutdown', 'nosave', 'now']);
  await store.shutDown;
  expect(await client.readAll()).toBe('');
  await store.close();
});

test('a gateway of a cluster on machines knows who leads', async () => {
  const [port] = await freePorts(1);
  const config = join(folder, 'cluster.yaml');
  const secret = join(folder, 'cluster.secret');
  writeFileSync(
    config,
    [
      'memory: machines',
      `name: store-${process.pid}-${port}`,
      'groups: 2\nreplicas: 1\ntree: breadth\norder: strict',
      `service: ${path('dist/service.js')}`,
      'payloadBytesMax: 65536\nreplyBytesMax: 16384\ncallsMax: 32\nclients: 4',
      `secret: ${secret}`,
      `hosts:\n  - { name: alpha, address: 127.0.0.2, port: ${port} }\n`,
    ].join('\n'),
  );
  expect(spawnSync(process.execPath, [TRAM, 'secret', secret]).status).toBe(0);
  const host = start(TRAM, 'host', 'alpha', '--config', config);
  host.stderr!.resume();
  const store = await untilStarted(() => Store.start({ port: 0, metrics: 0, config }));
  const redis = new Redis(store.port!);
  try {
    await redis.mset('a', '1', 'b', '2', 'c', '3');
    const shards = await redis.info('shards');
    expect(shards).toMatch(/^shard0:answers=yes,leader=alpha,replicas_up=1,replicas=1,keys=\d/m);
    expect(shards).toMatch(/^shard1:answers=yes,leader=alpha,/m);
    const response = await fetch(`http://127.0.0.1:${store.metricsPort}/metrics`);
    const leaders = parseMetrics(await response.text()).get('tram_store_leader')!.samples;
    expect([...leaders.keys()]).toEqual(['{shard="0",host="alpha"}', '{shard="1",host="alpha"}']);
    // Without the host, the gateway tells so, and keeps nobody waiting.
    expect(await ended(host, 'SIGTERM')).toBe(0);
    const ready = await fetch(`http://127.0.0.1:${store.metricsPort}/readyz`);
    expect(ready.status).toBe(503);
    expect(await redis.info('shards')).toMatch(/^shard0:answers=no,/m);
  } finally {
    redis.disconnect();
    await store.close();
    // An orderly stop of a host leaves its memory for the next start.
    const down = spawnSync(process.execPath, [TRAM, 'down', '--force', '--config', config]);
    expect(down.status).toBe(0);
  }
});

/** The host needs a while. */
async function untilStarted(begin: () => Promise<Store>): Promise<Store> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await begin();
    } catch (error) {
      if (attempt === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
