/**
 * Hosts that stop in an orderly way and start again, after the logs have dropped their beginning: then the state of a
 * group is nowhere but in what its replicas have left.
 */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type * as configs from '../../src/config/config.js';
import type * as contexts from '../../src/hosting/cluster-context.js';
import type { HostReport } from '../../src/hosting/host.js';
import type * as oversights from '../../src/hosting/oversight.js';
import type * as startersModule from '../../src/hosting/starters.js';
import type * as statuses from '../../src/hosting/status.js';
import { ARENA, ARENA_STATE, HOST, HOST_STATE, hostStateOf } from '../../src/memory/arena.js';
import type * as arenaFiles from '../../src/memory/processes/arena-file.js';
import type * as threads from '../../src/memory/threads.js';
import { Client, Cluster, decode, encode, until } from '../built.js';

const built = (path: string): Promise<unknown> =>
  import(new URL(`../../dist/${path}`, import.meta.url).href);
const { resolveConfig } = (await built('config/config.js')) as typeof configs;
const { ClusterContext } = (await built('hosting/cluster-context.js')) as typeof contexts;
const { askToEnd, markEnded, untilLed } = (await built(
  'hosting/oversight.js',
)) as typeof oversights;
const starters = (await built('hosting/starters.js')) as typeof startersModule;
const { stateLost, statusOf } = (await built('hosting/status.js')) as typeof statuses;
const files = (await built('memory/processes/arena-file.js')) as typeof arenaFiles;
const { threadsArena } = (await built('memory/threads.js')) as typeof threads;

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const HOSTS = [0, 1, 2];
const MESSAGES = 1000;
/** Several times fewer than the bytes of these messages. */
const LOG_BYTES = 16_384;
const START_MS = 30_000;
const STOP_MS = 30_000;

/**
 * Replies with how many messages it has delivered. If it is told to, it fails to take a snapshot and leaves a
 * folder as a sign that it was told, or waits with the snapshot until a file is gone.
 */
const COUNTING = `
  import { existsSync, mkdtempSync } from 'node:fs';
  const idle = new Int32Array(new SharedArrayBuffer(4));
  let count = 0;
  let fails = false;
  let path;
  const decoder = new TextDecoder();
  export function deliver({ payload }) {
    const text = decoder.decode(payload);
    if (text.startsWith('fail ')) {
      fails = true;
      mkdtempSync(text.slice('fail '.length));
    }
    if (text.startsWith('/')) path = text;
    return new TextEncoder().encode(String(++count));
  }
  export function snapshot() {
    if (fails) throw new Error('as it was told');
    while (path !== undefined && existsSync(path)) Atomics.wait(idle, 0, 0, 5);
    return new TextEncoder().encode(String(count));
  }
  export const restore = (state) => { count = Number(decoder.decode(state)); };
`;
const SERVICE = `data:text/javascript,${encodeURIComponent(COUNTING)}`;

const leftOver: (() => unknown)[] = [];

afterEach(async () => {
  for (const clear of leftOver.splice(0).reverse()) await clear();
});

/** A cluster of two groups whose hosts the test starts and stops itself. */
class Rig {
  readonly context: contexts.ClusterContext;
  readonly address: SharedArrayBuffer | string;
  readonly troubles: string[] = [];
  private readonly starter: startersModule.HostStarter;
  private readonly hosts: (startersModule.HostHandle | undefined)[] = [];

  constructor(memory: 'threads' | 'processes') {
    const options = {
      groups: 2,
      hosts: HOSTS.length,
      logBytes: LOG_BYTES,
      clients: 4,
      memory,
      service: SERVICE,
      name: `orderly-${process.pid}-${randomInt(2 ** 31)}`,
    };
    const config = resolveConfig(options, { check: randomInt(2 ** 31), tail: randomInt(2 ** 31) });
    const words = ClusterContext.wordsOf(config);
    if (memory === 'threads') {
      this.address = new SharedArrayBuffer(words * 4);
      this.context = ClusterContext.create(config, threadsArena(this.address));
      this.starter = starters.threadStarter(this.address);
    } else {
      this.address = files.arenaPath(options.name);
      const arena = files.createArenaFile(this.address, words);
      // No process holds the lock of a starter.
      arena.words[ARENA.isDetached] = 1;
      this.context = ClusterContext.create(config, arena);
      this.starter = starters.processStarter(this.address);
    }
    leftOver.push(() => this.end());
  }

  /** All hosts run. @param resume  false: they begin with empty memory */
  async start(resume: boolean): Promise<void> {
    await Promise.all(HOSTS.map((host) => this.startHost(host, resume)));
  }

  async startHost(host: number, resume: boolean): Promise<void> {
    const handle = this.starter.start(host, resume, {
      onReport: (report: HostReport) => {
        if (report.what === 'trouble') this.troubles.push(report.text);
      },
      onExit: () => {
        this.hosts[host] = undefined;
      },
    });
    this.hosts[host] = handle;
    await handle.ready(Date.now() + START_MS);
  }

  led(): Promise<void> {
    return untilLed(this.context, Date.now() + START_MS);
  }

  async stop(...hosts: number[]): Promise<void> {
    await Promise.all(hosts.map((host) => this.hosts[host]!.stop(STOP_MS)));
    expect(hosts.map((host) => this.hosts[host])).toEqual(hosts.map(() => undefined));
  }

  async kill(...hosts: number[]): Promise<void> {
    await Promise.all(hosts.map((host) => this.hosts[host]!.kill()));
    // As the process that has started a cluster does.
    for (const host of hosts) markEnded(this.context, host);
  }

  async connect(): Promise<Client> {
    const client = await Client.connect(this.address);
    leftOver.push(() => client.destroy());
    return client;
  }

  private async end(): Promise<void> {
    askToEnd(this.context);
    await Promise.all(this.hosts.map((host) => host?.end(0)));
    if (typeof this.address === 'string') files.removeArenaFile(this.address);
    this.context.arena.close();
  }
}

/** Sends messages to both groups, and returns the counts in the replies to the last one. */
async function send(client: Client, messages: number): Promise<(string | undefined)[]> {
  let last: Promise<ReadonlyMap<number, Uint8Array>> | undefined;
  for (let sent = 0; sent < messages; ) {
    const calls = Array.from({ length: Math.min(100, messages - sent) }, () =>
      client.multicast([0, 1], encode('x')),
    );
    sent += calls.length;
    last = calls.at(-1);
    await Promise.all(calls);
  }
  return [...(await last!).values()].map(decode);
}

describe.each(['threads', 'processes'] as const)('on %s', (memory) => {
  async function started(): Promise<{ rig: Rig; client: Client }> {
    const rig = new Rig(memory);
    await rig.start(false);
    await rig.led();
    Atomics.store(rig.context.arena.words, ARENA.state, ARENA_STATE.running);
    const client = await rig.connect();
    expect(await send(client, MESSAGES)).toEqual([`${MESSAGES}`, `${MESSAGES}`]);
    return { rig, client };
  }

  test('all hosts stop and start again: the state is there, for old clients and new ones', async () => {
    const { rig, client } = await started();
    await rig.stop(...HOSTS);
    const waiting = client.multicast([0, 1], encode('meanwhile'));
    await rig.start(true);
    await rig.led();
    expect([...(await waiting).values()].map(decode)).toEqual(['1001', '1001']);
    expect(await send(client, 9)).toEqual(['1010', '1010']);
    expect(await send(await rig.connect(), 10)).toEqual(['1020', '1020']);
    expect(rig.troubles).toEqual([]);
  });

  test('hosts stop one after the other while the others go on, and start in another order', async () => {
    const { rig, client } = await started();
    await rig.stop(2);
    await send(client, 1000);
    await rig.stop(0);
    await rig.stop(1);
    await rig.startHost(2, true);
    await rig.startHost(1, true);
    await rig.led();
    expect(await send(client, 1)).toEqual(['2001', '2001']);
    await rig.startHost(0, true);
    const delivered = () =>
      new Set(statusOf(rig.context).groups[0].replicas.map((replica) => replica.delivered));
    await until(() => delivered().size === 1);
  });

  test('what was left before a crash of all hosts counts as long as the logs continue it', async () => {
    const { rig, client } = await started();
    await rig.stop(...HOSTS);
    await rig.start(true);
    await rig.led();
    await send(client, 10);
    await rig.kill(...HOSTS);
    await rig.start(true);
    await rig.led();
    expect(await send(client, 1)).toEqual(['1011', '1011']);
  });

  test('one that leaves its state is enough', async () => {
    const { rig, client } = await started();
    await rig.kill(0, 2);
    await rig.stop(1);
    await rig.startHost(0, true);
    await rig.startHost(2, true);
    // They wait for the third one, which may have the state.
    await until(() =>
      statusOf(rig.context).groups.every((group) => group.health === 'no-majority'),
    );
    await rig.startHost(1, true);
    await rig.led();
    expect(await send(client, 1)).toEqual(['1001', '1001']);
  });

  test('a host that begins afresh does not use what it has left', async () => {
    const { rig, client } = await started();
    await rig.stop(0);
    await rig.startHost(0, false);
    await until(() => !statusOf(rig.context).groups[0].replicas.some(isRecovering));
    // What it left went with its memory.
    await rig.stop(1, 2);
    await rig.kill(0);
    await rig.start(true);
    await rig.led();
    expect(await send(client, 1)).toEqual(['1001', '1001']);
  });

  test('a replica whose snapshot() fails leaves nothing, says so, and gets the state from another', async () => {
    const { rig, client } = await started();
    const told = mkdtempSync(join(tmpdir(), 'tram-told-'));
    leftOver.push(() => rmSync(told, { recursive: true }));
    await client.multicast([0], encode(`fail ${told}/`));
    await until(() => readdirSync(told).length === HOSTS.length);
    await rig.stop(1);
    expect(rig.troubles).toHaveLength(1);
    expect(rig.troubles[0]).toMatch(/^g0\/1 can't leave its state for its next start/);
    expect(rig.troubles[0]).toContain('as it was told');
    await rig.startHost(1, true);
    expect(await send(client, 1)).toEqual(['1002', '1001']);
  });

  test('if all hosts are killed, the state is lost: hosts, status and errors say so', async () => {
    const { rig } = await started();
    await rig.kill(...HOSTS);
    await rig.start(true);
    await until(() => stateLost(statusOf(rig.context).groups).length === 2);
    const replicas = statusOf(rig.context).groups.flatMap((group) => group.replicas);
    expect(replicas.filter(({ lacksState }) => lacksState)).toHaveLength(replicas.length);
    await expect(rig.led()).rejects.toMatchObject({ code: 'TRAM_STATE_LOST' });
    await until(() => new Set(rig.troubles).size === 2);
    expect(rig.troubles[0]).toMatch(/^the state of g[01] is lost: .*start it anew$/);
  });

  test('if more than f replicas of a group lose their memory, its state is lost', async () => {
    const { rig } = await started();
    await rig.kill(0, 1);
    await rig.startHost(0, false);
    await rig.startHost(1, false);
    await until(() => stateLost(statusOf(rig.context).groups).length === 2);
  });
});

test('a cluster that ends while a host leaves its state keeps no files', async () => {
  const rig = new Rig('processes');
  await rig.start(false);
  await rig.led();
  const { words } = rig.context.arena;
  Atomics.store(words, ARENA.state, ARENA_STATE.running);
  const path = rig.address as string;
  await (await rig.connect()).multicast([0, 1], encode(path));
  const at = rig.context.map.host(1) + HOST.state;
  const stopped = rig.stop(1);
  await until(() => hostStateOf(Atomics.load(words, at)) === HOST_STATE.ended);
  askToEnd(rig.context);
  files.removeArenaFile(path);
  await stopped;
  const prefix = basename(path);
  expect(readdirSync('/dev/shm').filter((file) => file.startsWith(prefix))).toEqual([]);
});

const isRecovering = ({ role }: statuses.ReplicaStatus): boolean => role === 'recovering';

test('hosts of a cluster that get SIGTERM leave their state; the history holds, and close removes all', async () => {
  const trace = join(mkdtempSync(join(tmpdir(), 'tram-orderly-')), 'history');
  leftOver.push(() => rmSync(join(trace, '..'), { recursive: true }));
  const cluster = await Cluster.start({
    groups: 2,
    hosts: HOSTS.length,
    logBytes: LOG_BYTES,
    memory: 'processes',
    service: SERVICE,
    trace,
    restartHosts: false,
  });
  leftOver.push(() => cluster.destroy());
  const path = cluster.address as string;
  const filesOfCluster = (): string[] =>
    readdirSync('/dev/shm').filter((name) => path.endsWith(name.split('~')[0]));
  const client = await cluster.connect();
  await send(client, MESSAGES);
  for (const { pid } of cluster.status().hosts) process.kill(pid, 'SIGTERM');
  await until(() => cluster.status().hosts.every(({ state }) => state === 'down'));
  for (const host of HOSTS) await cluster.restart(host);
  expect(await send(client, 1)).toEqual(['1001', '1001']);
  expect(filesOfCluster()).toHaveLength(1 + 2 * HOSTS.length);
  await cluster.close();
  expect(filesOfCluster()).toEqual([]);
  expect(execFileSync(process.execPath, [MAIN, 'check', trace], { encoding: 'utf8' })).toContain(
    'holds',
  );
});
