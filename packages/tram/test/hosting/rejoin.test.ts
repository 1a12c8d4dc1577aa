/** Restarts wait until replicas take part again, and never cost the last copy of a group's state. */
import { afterEach, describe, expect, test } from 'vitest';
import { Cluster, decode, encode, type StartOptions, TramError, until } from '../built.js';

const RECORDER = new URL('../recorder.mjs', import.meta.url);
const SIZES = { hosts: 3, payloadBytesMax: 64, replyBytesMax: 4000, callsMax: 4 } as const;

const clusters: Cluster[] = [];

afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.destroy();
});

async function errorOf(promise: Promise<unknown>): Promise<InstanceType<typeof TramError>> {
  const outcome = await promise.then(
    () => 'no error',
    (error: unknown) => error,
  );
  if (!(outcome instanceof TramError)) throw new Error(`no TramError: ${outcome}`);
  return outcome;
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

  test('a restart whose host is killed again says so', async () => {
    const cluster = await start();
    await cluster.crash(1);
    const restart = errorOf(cluster.restart(1));
    await cluster.crash(1);
    expect((await restart).code).toBe('TRAM_START_FAILED');
    await cluster.restart(1);
  });

  test('a crash that costs a group its majority, or the last copy of its state, is warned of', async () => {
    const warnings: string[] = [];
    const logger = {
      info: () => undefined,
      warn: (text: string) => void warnings.push(text),
      error: () => undefined,
    };
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
