/**
 * Hosts that come back with outdated memory or an outdated configuration file, in ways that an operator did not intend.
 * They must be of no effect: members would count promises that were made by another memory of the same host.
 *
 * As in `replaced.test.ts`, a cluster name of its own in the configuration gives a machine its own memory.
 */
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, decode, encode } from '../../built.js';
import { until } from '../../cli/command-line.js';
import { type HostProcess, Loopback, NAMES } from '../../loopback.js';
import { needLibfabric } from '../../memory/fabric/present.js';

const GAMMA = NAMES.indexOf('gamma');
const LATER_REVISION = "can't connect to alpha: it uses a later revision of the configuration";
const NEWER_MEMORY =
  '(alpha|beta) has seen newer memory of this host, and refuses this one. .*remove /dev/shm/';

let cluster: Loopback;

beforeEach(async (context) => {
  needLibfabric(context);
  cluster = await Loopback.make();
});

afterEach(() => cluster.clearUp());

/** @returns a configuration file with this address of gamma @param machine  whose memory is not that of others */
function fileFor(gamma: string, revision: number, machine = ''): string {
  const file = join(cluster.folder, `${gamma}-${revision}${machine}.yaml`);
  const addresses = [...cluster.addresses.slice(0, 2), gamma];
  cluster.writeConfig(file, addresses, `revision: ${revision}\n`, `${cluster.name}${machine}`);
  return file;
}

/** Its machine fails. The memory stays there, and is found by who uses the name of that machine. */
async function fail(gamma: HostProcess, machine: string): Promise<void> {
  await gamma.end('SIGKILL');
  renameSync(cluster.memoryOf('gamma'), `/dev/shm/tram-${cluster.name}${machine}-gamma`);
}

async function run(...hosts: HostProcess[]): Promise<void> {
  for (const host of hosts) await host.says('runs its replicas');
}

/** Gives alpha and beta another configuration file, one after the other. */
async function roll(hosts: readonly HostProcess[], file: string): Promise<HostProcess[]> {
  const next: HostProcess[] = [];
  for (const host of hosts) {
    await host.end('SIGTERM');
    next.push(cluster.start(host.name, file));
    await run(next.at(-1)!);
    await until(async () =>
      (await cluster.look(file)).groups.every(
        ({ leader, replicas }) =>
          leader !== undefined &&
          replicas.every(
            ({ host, role }) => host === GAMMA || role === 'leader' || role === 'follower',
          ),
      ),
    );
  }
  return next;
}

async function send(client: Client, text: string): Promise<string[]> {
  const replies = await client.multicast([0, 1], encode(text));
  return [...replies.values()].map((reply) => decode(reply)!);
}

const count = ({ log }: HostProcess, text: RegExp): number =>
  log.filter(({ msg }) => text.test(msg)).length;

test('a host that reaches another one than it means does not take it for that', async () => {
  const [alpha, beta, gamma] = await cluster.startAll();
  const swapped = join(cluster.folder, 'swapped.yaml');
  const [first, , third] = cluster.addresses;
  cluster.writeConfig(swapped, ['127.0.0.9', first, third], 'revision: 2\n');
  await alpha.end('SIGTERM');
  await beta.end('SIGTERM');
  const before = count(gamma, /^connected to alpha/);
  await run(cluster.start('beta', swapped));
  await gamma.says(/can't connect to alpha: it has another secret, or is another host/);
  expect(count(gamma, /^connected to alpha/)).toBe(before);
});

test('a machine that was replaced when all others had lost their memory has no effect', async () => {
  const [alpha, beta, gamma] = await cluster.startAll();
  await fail(gamma, '-old');
  for (const host of [alpha, beta]) {
    await host.end('SIGKILL');
    rmSync(cluster.memoryOf(host.name));
  }
  const file = fileFor('127.0.0.9', 2);
  await run(...NAMES.map((name) => cluster.start(name, file)));
  await cluster.untilLevel(file);
  const client = await cluster.connect(file);
  expect(await send(client, 'a')).toEqual(['1 a', '1 a']);
  const old = cluster.start('gamma', fileFor(cluster.addresses[GAMMA], 1, '-old'));
  await old.says(LATER_REVISION);
  expect(count(old, /^connected to/)).toBe(0);
  expect(await send(client, 'b')).toEqual(['2 b', '2 b']);
});

test('a new machine with an old file does not disturb a cluster that began with a later one', async () => {
  const file = fileFor('127.0.0.9', 2);
  const hosts = NAMES.map((name) => cluster.start(name, file));
  await run(...hosts);
  await cluster.untilLevel(file);
  const breaks = (): number[] => hosts.map((host) => count(host, /broke|given up|has closed/));
  const before = breaks();
  const late = cluster.start('gamma', fileFor(cluster.addresses[GAMMA], 1, '-old'));
  await late.says(LATER_REVISION);
  expect(breaks()).toEqual(before);
});

test('a new machine does not take the place of the old one while that runs', async () => {
  const [alpha, beta, gamma] = await cluster.startAll();
  const file = fileFor('127.0.0.9', 2);
  await roll([alpha, beta], file);
  const next = cluster.start('gamma', fileFor('127.0.0.9', 2, '-new'));
  await next.says("can't connect to alpha: another process runs as this host");
  expect(count(next, /^connected to/)).toBe(0);
  await gamma.end('SIGTERM');
  await run(next);
  await cluster.untilLevel(file);
});

test('memory from before an address changed under the same revision is refused', async () => {
  const [alpha, beta, gamma] = await cluster.startAll();
  await fail(gamma, '-first');
  const second = fileFor('127.0.0.9', 2);
  const others = await roll([alpha, beta], second);
  const replacement = cluster.start('gamma', second);
  await run(replacement);
  await cluster.untilLevel(second);
  await fail(replacement, '-second');
  for (const host of others) await host.end('SIGTERM');
  const mistaken = fileFor('127.0.0.10', 2);
  await run(...others.map(({ name }) => cluster.start(name, mistaken)));
  await run(cluster.start('gamma', mistaken));
  await cluster.untilLevel(mistaken);
  await roll(cluster.hosts.slice(-3, -1), fileFor('127.0.0.10', 3));
  const back = cluster.start('gamma', fileFor('127.0.0.9', 2, '-second'));
  await back.says(NEWER_MEMORY);
  expect(count(back, /^connected to/)).toBe(0);
});

test('memory that is not the latest one of a host is refused', async () => {
  const [, , gamma] = await cluster.startAll();
  await gamma.end('SIGTERM');
  const other = cluster.start('gamma', fileFor(cluster.addresses[GAMMA], 1, '-other'));
  await other.says('has lost its memory');
  await run(other);
  await cluster.untilLevel();
  await other.end('SIGKILL');
  const back = cluster.start('gamma');
  await back.says(NEWER_MEMORY);
  expect(count(back, /^connected to/)).toBe(0);
});

test('the first host, which calls no other, also says that its memory is not the latest', async () => {
  const [alpha] = await cluster.startAll();
  await alpha.end('SIGTERM');
  const other = cluster.start('alpha', fileFor(cluster.addresses[GAMMA], 1, '-other'));
  await run(other);
  await cluster.untilLevel();
  await other.end('SIGKILL');
  const back = cluster.start('alpha');
  await back.says(/^(beta|gamma) has seen newer memory of this host/);
  expect(count(back, /^connected to/)).toBe(0);
});
