/** Restarts wait until replicas take part again, and never cost the last copy of a group's state. */
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
  expect(() => requireOtherCopies(groups, 2)).not.toThrow();
  expect(() => requireOtherCopies(groups, 0)).toThrow('1 of 2 take part and have the state');
  expect(costOfEnd(groups, 0)).toBeUndefined();
  const [group] = groups;
  const oneLeft = [{ ...group, replicas: [...group.replicas.slice(1)] }];
  expect(costOfEnd(oneLeft, 1)).toMatch(/^costs g0 the last running copy/);
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
