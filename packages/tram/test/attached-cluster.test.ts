/** A cluster that others run, as `Cluster.attach` shows it: on processes, across machines, and on threads. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ARENA } from '../src/memory/arena.js';
import {
  type AttachedCluster,
  Client,
  Cluster,
  decode,
  encode,
  keeping,
  projectDirectory,
  until,
} from './built.js';
import { useCommandLine } from './cli/command-line.js';
import { Loopback } from './loopback.js';
import { needLibfabric } from './memory/fabric/present.js';

const line = useCommandLine();
const attachments: AttachedCluster[] = [];

afterEach(async () => {
  for (const attached of attachments.splice(0)) await attached.close();
});

async function attach(...[address]: Parameters<typeof Cluster.attach>): Promise<AttachedCluster> {
  const attached = await Cluster.attach(address);
  attachments.push(attached);
  return attached;
}

/** Sends a text to group 1, and returns the reply. */
async function replyTo(text: string, attached: AttachedCluster): Promise<string | undefined> {
  const client = await attached.connect();
  const replies = await client.multicast([1], encode(text));
  await client.close();
  return decode(replies.get(1));
}

/** What the next message that group 1 delivers says. */
async function nextText(attached: AttachedCluster): Promise<string | undefined> {
  for await (const { payload } of attached.deliveries({ group: 1 })) return decode(payload);
  return undefined;
}

function statesOf(attached: AttachedCluster): string[] {
  return attached.status().hosts.map(({ state }) => state);
}

async function untilLeads(attached: AttachedCluster, member: number): Promise<void> {
  await until(() => {
    if (attached.status().groups[1].leader === member) return true;
    attached.lead(1, member);
    return false;
  });
}

describe('on processes', () => {
  beforeEach(async () => {
    await line.up('--service', line.service);
  });

  test('it is seen and used by its name, and goes on when the object is closed', async () => {
    const attached = await attach(line.name);
    expect(attached.status()).toMatchObject({ state: 'running', memory: 'processes' });
    expect(statesOf(attached)).toEqual(['up', 'up', 'up']);
    const text = nextText(attached);
    expect(await replyTo('a', attached)).toBe('1 a');
    expect(await text).toBe('a');
    await untilLeads(attached, 2);
    const client = await attached.connect();
    await attached.close();
    await expect(client.multicast([1], encode('b'))).rejects.toMatchObject({ code: 'TRAM_CLOSED' });
    expect(() => attached.status()).toThrow('closed');
    expect(await replyTo('b', await attach(line.name))).toBe('2 b');
  });

  test('a host crashes, stops and restarts', async () => {
    const attached = await attach(line.name);
    expect(await replyTo('a', attached)).toBe('1 a');
    await attached.crash(2);
    expect(statesOf(attached)).toEqual(['up', 'up', 'down']);
    await attached.restart(2);
    const before = attached.status().hosts[1].pid;
    // One that runs ends first.
    await attached.restart(1);
    expect(attached.status().hosts[1].pid).not.toBe(before);
    await attached.stop(1);
    expect(statesOf(attached)).toEqual(['up', 'down', 'up']);
    await expect(attached.restart(2, { fresh: true })).rejects.toMatchObject({
      code: 'TRAM_LAST_COPY',
    });
    await attached.restart(1, { fresh: true });
    expect(statesOf(attached)).toEqual(['up', 'up', 'up']);
    await untilLeads(attached, 1);
    expect(await replyTo('b', attached)).toBe('2 b');
  });

  test('of two programs that restart a host afresh at once, one is refused', async () => {
    const [one, other] = [await attach(line.name), await attach(line.name)];
    expect(await replyTo('a', one)).toBe('1 a');
    const outcomes = await Promise.allSettled([
      one.restart(0, { fresh: true }),
      other.restart(1, { fresh: true }),
    ]);
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject([{ reason: { code: 'TRAM_LAST_COPY' } }]);
    expect(await replyTo('b', one)).toBe('2 b');
  });

  test('a host that was crashed or stopped stays down, although a starter watches over it', async () => {
    const attached = await attach(line.name);
    await attached.crash(2);
    await attached.stop(1);
    // The starter restarts a host that ends unexpectedly, so it has looked at the others too.
    const { pid } = attached.status().hosts[0];
    process.kill(pid, 'SIGKILL');
    await until(() => {
      const [{ state, pid: next }] = attached.status().hosts;
      return state === 'up' && next !== pid;
    });
    expect(statesOf(attached)).toEqual(['up', 'down', 'down']);
  });

  test('a host that is stopped hands its leaderships over first', async () => {
    const attached = await attach(line.name);
    await untilLeads(attached, 1);
    const { host } = attached.status().groups[1].replicas[1];
    await attached.stop(host);
    const { groups } = attached.status();
    expect(groups.map(({ leader, replicas }) => replicas[leader!].host)).not.toContain(host);
  });

  test('a crash that costs groups their majority is warned of', async () => {
    const { logger, warnings } = keeping();
    const attached = await Cluster.attach(line.name, { logger });
    attachments.push(attached);
    await attached.crash(2);
    expect(warnings).toEqual([]);
    await attached.crash(1);
    expect(warnings).toEqual([
      expect.stringMatching(/^the crash of host 1 costs g0, g1, g2 their majority/),
    ]);
  });

  test('all hosts are restarted in turn, until a signal', async () => {
    const controller = new AbortController();
    const { logger, infos } = keeping();
    const info = (text: string): void => {
      logger.info(text);
      if (infos.length === 4) controller.abort();
    };
    const attached = await Cluster.attach(line.name, { logger: { ...logger, info } });
    attachments.push(attached);
    expect(await replyTo('a', attached)).toBe('1 a');
    await attached.rollingRestart();
    expect(infos).toEqual([0, 1, 2].map((host) => `host ${host} was restarted`));
    const { signal } = controller;
    await expect(attached.rollingRestart({ signal })).rejects.toMatchObject({
      code: 'TRAM_ABORTED',
      message: expect.stringMatching(/\(restarted: 0; not: 1, 2\)$/),
    });
    expect(await replyTo('b', attached)).toBe('2 b');
  });

  test('a restart that takes too long says so', async () => {
    const attached = await attach(line.name);
    await expect(attached.restart(1, { timeoutMs: 1 })).rejects.toMatchObject({
      code: 'TRAM_START_FAILED',
    });
    await attached.restart(1);
  });

  test('it is shut down for all its users', async () => {
    const attached = await attach(line.name);
    const other = await attach(line.name);
    const text = nextText(other);
    await attached.shutDown();
    expect(line.remains()).toEqual([]);
    expect(other.status().state).toBe('closing');
    expect(await text).toBeUndefined();
    await expect(other.connect()).rejects.toMatchObject({ code: 'TRAM_CLOSED' });
    await expect(Cluster.attach(line.name)).rejects.toMatchObject({ code: 'TRAM_NOT_FOUND' });
    expect(() => attached.status()).toThrow('closed');
  });

  test('it is shut down by force although a message can not be answered', async () => {
    const attached = await attach(line.name);
    const client = await attached.connect();
    await attached.crash(0);
    await attached.crash(1);
    await attached.crash(2);
    const unanswered = client.multicast([1], encode('a'));
    const outcome = expect(unanswered).rejects.toMatchObject({ code: 'TRAM_OUTCOME_UNKNOWN' });
    await attached.shutDown({ force: true });
    await outcome;
    expect(line.remains()).toEqual([]);
  });

  test('it is seen, and its hosts come back, although all have ended', async () => {
    await line.killAll();
    const attached = await attach(line.name);
    // The kernel releases the locks of a process a moment after its end.
    await until(() => statesOf(attached).every((state) => state === 'down'));
    await Promise.all([0, 1, 2].map((host) => attached.restart(host)));
    expect(await replyTo('a', attached)).toBe('1 a');
  });

  test('it is named by its path, and by its configuration file', async () => {
    const file = line.write('attached.yaml', `name: ${line.name}\ngroups: 3\n`);
    for (const address of [`/dev/shm/tram-${line.name}`, file]) {
      expect((await attach(address)).status().memory).toBe('processes');
    }
  });

  test('memory of another version is refused', async () => {
    const path = join(line.folder, 'other-version');
    copyFileSync(`/dev/shm/tram-${line.name}`, path);
    writeSync(openSync(path, 'r+'), Int32Array.of(1), 0, 4, ARENA.version * 4);
    await expect(Cluster.attach(path)).rejects.toMatchObject({ code: 'TRAM_VERSION_MISMATCH' });
    rmSync(path);
  });

  test.each([
    ['a host', (attached: AttachedCluster) => attached.crash(3), 'TRAM_UNKNOWN_REPLICA'],
    [
      'a group',
      async (attached: AttachedCluster) => attached.deliveries({ group: 3 }),
      'TRAM_INVALID_ARGUMENT',
    ],
    ['a replica', async (attached: AttachedCluster) => attached.lead(0, 3), 'TRAM_UNKNOWN_REPLICA'],
  ])('%s that it does not have is refused', async (_, call, code) => {
    await expect(call(await attach(line.name))).rejects.toMatchObject({ code });
  });
});

test('a name that no cluster has is refused', async () => {
  await expect(Cluster.attach(line.name)).rejects.toMatchObject({ code: 'TRAM_NOT_FOUND' });
});

describe('across machines', () => {
  let cluster: Loopback;

  beforeEach(async (context) => {
    needLibfabric(context);
    cluster = await Loopback.make();
  });

  afterEach(() => cluster?.clearUp());

  test('it is seen and used by its configuration file', async () => {
    await cluster.startAll();
    const attached = await attach(cluster.far);
    expect(attached.status()).toMatchObject({ state: 'running', memory: 'machines' });
    // Two readers of one group, of which one ends early.
    const [text, all] = [nextText(attached), attached.deliveries({ group: 1 })];
    const first = all.next();
    // The copies begin a moment after the call: what is sent until then is not shown.
    let isSeen = false;
    void text.then(() => {
      isSeen = true;
    });
    while (!isSeen) await replyTo('a', attached);
    await first;
    await replyTo('last', attached);
    for await (const { payload } of all) if (decode(payload) === 'last') break;
    await untilLeads(attached, 2);
    await attached.close();
    expect(await cluster.states()).toEqual(['up', 'up', 'up']);
  });

  test('a program that is attached ends when it has nothing else to do', async () => {
    await cluster.startAll();
    const program = line.write(
      'program.mjs',
      `import { Cluster } from ${JSON.stringify(join(projectDirectory, 'packages/tram/dist/index.js'))};
       const attached = await Cluster.attach(${JSON.stringify(cluster.far)});
       console.log(attached.status().hosts.length);`,
    );
    expect(spawnSync(process.execPath, [program], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stdout: '3\n',
    });
  });

  test('hosts of other machines crash, stop, restart, and end all together', async () => {
    await cluster.startAll('--respawn');
    const attached = await attach(cluster.far);
    await replyTo('a', attached);
    const incarnation = (): number => attached.status().groups[1].replicas[2].incarnation;
    const before = incarnation();
    await attached.restart(2);
    expect(incarnation()).toBeGreaterThan(before);
    await attached.restart(2, { fresh: true });
    expect(statesOf(attached)).toEqual(['up', 'up', 'up']);
    expect(await replyTo('b', attached)).toBe('2 b');
    await attached.rollingRestart();
    expect(await replyTo('c', attached)).toBe('3 c');
    await attached.crash(1);
    expect(statesOf(attached)).toEqual(['up', 'down', 'up']);
    // Only its own machine can start it.
    await expect(attached.restart(1)).rejects.toMatchObject({
      code: 'TRAM_UNREACHABLE',
      hint: expect.stringContaining('tram host beta'),
    });
    await attached.stop(0);
    expect(statesOf(attached)).toEqual(['down', 'down', 'up']);
    // The others have ended before, which nobody can know from here.
    await expect(attached.shutDown()).rejects.toMatchObject({
      code: 'TRAM_UNREACHABLE',
      message: expect.stringMatching(/alpha.*beta/),
    });
    expect(cluster.hasMemory()).toBe(true);
    await expect(Cluster.attach(cluster.far)).rejects.toMatchObject({ code: 'TRAM_UNREACHABLE' });
  });

  test('all hosts are asked in turn to restart', async () => {
    await cluster.startAll('--respawn');
    const attached = await attach(cluster.far);
    expect(await replyTo('a', attached)).toBe('1 a');
    const incarnations = (): number[] =>
      attached.status().groups[1].replicas.map(({ incarnation }) => incarnation);
    const before = incarnations();
    await attached.rollingRestart();
    expect(incarnations().every((incarnation, member) => incarnation > before[member])).toBe(true);
    expect(await replyTo('b', attached)).toBe('2 b');
    await attached.crash(2);
    await expect(attached.rollingRestart()).rejects.toMatchObject({ code: 'TRAM_UNAVAILABLE' });
  });

  test('a host begins with empty memory also if another one is slow to hear of its end', async () => {
    // Nobody takes the slow one for failed.
    for (const file of [cluster.config, cluster.far]) {
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replace('suspectAfterMs: 2000', 'suspectAfterMs: 10000'));
    }
    const [, beta, gamma] = await cluster.startAll('--respawn');
    const attached = await attach(cluster.far);
    await replyTo('a', attached);
    await cluster.untilLevel();
    beta.child.kill('SIGSTOP');
    const restarted = attached.restart(2, { fresh: true });
    await gamma.says('was asked by another machine: restart-fresh');
    // Longer than a host that ends usually waits for others.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    beta.child.kill('SIGCONT');
    await restarted;
    expect(await replyTo('b', attached)).toBe('2 b');
  });

  test('a host that hangs does not obey', async () => {
    const [, , gamma] = await cluster.startAll();
    const attached = await attach(cluster.far);
    gamma.child.kill('SIGSTOP');
    await expect(attached.stop(2)).rejects.toMatchObject({
      code: 'TRAM_UNREACHABLE',
      hint: expect.stringContaining('If it hangs, kill its process there'),
    });
    await expect(attached.shutDown()).rejects.toMatchObject({ code: 'TRAM_UNREACHABLE' });
    gamma.child.kill('SIGKILL');
    expect(() => attached.status()).toThrow('closed');
  });

  test('a host of this machine that has ended is started', async () => {
    await cluster.startAll();
    const attached = await attach(cluster.config);
    await attached.crash(2);
    expect(statesOf(attached)).toEqual(['up', 'up', 'down']);
    await attached.restart(2);
    expect(statesOf(attached)).toEqual(['up', 'up', 'up']);
    // It runs in the background now, and starts its successor itself.
    await attached.restart(2);
    await attached.shutDown({ force: true });
    expect(cluster.memories()).toEqual([]);
  });
});

describe('on threads', () => {
  test('it is seen and used in other threads, but belongs to the one that has started it', async () => {
    const { name, service } = line;
    const cluster = await Cluster.start({ groups: 2, hosts: 1, service, name });
    try {
      expect((await attach(name)).status().memory).toBe('threads');
      const attached = await attach(cluster.address);
      const text = nextText(attached);
      expect(await replyTo('a', attached)).toBe('1 a');
      expect(await text).toBe('a');
      await untilLeads(attached, 1);
      for (const call of [
        () => attached.crash(0),
        () => attached.stop(0),
        () => attached.restart(0),
        () => attached.rollingRestart(),
        () => attached.shutDown(),
      ]) {
        await expect(call()).rejects.toMatchObject({ code: 'TRAM_NOT_SUPPORTED' });
      }
      await attached.close();
      const client = await Client.connect(cluster.address);
      expect(decode((await client.multicast([1], encode('b'))).get(1))).toBe('2 b');
      await client.close();
    } finally {
      await cluster.destroy();
    }
  });
});
