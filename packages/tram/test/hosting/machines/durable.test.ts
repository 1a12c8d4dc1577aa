/**
 * Hosts with journals on machines that lose power: their processes end at once, and their memory is gone. The hosts are
 * processes here, on the loopback. What was acknowledged is there again, whichever of them come back, and in which order.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, decode, encode } from '../../built.js';
import { until } from '../../cli/command-line.js';
import { type HostProcess, Loopback, NAMES, type Name } from '../../loopback.js';
import { needLibfabric } from '../../memory/fabric/present.js';

let cluster: Loopback;

beforeEach(async (context) => {
  needLibfabric(context);
  cluster = await Loopback.make();
  cluster.writeConfig(cluster.config, cluster.addresses, 'durability: always\njournal: journals\n');
});

afterEach(() => cluster.clearUp());

/** Its process ends, and its memory is gone. The clients do not notice it as an orderly end. */
async function cutPower(...hosts: readonly HostProcess[]): Promise<void> {
  await Promise.all(hosts.map((host) => host.end('SIGKILL')));
  for (const { name } of hosts) rmSync(cluster.memoryOf(name), { force: true });
}

/** Usually in era 2. But a recovery that was interrupted begins anew, with a higher era. */
const STARTS = /starts with era ([2-9]|\d\d)/;
const JOINS = /has lost its memory, and recovers from its groups, in era ([2-9]|\d\d)/;

async function start(...names: readonly Name[]): Promise<HostProcess[]> {
  const hosts = names.map((name) => cluster.start(name));
  for (const host of hosts) await host.says('runs its replicas');
  return hosts;
}

/** Sends so many messages to both groups. The service replies with how many its group has had. */
async function send(client: Client, count: number): Promise<void> {
  const sent = Array.from({ length: count }, (_, i) => client.multicast([0, 1], encode(`m${i}`)));
  await Promise.all(sent);
}

/** How many messages the groups had before this one. */
async function counts(client: Client): Promise<number[]> {
  const replies = await client.multicast([0, 1], encode('count'));
  return [...replies.values()].map((reply) => Number.parseInt(decode(reply)!, 10) - 1);
}

/** A new client: sessions of the one before have ended. */
async function countsAnew(): Promise<number[]> {
  let client: Client | undefined;
  await until(async () => {
    client = await cluster.connect().catch(() => undefined);
    return client !== undefined;
  });
  return counts(client!);
}

test('after a power cut of all, everything acknowledged is there; a host with an empty disk joins later', async () => {
  const hosts = await cluster.startAll();
  const client = await cluster.connect();
  await send(client, 500);
  await cutPower(...hosts);
  rmSync(join(cluster.folder, 'journals', 'gamma'), { recursive: true });
  const [beta] = await start('beta', 'alpha');
  await beta.says(STARTS);
  expect(await countsAnew()).toEqual([500, 500]);
  const gamma = cluster.start('gamma');
  await gamma.says(JOINS);
  await cluster.untilLevel();
  await cutPower(...cluster.hosts);
  await start('gamma', 'beta', 'alpha');
  expect(await countsAnew()).toEqual([501, 501]);
}, 120_000);

test('a host that has kept its memory gives it up if the others have lost theirs', async () => {
  const [alpha, beta, gamma] = await cluster.startAll();
  await send(await cluster.connect(), 100);
  await cutPower(beta, gamma);
  await start('gamma', 'beta');
  // Either they wait, and ask it. Or they join it, if it has not noticed that they were gone, and it finds that they lack the
  // state.
  await alpha.says(/was asked by another machine: recover|begins anew, without its memory/);
  await alpha.says(new RegExp(`${STARTS.source}|${JOINS.source}`));
  await cluster.untilLevel();
  expect(await countsAnew()).toEqual([100, 100]);
  // That is what clusters without journals advise.
  for (const { warnings } of cluster.hosts) {
    expect(warnings.filter((text) => text.includes('remove its memory'))).toEqual([]);
  }
  expect(await alpha.child.exitCode).toBeNull();
});

test('a host that was away while the cluster was recovered gives its memory up by itself', async () => {
  const [alpha, beta, gamma] = await cluster.startAll();
  await send(await cluster.connect(), 100);
  await gamma.end('SIGKILL');
  await cutPower(alpha, beta);
  await start('alpha', 'beta');
  const late = cluster.start('gamma');
  await late.says('the cluster was recovered without this host');
  await late.says(JOINS);
  await cluster.untilLevel();
  expect(await countsAnew()).toEqual([100, 100]);
});

test('if the coordinator ends in the middle, another host goes on', async () => {
  const hosts = await cluster.startAll();
  await send(await cluster.connect(), 100);
  await cutPower(...hosts);
  const again = NAMES.map((name) => cluster.start(name));
  // Usually the first one. But if it starts late, the others do not wait for it.
  const coordinates = ({ log }: HostProcess): boolean =>
    log.some(({ msg }) => msg === 'recovers the cluster from the journals of its hosts');
  await until(() => again.some(coordinates));
  const coordinator = again.find(coordinates)!;
  await cutPower(coordinator);
  for (const host of again) if (host !== coordinator) await host.says('runs its replicas');
  expect(await countsAnew()).toEqual([100, 100]);
});

test('hosts that were all killed resume with their memory; if they have lost it after an orderly stop, they recover', async () => {
  const hosts = await cluster.startAll();
  await send(await cluster.connect(), 100);
  await Promise.all(hosts.map((host) => host.end('SIGKILL')));
  const again = await start(...NAMES);
  await again[0].says('resumes with the memory that it left behind, in era 1');
  expect(await countsAnew()).toEqual([100, 100]);
  await Promise.all(again.map((host) => host.end('SIGTERM')));
  for (const name of NAMES) rmSync(cluster.memoryOf(name));
  await start(...NAMES);
  expect(await countsAnew()).toEqual([101, 101]);
});

test('with too few journals the hosts wait and say so, until an operator accepts the loss', async () => {
  const hosts = await cluster.startAll();
  await send(await cluster.connect(), 100);
  // After a power cut, alpha might be the one that lacks messages.
  await cluster.untilLevel();
  await Promise.all(hosts.map((host) => host.end('SIGTERM')));
  for (const name of NAMES) rmSync(cluster.memoryOf(name));
  for (const name of ['beta', 'gamma']) {
    rmSync(join(cluster.folder, 'journals', name), { recursive: true });
  }
  const [alpha, beta] = [cluster.start('alpha'), cluster.start('beta')];
  await alpha.says('beta has no journal of them: recovery needs the journals of 2 of the 3');
  expect((await cluster.look()).hosts.map(({ stage }) => stage)).toEqual([
    'waiting',
    'waiting',
    undefined,
  ]);
  expect(await cluster.tram('recover', cluster.config, '--accept-loss')).toMatchObject({ code: 0 });
  for (const host of [alpha, beta]) await host.says('runs its replicas');
  expect(await countsAnew()).toEqual([100, 100]);
});
