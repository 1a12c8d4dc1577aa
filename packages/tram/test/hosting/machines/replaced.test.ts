/**
 * A machine is replaced by one with another address, while the cluster runs. The old machine may come back at any time,
 * with the memory that it has kept: it must be of no effect.
 *
 * All machines are this one, so the file of a host's memory stands for its machine. A cluster name of its own in the
 * configuration gives the old machine its own file.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { StallMessage } from '../../../src/hosting/stall.js';
import { type Client, Cluster, decode, encode, errorOf } from '../../built.js';
import { until } from '../../cli/command-line.js';
import { type HostProcess, Loopback, NAMES, type Name } from '../../loopback.js';
import { needLibfabric } from '../../memory/fabric/present.js';

const NEW_ADDRESS = '127.0.0.9';
const GAMMA = NAMES.indexOf('gamma');

let cluster: Loopback;
/** As on the machine that is replaced: its memory has another path. */
let oldFile: string;
/** With the new address, and the next revision. */
let newFile: string;

beforeEach(async (context) => {
  needLibfabric(context);
  cluster = await Loopback.make();
  oldFile = join(cluster.folder, 'old.yaml');
  newFile = join(cluster.folder, 'new.yaml');
  writeFileSync(
    oldFile,
    readFileSync(cluster.config, 'utf8').replace(/^name: .*$/m, `name: ${oldName()}`),
  );
  cluster.writeConfig(newFile, [...cluster.addresses.slice(0, 2), NEW_ADDRESS], 'revision: 2\n');
});

afterEach(() => cluster.clearUp());

const oldName = (): string => `${cluster.name}-old`;
const oldMemory = (): string => `/dev/shm/tram-${oldName()}-gamma`;

/** What `gamma` leaves behind when its machine fails. */
async function fail(gamma: HostProcess): Promise<void> {
  await gamma.end('SIGKILL');
  renameSync(cluster.memoryOf('gamma'), oldMemory());
}

async function restart(host: HostProcess, file: string): Promise<HostProcess> {
  await host.end('SIGTERM');
  const next = cluster.start(host.name, file);
  await next.says('runs its replicas');
  await untilLed(file);
  return next;
}

/** Every group has a leader, also without gamma, and both others take part. */
async function untilLed(file: string): Promise<void> {
  await until(async () =>
    (await cluster.look(file)).groups.every(
      ({ leader, replicas }) =>
        leader !== undefined &&
        replicas
          .filter(({ host }) => host !== GAMMA)
          .every(({ role }) => role === 'leader' || role === 'follower'),
    ),
  );
}

async function send(client: Client, text: string): Promise<string[]> {
  const replies = await client.multicast([0, 1], encode(text));
  return [...replies.values()].map((reply) => decode(reply)!);
}

/** As the guide says. */
async function replace(): Promise<Record<Name, HostProcess>> {
  const [alpha, beta, gamma] = await cluster.startAll();
  const client = await cluster.connect();
  expect(await send(client, 'before')).toEqual(['1 before', '1 before']);
  await fail(gamma);
  const newAlpha = await restart(alpha, newFile);
  expect(await send(client, 'between')).toEqual(['2 between', '2 between']);
  const newBeta = await restart(beta, newFile);
  const newGamma = cluster.start('gamma', newFile);
  await newGamma.says('takes the place of an earlier host, with revision 2');
  await newGamma.says('has lost its memory, and recovers from its groups');
  await newGamma.says('runs its replicas');
  await cluster.untilLevel(newFile);
  // This client still has the old file: it goes on as long as alpha or beta leads.
  expect(await send(client, 'after')).toEqual(['3 after', '3 after']);
  await client.close();
  return { alpha: newAlpha, beta: newBeta, gamma: newGamma };
}

test('the new machine takes its place, and the old one is refused from then on', async () => {
  const hosts = await replace();
  const old = cluster.start('gamma', oldFile);
  await old.says('resumes with the memory that it left behind');
  await old.says("can't connect to alpha: it uses a later revision of the configuration");
  await old.says("can't connect to beta: it uses a later revision of the configuration");
  await hosts.alpha.says('was refused: it has an outdated revision of the configuration');

  // The new one is a full member: with it and alpha there is a majority.
  await hosts.beta.end('SIGKILL');
  const client = await cluster.connect(newFile);
  expect(await send(client, 'without beta')).toEqual(['4 without beta', '4 without beta']);
  // With the old one and alpha there is none: nothing is decided, and nobody leads.
  await hosts.gamma.end('SIGKILL');
  await expect(client.multicast([0, 1], encode('lost'), { timeoutMs: 3000 })).rejects.toMatchObject(
    { code: 'TRAM_OUTCOME_UNKNOWN', missingGroups: [0, 1] },
  );
  expect(old.log.filter(({ msg }) => msg.includes('leads its group'))).toEqual([]);
  expect(old.log.filter(({ msg }) => msg.includes('connected to'))).toEqual([]);

  // The others remember it: also a host that has restarted, and one that has lost its memory.
  const beta = cluster.start('beta', newFile);
  await beta.says('resumes with the memory');
  await beta.says('was refused: it has an outdated revision of the configuration');
  await cluster.start('gamma', newFile).says('resumes with the memory');
  await cluster.untilLevel(newFile);
  const [reply] = await send(client, 'all are back');
  expect(reply).toMatch(/^[56] all are back$/);
});

test('a client with the old file learns that it does not reach the new machine, which may lead', async () => {
  await replace();
  const attached = await Cluster.attach(newFile);
  attached.lead(0, GAMMA);
  await until(() => attached.status().groups[0].leader === GAMMA);
  await attached.close();

  const reason = /^g0 may be led by gamma, which can't be reached \(.+\)$/;
  const told: StallMessage[] = [];
  const tell = (message: unknown): void => void told.push(message as StallMessage);
  subscribe('tram:stalled', tell);
  const client = await cluster.connect();
  const error = await errorOf(client.multicast([0], encode('x'), { timeoutMs: 2500 }));
  unsubscribe('tram:stalled', tell);
  expect(error.code).toBe('TRAM_OUTCOME_UNKNOWN');
  expect(error.message).toContain("g0 may be led by gamma, which can't be reached");
  expect(error.hint).toContain('configuration file that the hosts have');
  expect(told[0]).toMatchObject({
    stalledGroups: [0],
    reason: expect.stringMatching(reason),
  });

  const sent = await cluster.nearby('send', '--to', '0', '--text', 'y', '--timeout-ms', '2500');
  expect(sent.code).toBe(4);
  expect(sent.stderr).toContain("waiting for g0: g0 may be led by gamma, which can't be reached");
  expect(sent.stderr).not.toContain('election');
  const { stdout } = await cluster.nearby('status');
  expect(stdout).toContain(
    "no leader in g0 can be reached from here: a host that can't be reached",
  );
  expect(stdout).not.toContain('election');
});

test('the new machine waits until all hosts have the new revision, and the old one can still come back', async () => {
  const [alpha, , gamma] = await cluster.startAll();
  const client = await cluster.connect();
  await fail(gamma);
  const newAlpha = await restart(alpha, newFile);
  const newGamma = cluster.start('gamma', newFile);
  await newGamma.says("can't connect to beta: it has an outdated revision of the configuration");
  await newGamma.says('waits for beta .*the first start with revision 2 needs all hosts');
  expect(newGamma.log.some(({ msg }) => msg === 'runs its replicas')).toBe(false);
  await newGamma.end('SIGTERM');

  const old = cluster.start('gamma', oldFile);
  await old.says('resumes with the memory');
  await until(() => old.log.some(({ msg }) => msg === 'connected to alpha'));
  await until(() => old.log.some(({ msg }) => msg === 'connected to beta'));
  await newAlpha.end('SIGKILL');
  expect((await send(client, 'with the old one')).length).toBe(2);
});

test('a host does not go back to an old revision, and an address does not change without a new one', async () => {
  const { alpha } = await replace();
  await alpha.end('SIGTERM');
  const back = await cluster.tram('host', 'alpha', '--config', cluster.config);
  expect(back.code).toBe(2);
  expect(back.stderr).toContain('has revision 1, but the cluster uses revision 2');
  // The same revision with another address of gamma.
  const wrong = join(cluster.folder, 'wrong.yaml');
  cluster.writeConfig(wrong, [...cluster.addresses.slice(0, 2), '127.0.0.10'], 'revision: 2\n');
  const mistaken = cluster.start('alpha', wrong);
  await mistaken.says(/other addresses of hosts under the same revision/);
  await mistaken.end('SIGKILL');
  copyFileSync(newFile, wrong);
  await cluster.start('alpha', wrong).says('runs its replicas');
  await cluster.untilLevel(newFile);
});
