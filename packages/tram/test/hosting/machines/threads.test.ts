/**
 * Machines with two threads each, as an operator runs them: `tram host` three times, on the loopback. Each thread is a host,
 * with one of two groups; the threads of a machine start and end together.
 */
import { once } from 'node:events';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, decode, encode } from '../../built.js';
import { until } from '../../cli/command-line.js';
import { freePorts } from '../../free-ports.js';
import { type HostProcess, Loopback, NAMES } from '../../loopback.js';
import { needLibfabric } from '../../memory/fabric/present.js';

const THREADS = 'threads: 2\n';

let cluster: Loopback;

beforeEach(async (context) => {
  needLibfabric(context);
  cluster = await Loopback.make();
  configure(THREADS);
});

afterEach(() => cluster.clearUp());

function configure(more: string): void {
  cluster.writeConfig(cluster.config, cluster.addresses, more);
  cluster.writeConfig(cluster.far, cluster.addresses, more, `${cluster.name}-far`);
}

/** How many messages the groups have had, this one included. */
async function count(client: Client): Promise<number[]> {
  const replies = await client.multicast([0, 1], encode('count'));
  return [...replies.values()].map((reply) => Number.parseInt(decode(reply)!, 10));
}

/** Both threads of a machine say it, so many times. */
async function bothSay(host: HostProcess, text: string, times = 1): Promise<void> {
  const said = (): number => host.log.filter(({ msg }) => msg.includes(text)).length;
  await until(() => said() >= 2 * times).catch((cause) => {
    const log = host.log.map(({ msg }) => msg).join('\n');
    throw new Error(`${host.name}: not both threads said ${text}:\n${log}`, { cause });
  });
}

async function startBoth(): Promise<HostProcess[]> {
  const hosts = NAMES.map((name) => cluster.start(name));
  for (const host of hosts) await bothSay(host, 'runs its replicas');
  await cluster.untilLevel();
  return hosts;
}

/** Its process ends, and the memory of its threads is gone. */
async function cutPower(...hosts: readonly HostProcess[]): Promise<void> {
  await Promise.all(hosts.map((host) => host.end('SIGKILL')));
  for (const { name } of hosts) {
    for (const host of [name, `${name}#1`]) rmSync(cluster.memoryOf(host), { force: true });
  }
}

async function exitCodeOf({ child }: HostProcess): Promise<number> {
  await until(() => child.exitCode !== null);
  return child.exitCode!;
}

test('each thread is a host of its own process, and runs its share of the groups', async () => {
  const hosts = await startBoth();
  const { hosts: seen, groups } = await cluster.look();
  expect(seen.map(({ name }) => name)).toEqual([
    ...['alpha', 'alpha#1', 'beta', 'beta#1', 'gamma', 'gamma#1'],
  ]);
  expect(seen.map(({ pid }) => pid)).toEqual(
    hosts.flatMap(({ child }) => [child.pid, child.pid] as number[]),
  );
  expect(groups.map(({ replicas }) => replicas.map(({ host }) => host))).toEqual([
    [0, 2, 4],
    [1, 3, 5],
  ]);
  const client = await cluster.connect();
  expect(await count(client)).toEqual([1, 1]);
  // Ended in order, they leave their state, and resume with it.
  for (const host of hosts) await host.end('SIGTERM');
  expect(hosts.map(({ child }) => child.exitCode)).toEqual([0, 0, 0]);
  expect(hosts.flatMap(({ warnings }) => warnings)).toEqual([]);
  const again = await startBoth();
  for (const host of again) await bothSay(host, 'resumes with the memory');
  expect(await count(await cluster.connect())).toEqual([2, 2]);
  // With another number of threads, it would not find what they have left.
  await again[0].end('SIGTERM');
  configure('');
  const single = await cluster.nearby('host', 'alpha');
  expect(single.code).toBe(2);
  expect(single.stderr).toContain('was left by a host of another configuration');
});

test('kill -9 of a machine ends all its threads; others take over, and it resumes', async () => {
  const [alpha] = await startBoth();
  const client = await cluster.connect();
  expect(await count(client)).toEqual([1, 1]);
  await alpha.end('SIGKILL');
  expect(await count(client)).toEqual([2, 2]);
  await until(
    async () => (await cluster.states()).filter((state) => state === 'down').length === 2,
  );
  await bothSay(cluster.start('alpha'), 'resumes with the memory');
  await cluster.untilLevel();
  expect(await count(client)).toEqual([3, 3]);
  // One that has lost its memory recovers both.
  await cutPower(cluster.hosts.at(-1)!);
  await bothSay(cluster.start('alpha'), 'has lost its memory');
  await cluster.untilLevel();
  expect(await count(client)).toEqual([4, 4]);
});

test('commands end and restart all hosts of a machine', async () => {
  await startBoth();
  expect(await count(await cluster.connect())).toEqual([1, 1]);
  const killed = await cluster.farAway('kill', 'g1/0');
  expect(killed.stdout).toMatch(
    /killed host alpha \(process \d+ on its machine\), which hosts g0\/0, g1\/0/,
  );
  await until(() => cluster.hosts[0].child.signalCode === 'SIGKILL');
  const started = await cluster.nearby('restart', 'g0/0');
  expect(started).toMatchObject({ code: 0, stderr: '' });
  expect(started.stdout).toMatch(/host alpha is up again.*\nrejoined after \d+ ms: g0\/0, g1\/0/);
  // As long as the others have not connected to it again, it keeps its memory, and the command says so.
  await until(async () => {
    const fresh = await cluster.nearby('restart', 'g1/0', '--fresh');
    expect(fresh.stderr).toMatch(/^$|too few other members were connected/);
    return fresh.stdout.includes('host alpha is up again, with empty memory');
  });

  // One of the threads is asked, and the process ends for both.
  await cluster.ask(3, 'restart');
  const [, beta] = cluster.hosts;
  expect(await exitCodeOf(beta)).toBe(5);
  expect(beta.log.filter(({ msg }) => msg.includes('has left the state'))).toHaveLength(2);

  const down = await cluster.nearby('down');
  expect(
    down.stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ')[1]),
  ).toEqual([...NAMES]);
  expect(cluster.memories().length).toBeGreaterThanOrEqual(6);
  await cluster.nearby('down', '--force');
  expect(cluster.memories()).toEqual([]);
});

test('a rolling restart takes each machine once', async () => {
  const hosts = NAMES.map((name) => cluster.start(name, cluster.config, '--respawn'));
  for (const host of hosts) await bothSay(host, 'runs its replicas');
  await cluster.untilLevel();
  const client = await cluster.connect();
  expect(await count(client)).toEqual([1, 1]);
  const restarted = await cluster.farAway('restart', '--all', '--json');
  expect(restarted.stderr).toBe('');
  const lines = restarted.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ name }) => name)).toEqual([...NAMES]);
  expect(lines.map(({ replicas }) => replicas.length)).toEqual([2, 2, 2]);
  expect(await count(client)).toEqual([2, 2]);
}, 60_000);

test('with journals, a power cut of all machines loses nothing', async () => {
  configure(`${THREADS}durability: always\njournal: journals\n`);
  const hosts = await startBoth();
  const client = await cluster.connect();
  for (let i = 0; i < 50; i++) await client.multicast([0, 1], encode('x'));
  expect(readdirSync(join(cluster.folder, 'journals')).sort()).toContain('alpha#1');
  await cutPower(...hosts);
  const [alpha] = await startBoth();
  await bothSay(alpha, 'starts with era 2');
  expect(await count(await cluster.connect())).toEqual([51, 51]);
  // Those of one machine give their memory up, each for itself or because it is asked to, and begin anew.
  await cutPower(...cluster.hosts.slice(-2));
  for (const name of ['beta', 'gamma'] as const) cluster.start(name);
  await bothSay(alpha, 'listens at', 2);
  await cluster.untilLevel();
  expect(await count(await cluster.connect())).toEqual([52, 52]);
  expect(alpha.child.exitCode).toBeNull();
}, 120_000);

test('a machine runs once, and ends if one of its ports is taken', async () => {
  const alpha = cluster.start('alpha');
  await alpha.says('waits for');
  const second = await cluster.nearby('host', 'alpha');
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(/host alpha(#1)? is already running, as process \d+/);
  await alpha.end('SIGTERM');
  expect(alpha.child.exitCode).toBe(0);

  const server = createServer().listen(cluster.port + 1, cluster.addresses[0]);
  await once(server, 'listening');
  const third = cluster.start('alpha');
  expect(await exitCodeOf(third)).toBe(1);
  await third.says(
    /^has failed, so all hosts of this machine end: .* another process uses that address/,
  );
  await once(server.close(), 'close');
  // Its other thread has left nothing behind.
  expect(cluster.memories()).toEqual([]);
});

test('a thread that vanishes ends the machine at once', async () => {
  writeFileSync(
    join(cluster.folder, 'service.mjs'),
    'export const deliver = ({ payload }) => {\n' +
      '  if (payload.length === 3) process.exit(7);\n  return payload;\n};\n',
  );
  const hosts = await startBoth();
  const client = await cluster.connect();
  await client.multicast([0, 1], encode('fine'));
  const lost = client.multicast([1], encode('die')).catch(() => undefined);
  // The third one can't deliver the message without the others.
  const ended = (): HostProcess[] => hosts.filter(({ child }) => child.exitCode !== null);
  await until(() => ended().length === 2);
  for (const host of ended()) {
    expect(host.child.exitCode).toBe(1);
    const why = `thread ${host.name}#1 ended: exit code 7`;
    expect(host.warnings).toContainEqual(`has failed, so all hosts of this machine end: ${why}`);
    expect(host.warnings).toContainEqual(why);
  }
  client.destroy();
  await lost;
});

test('one HTTP port tells of all threads', async () => {
  const [http] = await freePorts(1, NAMES.length - 1);
  const hosts = NAMES.map(
    (name, host) =>
      `  - { name: ${name}, address: ${cluster.addresses[host]}, port: ${cluster.port}, http: ${http + host} }\n`,
  );
  writeFileSync(
    cluster.config,
    `memory: machines\nname: ${cluster.name}\ngroups: 2\nclients: 4\nservice: ./service.mjs\n` +
      `secret: cluster.secret\n${THREADS}hosts:\n${hosts.join('')}`,
  );
  await startBoth();
  await until(async () => (await get(http, '/readyz')) === 'ready\n');
  const metrics = await get(http, '/metrics');
  expect(metrics.match(/^# TYPE tram_messages_total/gm)).toHaveLength(1);
  expect(metrics).toMatch(/tram_leads\{group="0",member="0"\}/);
  expect(metrics).toMatch(/tram_leads\{group="1",member="2"\}/);
  expect(metrics).toContain('tram_connected{host="beta#1",thread="0"} 1');
  expect(metrics).toContain('tram_connected{host="alpha",thread="1"} 1');
  expect(metrics).toMatch(/tram_network_calls_total\{call="write",thread="1"\} \d/);
});

function get(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ port, path, host: '127.0.0.1' }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve(text));
    })
      .on('error', reject)
      .end();
  });
}
