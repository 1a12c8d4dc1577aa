/** What an operator of three machines reads: in the output of commands, in the status, and in the logs of the hosts. */
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { encode } from '../../built.js';
import { until } from '../../cli/command-line.js';
import { Loopback, NAMES } from '../../loopback.js';
import { needLibfabric } from '../../memory/fabric/present.js';

let cluster: Loopback;

beforeEach(async (context) => {
  needLibfabric(context);
  cluster = await Loopback.make();
});

afterEach(() => cluster.clearUp());

test('a client that comes before all hosts have started learns which one is missing', async () => {
  const alpha = cluster.start('alpha');
  await alpha.says('waits for beta .* and gamma');
  const beta = cluster.start('beta');
  await beta.says('waits for gamma');
  const sent = await cluster.tram('send', '--config', cluster.config, '--to', '0', '--text', 'x');
  expect(sent.code).toBe(1);
  expect(sent.stderr).toMatch(/alpha \([^)]*\): it waits for other hosts; beta/);
  expect(sent.stderr).toMatch(/gamma \([^)]*\): .*refused/i);
  expect(sent.stderr).toMatch(/Start the hosts that do not answer \(`tram host NAME`\): gamma\./);
  expect(sent.stderr).not.toContain('slots');
  expect([...alpha.warnings, ...beta.warnings]).toEqual([]);

  expect(await cluster.look()).toMatchObject({ state: 'starting' });
  const shown = await cluster.tram('status', '--config', cluster.config);
  expect(shown.stdout).toMatch(/ starting: 2 groups of 3 replicas on 3 hosts, 0 of them up\n/);
  expect(shown.stdout).toMatch(
    /no leader in g0, g1 yet: their hosts are starting. Start one: tram host gamma/,
  );
});

test('counts stay right when a home of clients fails, returns, and loses its memory', async () => {
  const hosts = await cluster.startAll();
  const client = await cluster.connect();
  for (let i = 0; i < 30; i++) await client.multicast([i % 2], encode('counted'));
  // Clients report once a second.
  const isCounted = async (connected: number, answered: number): Promise<void> => {
    let seen: unknown;
    const isSo = async (): Promise<boolean> => {
      const status = await cluster.look();
      seen = { connected: status.clients.connected, answered: status.answered };
      return status.clients.connected === connected && status.answered === answered;
    };
    await until(isSo).catch(() => expect(seen).toEqual({ connected, answered }));
  };
  await isCounted(1, 30);
  // Sessions tell who gave them.
  const home = Number(client.name.slice(1)) % NAMES.length;
  await hosts[home].end('SIGKILL');
  await isCounted(1, 30);
  for (let i = 0; i < 6; i++) await client.multicast([i % 2], encode('without its home'));
  await isCounted(1, 36);
  // What a client has counted without its home is known there.
  await client.close();
  await isCounted(0, 36);
  await cluster.start(NAMES[home]).says('resumes with the memory');
  await cluster.untilLevel();
  await isCounted(0, 36);

  await cluster.hosts.at(-1)!.end('SIGKILL');
  rmSync(cluster.memoryOf(NAMES[home]));
  await cluster.start(NAMES[home]).says('has lost its memory');
  await cluster.untilLevel();
  await isCounted(0, 36);
  const next = await cluster.connect();
  await next.multicast([0], encode('after all'));
  await isCounted(1, 37);
});

test('a replica that fetched the state counts what the state contains', async () => {
  const [, , gamma] = await cluster.startAll();
  const client = await cluster.connect();
  await gamma.end('SIGKILL');
  // More than a log holds.
  const payload = new Uint8Array(200);
  const sent = 800;
  for (let i = 0; i < sent; i += 20) {
    await Promise.all(Array.from({ length: 20 }, () => client.multicast([0], payload)));
  }
  await cluster.start('gamma').says('runs its replicas');
  await cluster.untilLevel();
  const messages = async (): Promise<number[]> =>
    (await cluster.look()).groups[0].replicas.map((replica) => replica.messages);
  await until(async () => (await messages()).every((count) => count === sent));
});

test('the state of the cluster is "stalled" while groups have no leader', async () => {
  const [alpha, beta] = await cluster.startAll();
  await alpha.end('SIGKILL');
  await beta.end('SIGKILL');
  await until(async () => (await cluster.look()).state === 'stalled');
  const shown = await cluster.tram('status', '--config', cluster.config);
  expect(shown.stdout).toMatch(/ stalled: 2 groups of 3 replicas on 3 hosts, 1 of them up\n/);
});

test('nothing that goes as it should is logged as a warning', async () => {
  const gamma = cluster.start('gamma');
  await gamma.says('waits for alpha');
  const alpha = cluster.start('alpha');
  const beta = cluster.start('beta');
  for (const host of [alpha, beta, gamma]) await host.says('runs its replicas');
  await cluster.untilLevel();
  const client = await cluster.connect();
  await client.multicast([0, 1], encode('hello'));
  // A client needs the leaders only, and connects to the others meanwhile.
  for (const host of cluster.hosts) await host.says(/connected to client \d/);
  await client.close();
  for (const host of cluster.hosts) await host.says(/client \d has closed its connection/);
  await alpha.end('SIGTERM');
  for (const host of [beta, gamma]) await host.says('alpha has closed its connection');
  await cluster.start('alpha').says('runs its replicas');
  await cluster.untilLevel();
  // Also to the alpha that has just started.
  for (const host of [beta, gamma]) {
    await until(() => host.log.filter(({ msg }) => msg === 'connected to alpha').length === 2);
  }
  expect(cluster.hosts.flatMap(({ warnings }) => warnings)).toEqual([]);

  await cluster.hosts.at(-1)!.end('SIGKILL');
  for (const host of [beta, gamma]) await host.says('the connection to alpha broke');
  expect(beta.warnings).toContainEqual(expect.stringContaining('the connection to alpha broke'));
});

test('a host whose name is wrong is told the right ones', async () => {
  const wrong = await cluster.tram('host', 'gama', '--config', cluster.config);
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
  expect(wrong.stderr).toContain('there is no host gama: there are alpha, beta, gamma');
  expect(wrong.stderr).toContain('Did you mean gamma?');
  const unlike = await cluster.tram('host', 'delta-9', '--config', cluster.config);
  expect(unlike.stderr).toContain('Choose one of these names.');
});
