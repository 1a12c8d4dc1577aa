/** Machines made of network namespaces, with real connections between them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../../tram/test/built.js';
import { type Machine, Machines } from '../../chaos/namespaces.mjs';
import { hasMachines, needMachines } from './need-machines.js';

const PORT = 7000;
const DELAY_MS = 100;
const scriptOf = (name: string): string => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
let machines: Machines;
let owners: ChildProcess[];

beforeEach((context) => {
  needMachines(context);
  owners = [];
  machines = Machines.create(3);
});

afterEach(() => {
  if (!hasMachines) return;
  machines.close();
  for (const owner of owners) owner.kill('SIGKILL');
  expect(remainsOf(machines.namespaces)).toEqual([]);
});

/** The directory that `ip netns list` lists. */
function remainsOf(namespaces: readonly string[]): string[] {
  if (!existsSync('/run/netns')) return [];
  return readdirSync('/run/netns').filter((name) => namespaces.includes(name));
}

/** A program on a machine, and the events that it reports. */
class Program {
  readonly events: string[] = [];
  readonly child: ChildProcess;
  private done = 0;

  constructor(readonly machine: Machine) {
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const;
    const args = [scriptOf('namespaces-program'), String(PORT)];
    this.child = machine.spawn(process.execPath, args, { stdio: [...stdio] });
    this.child.on('message', (event) => {
      if (event === 'done') this.done++;
      else this.events.push(String(event));
    });
  }

  static async startAll(): Promise<Program[]> {
    const programs = machines.all.map((machine) => new Program(machine));
    await Promise.all(programs.map((program) => program.sees('listening')));
    return programs;
  }

  /** Resolves when the program has reported an event. */
  sees(event: string): Promise<void> {
    return until(() => this.events.includes(event));
  }

  /** Sends a datagram, which is never retransmitted. */
  async send(to: Program, text: string): Promise<void> {
    await this.tell({ what: 'send', to: to.machine.address, text });
  }

  /** Writes to all connections of the program. */
  async write(text: string): Promise<void> {
    await this.tell({ what: 'write', text });
  }

  async startConnecting(to: Program): Promise<void> {
    await this.tell({ what: 'connect', to: to.machine.address });
  }

  async connect(to: Program): Promise<void> {
    await this.startConnecting(to);
    await this.sees('connected');
  }

  private async tell(message: object): Promise<void> {
    const target = this.done + 1;
    this.child.send(message);
    await until(() => this.done === target);
  }

  heard(kind: string): string[] {
    return this.events.filter((event) => event.startsWith(kind));
  }

  get troubles(): string[] {
    return this.events.filter((event) => event.startsWith('error') || event === 'closed');
  }
}

test('all machines reach each other', async () => {
  const [a, b, c] = (await Program.startAll()) as [Program, Program, Program];
  await a.connect(b);
  await a.write('from a');
  await b.sees('tcp: from a');
  await b.write('from b');
  await a.sees('tcp: from b');
  await b.send(c, 'from b');
  await c.sees('udp: from b');
  expect(new Set(machines.all.map(({ address }) => address)).size).toBe(3);
});

describe('a cut', () => {
  test('in one direction does not affect the other', async () => {
    const [a, b] = (await Program.startAll()) as [Program, Program];
    await a.connect(b);
    machines.cutOneWay(a.machine, b.machine);
    await a.send(b, 'lost');
    await b.send(a, 'back');
    await a.sees('udp: back');
    // Acknowledgements are lost, the data arrives.
    await b.write('unacknowledged');
    await a.sees('tcp: unacknowledged');
    await a.write('late');
    expect(b.heard('tcp')).toEqual([]);
    machines.healOneWay(a.machine, b.machine);
    await b.sees('tcp: late');
    await a.send(b, 'again');
    await b.sees('udp: again');
    expect(b.heard('udp')).toEqual(['udp: again']);
    expect([...a.troubles, ...b.troubles]).toEqual([]);
  });

  test('between two machines does not affect the third, and connections survive it', async () => {
    const [a, b, c] = (await Program.startAll()) as [Program, Program, Program];
    await a.connect(b);
    machines.cut(a.machine, b.machine);
    await a.send(b, 'lost');
    await b.send(a, 'lost');
    await a.write('late');
    for (const from of [a, b]) await from.send(c, `from ${from.machine.name}`);
    for (const to of [a, b]) await c.send(to, 'from m2');
    for (const { name } of [a.machine, b.machine]) await c.sees(`udp: from ${name}`);
    for (const to of [a, b]) await to.sees('udp: from m2');
    expect(b.heard('tcp')).toEqual([]);
    machines.heal(a.machine, b.machine);
    await b.sees('tcp: late');
    for (const program of [a, b]) expect(program.heard('udp')).toEqual(['udp: from m2']);
    expect([...a.troubles, ...b.troubles]).toEqual([]);
  });

  test('of one machine is silent: connecting neither fails nor succeeds', async () => {
    const [a, b, c] = (await Program.startAll()) as [Program, Program, Program];
    machines.cut(a.machine);
    await a.startConnecting(b);
    await c.startConnecting(a);
    await a.send(c, 'lost');
    await b.send(a, 'lost');
    await b.send(c, 'between others');
    await c.sees('udp: between others');
    expect([a, c].flatMap(({ events }) => events)).not.toContain('connected');
    machines.heal(a.machine);
    await a.sees('connected');
    await c.sees('connected');
    expect(c.heard('udp')).toEqual(['udp: between others']);
    expect(a.heard('udp')).toEqual([]);
    expect([a, b, c].flatMap(({ troubles }) => troubles)).toEqual([]);
  });

  test('is healed together with all other faults', async () => {
    const [a, b, c] = (await Program.startAll()) as [Program, Program, Program];
    machines.cut(a.machine);
    machines.cut(a.machine, b.machine);
    machines.cutOneWay(b.machine, c.machine);
    if (machines.canDelay) machines.delay(c.machine, { lossPercent: 100 });
    for (const from of [a, b, c]) {
      for (const to of [a, b, c]) if (from !== to && from !== c) await from.send(to, 'lost');
    }
    machines.heal();
    for (const from of [a, b, c]) {
      for (const to of [a, b, c]) if (from !== to) await from.send(to, from.machine.name);
    }
    for (const program of [a, b, c]) {
      const others = ['m0', 'm1', 'm2'].filter((name) => name !== program.machine.name);
      for (const other of others) await program.sees(`udp: ${other}`);
      expect(program.heard('udp').sort()).toEqual(others.map((other) => `udp: ${other}`));
    }
  });
});

test('a delay delays packets, and a loss drops them', async (context) => {
  context.skip(!machines.canDelay, 'the kernel has no netem');
  const [a, b] = (await Program.startAll()) as [Program, Program];
  machines.delay(b.machine, { ms: DELAY_MS });
  const startedMs = performance.now();
  await a.send(b, 'slow');
  await b.sees('udp: slow');
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(DELAY_MS);
  machines.endDelay(b.machine);
  machines.delay(b.machine, { lossPercent: 100 });
  await a.send(b, 'lost');
  machines.endDelay(b.machine);
  await a.send(b, 'fast');
  await b.sees('udp: fast');
  expect(b.heard('udp')).toEqual(['udp: slow', 'udp: fast']);
});

test('without netem a delay is an error that names the module', (context) => {
  context.skip(machines.canDelay, 'the kernel has netem');
  expect(() => machines.delay(machines.all[0], { ms: DELAY_MS })).toThrow('sch_netem');
});

test('signals reach the program', async () => {
  const [a, b] = (await Program.startAll()) as [Program, Program];
  const pid = a.child.pid!;
  expect(readlinkSync(`/proc/${pid}/exe`)).toBe(realpathSync(process.execPath));
  expect(a.machine.pids()).toEqual([pid]);
  a.child.kill('SIGSTOP');
  await until(() => stateOf(pid) === 'T');
  await b.send(a, 'while it stops');
  a.child.kill('SIGCONT');
  await a.sees('udp: while it stops');
  a.child.kill('SIGKILL');
  expect(await once(a.child, 'exit')).toEqual([null, 'SIGKILL']);
  expect(a.machine.pids()).toEqual([]);
});

/** The state letter of a process in /proc; nothing if it does not exist. */
function stateOf(pid: number): string | undefined {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

describe('namespaces are removed', () => {
  // A prefix of its own: creating the machines of other tests would remove these left-overs.
  const prefix = 'tramtest';
  const hasEnded = (pid: number) => [undefined, 'Z'].includes(stateOf(pid));

  async function startOwner() {
    const owner = fork(scriptOf('namespaces-owner'), [prefix]);
    owners.push(owner);
    const [{ namespaces, pid }] = await once(owner, 'message');
    expect(remainsOf(namespaces)).toHaveLength(3);
    return { owner, namespaces: namespaces as string[], pid: pid as number };
  }

  test('by close, with all processes', async () => {
    const [a] = (await Program.startAll()) as [Program];
    const exit = once(a.child, 'exit');
    expect(remainsOf(machines.namespaces)).toHaveLength(4);
    machines.close();
    expect(remainsOf(machines.namespaces)).toEqual([]);
    expect(await exit).toEqual([null, 'SIGKILL']);
    machines.close();
  });

  test('when the process that made them exits', async () => {
    const { owner, namespaces, pid } = await startOwner();
    owner.send('exit');
    expect(await once(owner, 'exit')).toEqual([0, null]);
    expect(remainsOf(namespaces)).toEqual([]);
    await until(() => hasEnded(pid));
  });

  test('by the next run if the process that made them was killed, and only then', async () => {
    const killed = await startOwner();
    const living = await startOwner();
    killed.owner.kill('SIGKILL');
    await once(killed.owner, 'exit');
    Machines.create(1, { prefix }).close();
    expect(remainsOf(killed.namespaces)).toEqual([]);
    await until(() => hasEnded(killed.pid));
    expect(remainsOf(living.namespaces)).toHaveLength(3);
    living.owner.send('exit');
    await once(living.owner, 'exit');
  });
});
