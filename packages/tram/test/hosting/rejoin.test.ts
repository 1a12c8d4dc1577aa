/** Restarts wait until replicas take part again, and never cost the last copy of a group's state. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { costOfEnd, requireOtherCopies } from '../../src/hosting/rejoin.js';
import type { GroupStatus } from '../../src/hosting/status.js';
import { Cluster, decode, encode, errorOf, keeping, type StartOptions, until } from '../built.js';

const RECORDER = new URL('../recorder.mjs', import.meta.url);
const SIZES = { hosts: 3, payloadBytesMax: 64, replyBytesMax: 4000, callsMax: 4 } as const;

/** So many that logs of 4 kB drop their beginning. */
const MESSAGES = 1000;
const COUNTER = `data:text/javascript,${encodeURIComponent(`
  let count = 0;
  const encoder = new TextEncoder();
  export const deliver = () => encoder.encode(String(++count));
  export const snapshot = () => encoder.encode(String(count));
  export const restore = (state) => { count = Number(new TextDecoder().decode(state)); };
`)}`;

/** The same. What its host leaves when it ends is held up while there is a file `hold` in the folder. */
const holdingIn = (folder: string): string =>
  COUNTER.replace(
    encodeURIComponent('export const snapshot = () =>'),
    encodeURIComponent(`
      import { existsSync } from 'node:fs';
      const isHeld = () => existsSync(${JSON.stringify(join(folder, 'hold'))});
      export const snapshot = () => { while (isHeld()); return save(); };
      const save = () =>`),
  );

const clusters: Cluster[] = [];

afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.destroy();
});

test('a replica that lacks entries which it needs from others is no copy of the state', () => {
  const replicas = [0, 1, 2].map((member) => ({
    name: `g0/${member}`,
    group: 0,
    member,
    host: member,
    state: 'up',
    role: 'follower',
    lacksState: member === 2,
  }));
  const groups = [{ group: 0, replicas }] as unknown as GroupStatus[];
  expect(() => requireOtherCopies(groups, [2], '2')).not.toThrow();
  expect(() => requireOtherCopies(groups, [0], '0')).toThrow('1 of 2 take part and have the state');
  expect(costOfEnd(groups, [0])).toBeUndefined();
  const [group] = groups;
  const oneLeft = [{ ...group, replicas: [...group.replicas.slice(1)] }];
  expect(costOfEnd(oneLeft, [1])).toMatch(/^costs g0 the last running copy/);
});

describe.each(['threads', 'processes'] as const)('on %s', (memory) => {
  async function start(options: Partial<StartOptions> = {}): Promise<Cluster> {
    const cluster = await Cluster.start({
      groups: 2,
      memory,
      service: RECORDER,
      ...SIZES,
      ...options,
    });
    clusters.push(cluster);
    return cluster;
  }

  test('hosts that crash and start afresh one after the other keep the state', async () => {
    const cluster = await start();
    const client = await cluster.connect();
    await client.multicast([0, 1], encode('before'));
    for (const host of [0, 1, 2]) {
      await cluster.crash(host);
      await cluster.restart(host, { fresh: true });
      const replicas = cluster.status().groups.flatMap((group) => group.replicas);
      const here = replicas.filter((replica) => replica.host === host);
      expect(here.map(({ state, role }) => `${state} ${role}`)).not.toContain('up recovering');
    }
    expect(decode((await client.multicast([1], encode('read'))).get(1))).toBe('before');
  });

  test('a fresh restart is refused where it would cost the last copy of the state', async () => {
    const cluster = await start();
    const client = await cluster.connect();
    await client.multicast([0, 1], encode('before'));
    await cluster.crash(0);
    await cluster.crash(1);
    const { code, retry, message, hint } = await errorOf(cluster.restart(0, { fresh: true }));
    expect(`${code} ${retry}`).toBe('TRAM_LAST_COPY safe');
    expect(message).toMatch(/^host 0 can't start with empty memory: .*g0 .*1 of 2/);
    expect(hint).toMatch(/Restart the other hosts first/);
    await cluster.restart(0);
    await cluster.restart(1, { fresh: true });
    expect(decode((await client.multicast([1], encode('read'))).get(1))).toBe('before');
  });

  test('a group of one replica is never restarted afresh', async () => {
    const cluster = await start({ groups: 1, replicas: 1, hosts: 1 });
    await cluster.crash(0);
    const { code, hint } = await errorOf(cluster.restart(0, { fresh: true }));
    expect(code).toBe('TRAM_LAST_COPY');
    expect(hint).toMatch(/without/);
    await cluster.restart(0);
    await until(() => cluster.status().groups[0].leader === 0);
  });

  test('a restart after which the state of a group is lost says so', async () => {
    const cluster = await start({ logBytes: 4096, replyBytesMax: 64, service: COUNTER });
    const client = await cluster.connect();
    const perTurn = 50;
    for (let sent = 0; sent < MESSAGES; sent += perTurn) {
      await Promise.all(
        Array.from({ length: perTurn }, () => client.multicast([0, 1], encode('x'))),
      );
    }
    for (const host of [0, 1, 2]) await cluster.crash(host);
    await cluster.restart(0);
    await cluster.restart(1);
    const { code, message } = await errorOf(cluster.restart(2));
    expect(code).toBe('TRAM_STATE_LOST');
    expect(message).toMatch(/^the state of g0, g1 is lost/);
    // Also when it had been lost before.
    expect((await errorOf(cluster.restart(0))).code).toBe('TRAM_STATE_LOST');
    expect((await errorOf(cluster.rollingRestart())).code).toBe('TRAM_STATE_LOST');
  });

  test('of two hosts that are restarted afresh at once, only one gives its memory up', async () => {
    const cluster = await start();
    const client = await cluster.connect();
    await client.multicast([0, 1], encode('before'));
    const outcomes = await Promise.allSettled(
      [0, 1].map((host) => cluster.restart(host, { fresh: true })),
    );
    expect(outcomes).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'TRAM_LAST_COPY' } },
    ]);
    expect(decode((await client.multicast([1], encode('read'))).get(1))).toBe('before');
    // The claim has ended.
    await cluster.restart(1, { fresh: true });
  });

  test('a host keeps its memory if another one ends while it is restarted afresh', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tram-rejoin-'));
    const cluster = await start({ service: holdingIn(folder) });
    const client = await cluster.connect();
    await client.multicast([0, 1], encode('x'));
    writeFileSync(join(folder, 'hold'), '');
    const restart = errorOf(cluster.restart(0, { fresh: true }));
    await until(() => cluster.status().hosts[0].state === 'down');
    await cluster.crash(1);
    rmSync(folder, { recursive: true });
    const { code, message } = await restart;
    expect(code).toBe('TRAM_LAST_COPY');
    expect(message).toMatch(/^host 0 was restarted with the memory that it left: .*1 of 2/);
    await cluster.restart(1);
    expect(decode((await client.multicast([1], encode('x'))).get(1))).toBe('2');
  });

  test('a restart whose host is killed again says so', async () => {
    const cluster = await start();
    await cluster.crash(1);
    const restart = errorOf(cluster.restart(1));
    await cluster.crash(1);
    expect((await restart).code).toBe('TRAM_START_FAILED');
    await cluster.restart(1);
  });

  test('a crash that costs a group its majority, or the last copy of its state, is warned of', async () => {
    const { logger, warnings } = keeping();
    const cluster = await start({ logger });
    const replicas = () => cluster.status().groups.flatMap((group) => group.replicas);
    await until(() => replicas().every(({ role }) => role !== 'recovering'));
    await cluster.crash(0);
    expect(warnings).toEqual([expect.stringMatching(/^host 0 has ended/)]);
    warnings.splice(0);
    await cluster.crash(1);
    expect(warnings[0]).toMatch(/^the crash of host 1 costs g0, g1 their majority/);
    warnings.splice(0);
    await cluster.crash(2);
    expect(warnings[0]).toMatch(/^the crash of host 2 costs g0, g1 the last running copy/);
  });
});
