/**
 * Chaos across machines, in short: `npm run chaos -- --memory machines` has the long forms. On a build machine that is run by
 * root machines must be possible (`.ci/setup` installs what they need); elsewhere these tests are skipped, with the reason.
 */
import { type ChildProcess, execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { History } from 'tram-multicast/check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pause, projectDirectory, until } from '../../../tram/test/built.js';
import { needLibfabric } from '../../../tram/test/memory/fabric/present.js';
import { type Machine, Machines } from '../../chaos/namespaces.mjs';

interface Replica {
  readonly member: number;
  readonly host: number;
  readonly role: string;
  readonly delivered: number;
  readonly incarnation: number;
  readonly hasPublished: boolean;
}

interface MachinesCluster {
  readonly address: string;
  readonly machines: Machines;
  readonly home: Machine;
  readonly hosts: readonly { machine: Machine; memory: string; child: ChildProcess }[];
  readonly startClient: unknown;
  status(): { groups: { leader: number | undefined; ballot: string; replicas: Replica[] }[] };
  startHost(host: number): Promise<void>;
  crash(host: number): Promise<void>;
  restart(host: number, how: { fresh: boolean }): Promise<void>;
  linesOf(host: number): string[];
  readonly errors: string[];
  close(crashedClients: string[]): Promise<void>;
  destroy(): Promise<void>;
}

interface Clients {
  readonly finished: { sent: number; answered: number }[];
  readonly crashed: string[];
  start(): Promise<unknown>;
  finish(timeoutMs: number): Promise<void>;
  destroy(): Promise<void>;
}

const execute = promisify(execFile);
const reason = Machines.missing();
const GROUPS = 2;
const ANSWER_MS = 60_000;
let directory: string;
let complaints: string[];
let cluster: MachinesCluster | undefined;
let clients: Clients | undefined;

if (reason !== undefined) console.warn(reason);

beforeEach((context) => {
  if (reason !== undefined && process.getuid?.() === 0 && process.env['CI']) {
    throw new Error(reason);
  }
  context.skip(reason !== undefined, reason);
  needLibfabric(context);
  directory = mkdtempSync(join(tmpdir(), 'tram-chaos-hosts-'));
  complaints = [];
});

afterEach(async () => {
  if (reason !== undefined) return;
  await clients?.destroy();
  await cluster?.destroy();
  clients = undefined;
  cluster = undefined;
  rmSync(directory, { recursive: true, force: true });
});

/** As those of the built package, which the runs use. */
async function imported<T>(name: string): Promise<T> {
  return (await import(new URL(`../../chaos/${name}.mjs`, import.meta.url).href)) as T;
}

async function chaos(options: string) {
  const script = join(projectDirectory, 'packages/lab/chaos/main.mjs');
  const args = [script, '--memory', 'machines', '--json', ...options.split(' ')];
  const run = execute(process.execPath, args);
  // If a check fails the command ends with an error, and says how to repeat it.
  const { stdout, stderr } = await run.catch((error) => error as Awaited<typeof run>);
  const { rounds } = stdout === '' ? { rounds: [{ complaints: [stderr] }] } : JSON.parse(stdout);
  expect(rounds[0].complaints, stderr).toEqual([]);
  return rounds[0];
}

async function startCluster(name: string): Promise<MachinesCluster> {
  const { MachinesCluster: Built } = await imported<{
    MachinesCluster: { start(options: object, events: object): Promise<MachinesCluster> };
  }>('machines-cluster');
  cluster = await Built.start(
    {
      directory,
      name: `test-${process.pid}-${name}`,
      hosts: 3,
      trace: join(directory, 'trace'),
      cluster: {
        groups: GROUPS,
        replicas: 3,
        suspectAfterMs: 300,
        payloadBytesMax: 512,
        clients: 12,
      },
    },
    { log: () => undefined, complain: (complaint: string) => complaints.push(complaint) },
  );
  return cluster;
}

async function startClients(count: number): Promise<Clients> {
  const { Clients: Built } = await imported<{
    Clients: new (...settings: unknown[]) => Clients;
  }>('clients');
  const settingsOf = (name: string, seed: number) => ({
    name,
    seed,
    groups: GROUPS,
    window: 8,
    rate: 100,
    records: join(directory, `records-${name}`),
  });
  const complain = (complaint: string) => complaints.push(complaint);
  clients = new Built(cluster!.address, settingsOf, complain, cluster!.startClient);
  await Promise.all(Array.from({ length: count }, () => clients!.start()));
  return clients;
}

/** Of one machine, asked for by another. */
async function healthSeenFrom(from: Machine, { address }: Machine): Promise<string> {
  const script = `process.stdout.write(await (await fetch('http://${address}:7412/healthz')).text())`;
  const args = ['--input-type=module', '--eval', script];
  const child = from.spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return (await text(child.stdout!)).trim();
}

const groupOf = (group: number) => cluster!.status().groups[group];
const isLevel = () =>
  cluster!
    .status()
    .groups.every(({ replicas }) =>
      replicas.every(
        ({ role, delivered }) => role !== 'recovering' && delivered === replicas[0].delivered,
      ),
    );

test('a short run with most kinds of faults', { timeout: 240_000 }, async () => {
  const round = await chaos('--seed 4 --trees base --faults 14 --seconds 5 --clients 3');
  expect(Object.keys(round.faults).length).toBeGreaterThan(10);
  expect(round.acknowledged).toBeGreaterThan(0);
  expect(round.audits).toBeGreaterThan(0);
});

test('strangers at all ports are not noticed', { timeout: 120_000 }, async () => {
  const round = await chaos('--seed 4 --strangers 5 --seconds 5 --clients 3');
  expect(round.acknowledged).toBeGreaterThan(0);
  expect(round.strangers.refusals.wrongProof).toBeGreaterThan(0);
});

test('a leader that is cut off from its group, but not from clients, can get nothing delivered', {
  timeout: 120_000,
}, async () => {
  await startCluster('cut');
  await startClients(2);
  await until(() => groupOf(0).replicas.every(({ delivered }) => delivered > 0));
  const { leader: deposed, replicas } = groupOf(0);
  const host = replicas[deposed!].host;
  const { machines, hosts } = cluster!;
  const others = hosts.filter((_, other) => other !== host);
  for (const { machine } of others) machines.cut(hosts[host].machine, machine);

  // Another one leads,
  await until(() => ![undefined, deposed].includes(groupOf(0).leader));
  const atSuccession = groupOf(0).replicas[deposed!].delivered;
  const furthest = () => Math.max(...groupOf(0).replicas.map(({ delivered }) => delivered));
  const target = furthest() + 100;
  // and the group goes on,
  await until(() => furthest() >= target);
  // while the one that was cut off has clients, and nothing to show for it.
  expect(groupOf(0).replicas[deposed!].delivered).toBe(atSuccession);
  expect(groupOf(0).leader).not.toBe(deposed);
  await until(() => cluster!.linesOf(host).some((line) => /to h\d.*(given up|broke)/.test(line)));
  expect(await healthSeenFrom(cluster!.home, hosts[host].machine)).toBe('ok');
  expect(groupOf(0).replicas[deposed!].delivered).toBe(atSuccession);

  // Once it is back it follows.
  for (const { machine } of others) machines.heal(hosts[host].machine, machine);
  await until(() => groupOf(0).replicas[deposed!].role === 'follower');
  expect(groupOf(0).leader).not.toBe(deposed);
  await until(() => groupOf(0).replicas[deposed!].delivered >= target);
  await clients!.finish(ANSWER_MS);
  for (const { sent, answered } of clients!.finished) expect(answered).toBe(sent);
  expect(clients!.finished).toHaveLength(2);
  await until(isLevel);
  expect([...complaints, ...cluster!.errors]).toEqual([]);
  await cluster!.close([]);
  const { checkVerdict, readHistory } = await imported<{
    checkVerdict(history: History, isComplete: boolean): string[];
    readHistory(path: string): Promise<History>;
  }>('verify');
  expect(checkVerdict(await readHistory(join(directory, 'trace')), true)).toEqual([]);
});

test('a host that lost its memory and is killed while it starts still knows that it has lost it', {
  timeout: 120_000,
}, async () => {
  await startCluster('lost');
  const HOST = 2;
  const others = cluster!.hosts.filter((_, host) => host !== HOST);
  const own = () =>
    cluster!.status().groups.map(({ replicas }) => replicas.find(({ host }) => host === HOST)!);
  const incarnations = own().map(({ incarnation }) => incarnation);
  const signalOthers = (signal: NodeJS.Signals) => {
    for (const { child } of others) child.kill(signal);
  };

  await cluster!.crash(HOST);
  const start = cluster!.restart(HOST, { fresh: true });
  const failure = expect(start).rejects.toThrow('ended while it started');
  await until(() => cluster!.linesOf(HOST).some((line) => line.includes('lost its memory')));
  await cluster!.crash(HOST);
  await failure;

  // Nobody can tell it now what it had promised.
  signalOthers('SIGSTOP');
  await cluster!.restart(HOST, { fresh: false });
  await until(() => own().every(({ hasPublished }) => hasPublished));
  await pause(500);
  expect(own().map(({ role }) => role)).toEqual(['recovering', 'recovering']);
  signalOthers('SIGCONT');
  await until(isLevel);
  own().forEach(({ incarnation }, group) => {
    expect(incarnation).toBeGreaterThan(incarnations[group]);
  });
  expect(complaints).toEqual([]);
});
