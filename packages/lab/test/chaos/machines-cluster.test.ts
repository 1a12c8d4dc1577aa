/** A cluster across machines under single network faults and crashes. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { History } from 'tram-multicast/check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pause, until } from '../../../tram/test/built.js';
import { needLibfabric } from '../../../tram/test/memory/fabric/present.js';
import type { Machine, Machines } from '../../chaos/namespaces.mjs';
import { hasMachines, needMachines } from './need-machines.js';

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

const GROUPS = 2;
const ANSWER_MS = 60_000;
let directory: string;
let complaints: string[];
let cluster: MachinesCluster | undefined;
let clients: Clients | undefined;

beforeEach((context) => {
  needMachines(context);
  needLibfabric(context);
  directory = mkdtempSync(join(tmpdir(), 'tram-machines-cluster-'));
  complaints = [];
});

afterEach(async () => {
  if (!hasMachines) return;
  await clients?.destroy();
  await cluster?.destroy();
  clients = undefined;
  cluster = undefined;
  rmSync(directory, { recursive: true, force: true });
});

/** A module of the runs, which use the built package. */
async function imported<T>(name: string): Promise<T> {
  return (await import(new URL(`../../chaos/${name}.mjs`, import.meta.url).href)) as T;
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

/** The health of one machine's host, requested from another machine. */
async function healthSeenFrom(from: Machine, { address }: Machine): Promise<string> {
  const script = `process.stdout.write(await (await fetch('http://${address}:7412/healthz')).text())`;
  const args = ['--input-type=module', '--eval', script];
  const child = from.spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return (await text(child.stdout!)).trim();
}

const groupOf = (group: number) => cluster!.status().groups[group];

async function caughtUp(): Promise<void> {
  const { untilCaughtUp } = await imported<{
    untilCaughtUp(cluster: MachinesCluster): Promise<void>;
  }>('clients');
  await untilCaughtUp(cluster!);
}

test('a leader that is cut off from its group, but not from clients, delivers nothing', {
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

  // Another member becomes the leader.
  await until(() => ![undefined, deposed].includes(groupOf(0).leader));
  const atSuccession = groupOf(0).replicas[deposed!].delivered;
  const furthest = () => Math.max(...groupOf(0).replicas.map(({ delivered }) => delivered));
  const target = furthest() + 100;
  // The group makes progress.
  await until(() => furthest() >= target);
  // The old leader delivers nothing more, though clients reach it.
  expect(groupOf(0).replicas[deposed!].delivered).toBe(atSuccession);
  expect(groupOf(0).leader).not.toBe(deposed);
  await until(() => cluster!.linesOf(host).some((line) => /to h\d.*(given up|broke)/.test(line)));
  expect(await healthSeenFrom(cluster!.home, hosts[host].machine)).toBe('ok');
  expect(groupOf(0).replicas[deposed!].delivered).toBe(atSuccession);

  // After the cut it follows the new leader.
  for (const { machine } of others) machines.heal(hosts[host].machine, machine);
  await until(() => groupOf(0).replicas[deposed!].role === 'follower');
  expect(groupOf(0).leader).not.toBe(deposed);
  await until(() => groupOf(0).replicas[deposed!].delivered >= target);
  await clients!.finish(ANSWER_MS);
  for (const { sent, answered } of clients!.finished) expect(answered).toBe(sent);
  expect(clients!.finished).toHaveLength(2);
  await caughtUp();
  expect([...complaints, ...cluster!.errors]).toEqual([]);
  await cluster!.close([]);
  const { checkVerdict, readHistory } = await imported<{
    checkVerdict(history: History, isComplete: boolean): string[];
    readHistory(path: string): Promise<History>;
  }>('verify');
  expect(checkVerdict(await readHistory(join(directory, 'trace')), true)).toEqual([]);
});

test('a host that lost its memory and is killed while it starts still knows of the loss', {
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

  // While the others are stopped, nobody can tell the host what it had promised.
  signalOthers('SIGSTOP');
  await cluster!.restart(HOST, { fresh: false });
  await until(() => own().every(({ hasPublished }) => hasPublished));
  await pause(500);
  expect(own().map(({ role }) => role)).toEqual(['recovering', 'recovering']);
  signalOthers('SIGCONT');
  await caughtUp();
  own().forEach(({ incarnation }, group) => {
    expect(incarnation).toBeGreaterThan(incarnations[group]);
  });
  expect(complaints).toEqual([]);
});
