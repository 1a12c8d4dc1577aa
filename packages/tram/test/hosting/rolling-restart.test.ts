/** All hosts are restarted in turn, while a client multicasts all the while. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { ClusterAddress } from '../../src/client.js';
import { ClusterContext } from '../../src/hosting/cluster-context.js';
import { isStopped } from '../../src/hosting/host-processes.js';
import { openArena } from '../../src/hosting/open-arena.js';
import { PARTICIPANT } from '../../src/memory/arena.js';
import {
  type Client,
  Cluster,
  decode,
  encode,
  errorOf,
  keeping,
  type StartOptions,
  TramError,
  until,
} from '../built.js';

const RECORDER = new URL('../recorder.mjs', import.meta.url);
const SIZES = { hosts: 3, payloadBytesMax: 64, replyBytesMax: 4000 } as const;

/** What a test leaves behind. */
const leftOver: (() => unknown)[] = [];

afterEach(async () => {
  for (const remove of leftOver.splice(0).reverse()) await remove();
});

/** Sends one message after the other until it is told to stop. @returns the last reply, and how many messages it sent */
function load(client: Client): { stop(): Promise<{ sent: number; last: string | undefined }> } {
  let isOver = false;
  const running = (async () => {
    let sent = 0;
    let last: string | undefined;
    while (!isOver) {
      last = decode((await client.multicast([0, 1], encode(`${sent++}`))).get(1));
    }
    return { sent, last };
  })();
  // An error is told by `stop`.
  running.catch(() => undefined);
  return {
    stop: () => {
      isOver = true;
      return running;
    },
  };
}

/** How often replicas were asked to take over the leadership of a group. */
function handovers(cluster: Cluster): number {
  const arena = openArena(cluster.address as ClusterAddress);
  try {
    const { map, layout } = ClusterContext.attach(arena);
    const { groups, replicas } = layout.sizes;
    const participants = Array.from({ length: groups * replicas }, (_, participant) => participant);
    return participants
      .map((participant) => arena.words[map.participant(participant) + PARTICIPANT.handovers])
      .reduce((sum, requests) => sum + requests, 0);
  } finally {
    arena.close();
  }
}

describe.each(['threads', 'processes'] as const)('on %s', (memory) => {
  async function start(options: Partial<StartOptions> = {}): Promise<Cluster> {
    const cluster = await Cluster.start({
      groups: 2,
      memory,
      service: RECORDER,
      ...SIZES,
      ...options,
    });
    leftOver.push(() => cluster.destroy());
    return cluster;
  }

  test('no call is lost or fails while all hosts are restarted in turn', async () => {
    const { logger, infos } = keeping();
    const cluster = await start({ logger });
    const incarnations = () =>
      cluster.status().groups.flatMap(({ replicas }) => replicas.map((one) => one.incarnation));
    const client = await cluster.connect();
    const loaded = load(client);
    await cluster.rollingRestart();
    const { sent, last } = await loaded.stop();
    // The replies count: each message was delivered once, and none was lost.
    expect(last).toBe(`${sent}:${sent - 1}`);
    expect(incarnations()).toEqual([2, 2, 2, 2, 2, 2]);
    expect(infos.filter((text) => text.endsWith('was restarted'))).toEqual(
      [0, 1, 2].map((host) => `host ${host} was restarted`),
    );
  });

  test('it upgrades the code of the service', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tram-upgrade-'));
    leftOver.push(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'service.mjs');
    const version = (number: number) => `
      let count = 0;
      const encoder = new TextEncoder();
      export const deliver = () => encoder.encode('version ${number}: ' + ++count);
      export const snapshot = () => encoder.encode(String(count));
      export const restore = (state) => { count = Number(new TextDecoder().decode(state)); };`;
    writeFileSync(file, version(1));
    const cluster = await start({ service: file });
    const client = await cluster.connect();
    const send = async () => decode((await client.multicast([1], encode('x'))).get(1));
    expect(await send()).toBe('version 1: 1');
    writeFileSync(file, version(2));
    await cluster.rollingRestart();
    expect(await send()).toBe('version 2: 2');
  });

  test('it does not begin while a host is down', async () => {
    const cluster = await start();
    await cluster.stop(1);
    await expect(cluster.rollingRestart()).rejects.toMatchObject({
      code: 'TRAM_UNAVAILABLE',
      message: expect.stringMatching(/needs all replicas, .*g0\/1 \(down\), g1\/1 \(down\)$/),
    });
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'down', 'up']);
  });

  test('it ends at the first host that fails, and says what was done', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tram-upgrade-'));
    leftOver.push(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'service.mjs');
    writeFileSync(file, 'export const deliver = () => undefined;');
    const cluster = await start({ service: file });
    writeFileSync(file, 'throw new Error("not ready yet");');
    const error = await cluster.rollingRestart().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TramError);
    expect((error as Error).message).toMatch(
      /^the rolling restart has stopped at host 0: .*not ready yet.*\(restarted: none; not: 0, 1, 2\)$/s,
    );
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['down', 'up', 'up']);
  });

  describe('a service whose state can no longer be saved', () => {
    const SOURCE = `
      let count = 0;
      export const deliver = () => void count++;
      export const restore = () => undefined;
      export function snapshot() {
        if (count > 0) throw new Error('disk full');
        return new Uint8Array(1);
      }`;
    const service = `data:text/javascript,${encodeURIComponent(SOURCE)}`;
    const UNSAVED = {
      code: 'TRAM_SNAPSHOT_FAILED',
      hint: expect.stringContaining('End no other host'),
    };

    async function startUnsaved(options: Partial<StartOptions> = {}): Promise<Cluster> {
      const cluster = await start({ service, ...options });
      await (await cluster.connect()).multicast([1], encode('x'));
      await until(() => cluster.status().groups[1].replicas.every((one) => one.delivered > 0));
      return cluster;
    }

    const statesOf = (cluster: Cluster) => cluster.status().hosts.map(({ state }) => state);

    test('stop says so, and the host can start again', async () => {
      const cluster = await startUnsaved();
      const error = await cluster.stop(2).catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        ...UNSAVED,
        message: expect.stringMatching(
          /^host 2 has ended, but the state of g1\/2 could not be saved/,
        ),
      });
      if (memory === 'threads') expect((error as Error).message).toContain('Error: disk full');
      expect(statesOf(cluster)).toEqual(['up', 'up', 'down']);
      await cluster.restart(2);
      expect(statesOf(cluster)).toEqual(['up', 'up', 'up']);
    });

    test('a rolling restart ends before a second host is ended', async () => {
      const cluster = await startUnsaved();
      await expect(cluster.rollingRestart()).rejects.toMatchObject(UNSAVED);
      expect(statesOf(cluster)).toEqual(['down', 'up', 'up']);
    });

    if (memory === 'processes') {
      test('so does one by another process, and its stop says so', async () => {
        const cluster = await startUnsaved();
        const attached = await Cluster.attach(cluster.address);
        leftOver.push(() => attached.close());
        await expect(attached.stop(2)).rejects.toMatchObject(UNSAVED);
        await attached.restart(2);
        await expect(attached.rollingRestart()).rejects.toMatchObject(UNSAVED);
        expect(statesOf(cluster)).toEqual(['down', 'up', 'up']);
      });
    }

    test('a restart with empty memory needs no saved state', async () => {
      const cluster = await startUnsaved();
      await cluster.restart(2, { fresh: true });
      expect(statesOf(cluster)).toEqual(['up', 'up', 'up']);
    });

    test('a replica that needs the state of another one says why it waits', async () => {
      const cluster = await startUnsaved({ groups: 2, logBytes: 2048 });
      const client = await cluster.connect();
      await cluster.crash(2);
      for (let i = 0; i < 200; i++) await client.multicast([1], encode('x'.repeat(60)));
      await expect(cluster.restart(2, { timeoutMs: 2000 })).rejects.toMatchObject({
        code: 'TRAM_TIMEOUT',
        hint: expect.stringMatching(/^snapshot\(\) of the service fails at g1\/[01]/),
      });
    });
  });

  test('a signal ends it before the next host', async () => {
    const controller = new AbortController();
    const logger = {
      info: (text: string) => text === 'host 0 was restarted' && controller.abort('enough'),
      warn: () => undefined,
      error: () => undefined,
    };
    const cluster = await start({ logger });
    await expect(cluster.rollingRestart({ signal: controller.signal })).rejects.toMatchObject({
      code: 'TRAM_ABORTED',
      message: expect.stringMatching(/\(restarted: 0; not: 1, 2\)$/),
    });
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
  });

  test('a host that is stopped hands its leaderships over first', async () => {
    const cluster = await start();
    const leaders = () =>
      cluster
        .status()
        .groups.map(({ leader, replicas }) => (leader === undefined ? -1 : replicas[leader].host));
    await until(() => !leaders().includes(-1));
    await until(() =>
      cluster.status().groups[0].replicas.every(({ role }) => role !== 'recovering'),
    );
    const [host] = leaders();
    const requestedBefore = handovers(cluster);
    await cluster.stop(host);
    expect(handovers(cluster)).toBeGreaterThan(requestedBefore);
    expect(cluster.status().hosts[host].state).toBe('down');
    // On a busy machine, a group may change its leader once more.
    await until(() => !leaders().includes(-1));
    expect(leaders()).not.toContain(host);
    await cluster.restart(host);
  });
});

test('it does not begin while a host hangs', async () => {
  const cluster = await Cluster.start({ groups: 2, memory: 'processes', ...SIZES });
  leftOver.push(() => cluster.destroy());
  const pids = () => cluster.status().hosts.map(({ pid }) => pid);
  const before = pids();
  process.kill(before[1], 'SIGSTOP');
  await until(() => isStopped(before[1]));
  await expect(cluster.rollingRestart()).rejects.toMatchObject({
    code: 'TRAM_UNAVAILABLE',
    message: `a rolling restart needs all hosts, and these are stopped (SIGSTOP): host 1 (process ${before[1]})`,
    hint: expect.stringContaining('SIGCONT'),
  });
  expect(pids()).toEqual(before);
  process.kill(before[1], 'SIGCONT');
  await cluster.rollingRestart();
  expect(pids().filter((pid) => before.includes(pid))).toEqual([]);
});

test('it ends no host if another one hangs by the time leaderships are handed over', async () => {
  const options = { groups: 2, memory: 'processes', leaders: 'together', ...SIZES } as const;
  const cluster = await Cluster.start(options);
  leftOver.push(() => cluster.destroy());
  await until(() => cluster.status().groups.every(({ leader }) => leader === 0));
  const pids = () => cluster.status().hosts.map(({ pid }) => pid);
  const before = pids();
  const rolling = errorOf(cluster.rollingRestart());
  // So many turns later, and before any timer fires, it has found all hosts running and waits for other leaders.
  for (let turn = 0; turn < 1000; turn++) await undefined;
  process.kill(before[2], 'SIGSTOP');
  const { code, message } = await rolling;
  process.kill(before[2], 'SIGCONT');
  expect(code).toBe('TRAM_UNAVAILABLE');
  expect(message).toMatch(/^the rolling restart has stopped at host 0: .* host 2 .*not: 0, 1, 2/);
  expect(pids()).toEqual(before);
  await cluster.rollingRestart();
});
