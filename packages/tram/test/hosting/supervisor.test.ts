/** Hosts that end unexpectedly are restarted by the process that started them; those that are ended on purpose are not. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Cluster, decode, encode, keeping, pause, type StartOptions, until } from '../built.js';

/**
 * Counts its messages. `end 1` ends the host of member 1, once: the message is delivered again after the restart. A file
 * `broken` in its folder keeps hosts from starting.
 */
const serviceIn = (folder: string): string =>
  `data:text/javascript,${encodeURIComponent(`
    import { existsSync, writeFileSync } from 'node:fs';
    const folder = ${JSON.stringify(folder)};
    if (existsSync(folder + '/broken')) throw new Error('no disk');
    let count = 0;
    const encoder = new TextEncoder();
    export function deliver({ payload }, { member }) {
      const text = new TextDecoder().decode(payload);
      if (text === 'end ' + member && !existsSync(folder + '/' + text)) {
        writeFileSync(folder + '/' + text, '');
        setTimeout(() => process.exit(3));
      }
      return encoder.encode(++count + ' ' + text);
    }
    export const snapshot = () => encoder.encode(String(count));
    export const restore = (state) => { count = Number(new TextDecoder().decode(state)); };
  `)}`;

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tram-supervisor-'));
});

const leftOver: (() => unknown)[] = [];

afterEach(async () => {
  for (const remove of leftOver.splice(0).reverse()) await remove();
  rmSync(folder, { recursive: true });
});

function listen(): { what: string; host: number }[] {
  const heard: { what: string; host: number }[] = [];
  const listener = (message: unknown): void => void heard.push(message as (typeof heard)[0]);
  subscribe('tram:host', listener);
  leftOver.push(() => unsubscribe('tram:host', listener));
  return heard;
}

function isUp(cluster: Cluster, host: number): boolean {
  const replicas = cluster.status().groups.flatMap((group) => group.replicas);
  return replicas
    .filter((replica) => replica.host === host)
    .every(({ state, role }) => state === 'up' && role !== 'recovering');
}

const incarnationOn = (cluster: Cluster, host: number): number =>
  cluster.status().groups[0].replicas[host].incarnation;

describe.each(['threads', 'processes'] as const)('on %s', (memory) => {
  async function start(options: Partial<StartOptions> = {}): Promise<Cluster> {
    const cluster = await Cluster.start({
      groups: 1,
      hosts: 3,
      memory,
      service: serviceIn(folder),
      ...options,
    });
    leftOver.push(() => cluster.destroy());
    return cluster;
  }

  test('a host that ends by an error is restarted with its memory', async () => {
    const { logger, warnings } = keeping();
    const heard = listen();
    const cluster = await start({ logger });
    const client = await cluster.connect();
    await client.multicast([0], encode('before'));
    await client.multicast([0], encode('end 1'));
    await until(() => incarnationOn(cluster, 1) === 2 && isUp(cluster, 1));
    expect(decode((await client.multicast([0], encode('after'))).get(0))).toBe('3 after');
    expect(heard.map(({ what, host }) => `${what} ${host}`).slice(3, 6)).toEqual([
      'ended 1',
      'restarting 1',
      'started 1',
    ]);
    expect(warnings).toEqual(['host 1 has ended: exit code 3', 'host 1 is restarted in 100 ms']);
  });

  test('a host that was crashed or stopped stays down', async () => {
    const heard = listen();
    const cluster = await start();
    await cluster.crash(0);
    await cluster.restart(0);
    await cluster.stop(1);
    const client = await cluster.connect();
    await client.multicast([0], encode('end 2'));
    await until(() => incarnationOn(cluster, 2) === 2 && isUp(cluster, 2));
    expect(heard.filter(({ what }) => what === 'restarting')).toMatchObject([{ host: 2 }]);
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'down', 'up']);
  });

  test('a host that keeps ending is left down, and can be restarted later', async () => {
    const { logger, errors } = keeping();
    const heard = listen();
    const cluster = await start({ logger });
    const client = await cluster.connect();
    writeFileSync(join(folder, 'broken'), '');
    await client.multicast([0], encode('end 1'));
    await until(() => errors.length > 0);
    expect(errors[0]).toMatch(/^host 1 keeps ending and is left down: .*no disk/s);
    expect(heard.filter(({ what }) => what === 'restarting')).toHaveLength(5);
    expect(cluster.status().hosts[1].state).toBe('down');
    rmSync(join(folder, 'broken'));
    await cluster.restart(1);
    expect(isUp(cluster, 1)).toBe(true);
  });

  test('a host that is stopped while it is restarted stays down', async () => {
    const cluster = await start();
    let stopped: Promise<void> | undefined;
    const onEvent = (message: unknown): void => {
      const { what, delayMs } = message as { what: string; delayMs: number };
      if (what !== 'restarting') return;
      // Timers of one length fire in the order in which they were set: this one when the start has just begun.
      stopped ??= pause(delayMs).then(() => cluster.stop(1));
    };
    subscribe('tram:host', onEvent);
    leftOver.push(() => unsubscribe('tram:host', onEvent));
    const client = await cluster.connect();
    await client.multicast([0], encode('end 1'));
    await until(() => stopped !== undefined);
    await stopped;
    // By then, a restart of host 1 would have begun.
    await client.multicast([0], encode('end 2'));
    await until(() => incarnationOn(cluster, 2) === 2 && isUp(cluster, 2));
    expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'down', 'up']);
    await cluster.restart(1);
  });

  test('with restartHosts: false it stays down', async () => {
    const { logger, warnings } = keeping();
    const cluster = await start({ logger, restartHosts: false });
    const client = await cluster.connect();
    await client.multicast([0], encode('end 1'));
    await until(() => warnings.length > 0);
    await client.multicast([0], encode('goes on'));
    expect(warnings).toEqual([expect.stringMatching(/^host 1 has ended/)]);
    expect(cluster.status().hosts[1].state).toBe('down');
  });
});

test('a process that is killed from outside is restarted', async () => {
  const { logger, warnings } = keeping();
  const cluster = await Cluster.start({ groups: 1, hosts: 3, memory: 'processes', logger });
  leftOver.push(() => cluster.destroy());
  process.kill(cluster.status().hosts[2].pid, 'SIGKILL');
  await until(() => incarnationOn(cluster, 2) === 2 && isUp(cluster, 2));
  expect(warnings).toEqual(['host 2 has ended: SIGKILL', 'host 2 is restarted in 100 ms']);
});
