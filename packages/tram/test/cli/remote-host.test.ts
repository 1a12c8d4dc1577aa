/** `kill`, `restart` and `down` on hosts of other machines: the hosts are asked. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Loopback, NAMES } from '../loopback.js';
import { needLibfabric } from '../memory/fabric/present.js';
import { until } from './command-line.js';

/** For the start of a command, and longer than hosts usually take to answer it; but much shorter than it waits for them. */
const SLOW_MS = 1000;

let cluster: Loopback;

beforeEach(async (context) => {
  needLibfabric(context);
  cluster = await Loopback.make();
});

afterEach(() => cluster?.clearUp());

async function replyOf(text: string): Promise<string> {
  return (await cluster.farAway('send', '--to', '1', '--text', text)).stdout;
}

describe('a host on another machine', () => {
  test('is killed, and its machine starts it again', async () => {
    const [, , gamma] = await cluster.startAll();
    const ended = once(gamma.child, 'exit');
    expect(await cluster.farAway('kill', 'g1/2')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^killed host gamma \(process \d+ on its machine\), which hosts g0\/2, g1\/2\n/,
      ),
    });
    expect(await ended).toEqual([null, 'SIGKILL']);
    // Nobody can ask it now.
    for (const words of [
      ['kill', 'g1/2'],
      ['restart', 'g1/2'],
    ]) {
      expect(await cluster.farAway(...words)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`tram host gamma --config ${cluster.far}`),
      });
    }
    expect(await cluster.nearby('restart', 'g1/2')).toMatchObject({ code: 0 });
  });

  test('whose end costs groups their majority is killed with a warning', async () => {
    await cluster.startAll();
    expect(await cluster.farAway('kill', 'g1/2')).toMatchObject({ code: 0, stderr: '' });
    expect(await cluster.farAway('kill', 'g1/1')).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^the end of host beta costs g0, g1 their majority/),
    });
  });

  test('gets no signal but SIGKILL', async () => {
    await cluster.startAll();
    expect(await cluster.farAway('kill', 'g1/2', '--signal', 'SIGSTOP')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`tram kill g1/2 --signal SIGSTOP --config ${cluster.far}`),
    });
    expect(await cluster.states()).toEqual(['up', 'up', 'up']);
  });

  test('that hangs does not obey, and the command says so', async () => {
    const [, , gamma] = await cluster.startAll();
    gamma.child.kill('SIGSTOP');
    const killed = await cluster.farAway('kill', 'g1/2');
    gamma.child.kill('SIGCONT');
    expect(killed).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('host gamma, which runs g1/2'),
    });
    await cluster.untilLevel();
  });

  test('restarts, started again by its service manager, with its memory and without', async () => {
    const [, , gamma] = await cluster.startAll();
    expect(await replyOf('a')).toBe('g1  1 a\n');
    const inode = (): number => statSync(cluster.memoryOf('gamma')).ino;
    const memory = inode();
    // As a service manager does.
    const codes: unknown[] = [];
    const restartAlways = (child: ChildProcess): void => {
      child.once('exit', (code) => {
        codes.push(code);
        if (code === 5) restartAlways(cluster.start('gamma').child);
      });
    };
    restartAlways(gamma.child);
    expect(await cluster.farAway('restart', 'g1/2')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('host gamma is up again, with the memory'),
    });
    expect(inode()).toBe(memory);
    const fresh = await cluster.farAway('restart', 'g1/2', '--fresh', '--json');
    expect(fresh).toMatchObject({ code: 0 });
    expect(JSON.parse(fresh.stdout)).toMatchObject({ host: 2, name: 'gamma', fresh: true });
    expect(codes).toEqual([5, 5]);
    expect(inode()).not.toBe(memory);
    expect(await cluster.farAway('lead', 'g1/2')).toMatchObject({ code: 0 });
    expect(await replyOf('b')).toBe('g1  2 b\n');
  });

  test('that `tram restart` has started restarts by itself', async () => {
    await cluster.startAll();
    expect(await cluster.nearby('kill', 'g1/2')).toMatchObject({ code: 0 });
    expect(await cluster.nearby('restart', 'g1/2')).toMatchObject({ code: 0 });
    expect(await cluster.farAway('restart', 'g1/2')).toMatchObject({ code: 0 });
    await cluster.untilLevel();
  });

  test('that nobody starts again is told to be down', async () => {
    const [, , gamma] = await cluster.startAll();
    const ended = once(gamma.child, 'exit');
    expect(await cluster.farAway('restart', 'g1/2', '--timeout-ms', '3000')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /host gamma has ended, but is not up again\n.*--respawn.*tram host gamma/,
      ),
    });
    expect(await ended).toEqual([5, null]);
  });

  test('is asked likewise on its own machine, if it runs', async () => {
    const [, , gamma] = await cluster.startAll('--respawn');
    const ended = once(gamma.child, 'exit');
    expect(await cluster.nearby('restart', 'g1/2')).toMatchObject({ code: 0 });
    expect(await ended).toEqual([0, null]);
    expect(await cluster.states()).toEqual(['up', 'up', 'up']);
  });

  test('keeps its memory if others could not give it the state back', async () => {
    await cluster.startAll();
    expect(await cluster.farAway('kill', 'g1/1')).toMatchObject({ code: 0 });
    expect(await cluster.farAway('restart', 'g1/2', '--fresh')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("host gamma can't start with empty memory"),
    });
    expect((await cluster.states()).slice(-1)).toEqual(['up']);
  });

  test('keeps its memory likewise if others have ended since the command has looked', async () => {
    const [, beta, gamma] = await cluster.startAll('--respawn');
    expect(await replyOf('a')).toBe('g1  1 a\n');
    await cluster.untilLevel();
    const memory = statSync(cluster.memoryOf('gamma')).ino;
    await beta.end('SIGKILL');
    const ended = once(gamma.child, 'exit');
    await cluster.ask('gamma', 'restart-fresh');
    await ended;
    await gamma.says(/^keeps its memory, because too few other members of g0, g1 take part/);
    await gamma.says(/^has left the state of .*g1\/2/);
    expect(statSync(cluster.memoryOf('gamma')).ino).toBe(memory);
    await until(async () => (await cluster.states()).slice(-1)[0] === 'up');
  });

  test('and another one, restarted with empty memory at once, do not lose the state', async () => {
    await cluster.startAll('--respawn');
    expect(await replyOf('a')).toBe('g1  1 a\n');
    const restarts = await Promise.all(
      ['g1/1', 'g1/2'].map((replica) => cluster.farAway('restart', replica, '--fresh')),
    );
    for (const { code, stderr } of restarts) {
      // One may begin when the other has recovered.
      if (code !== 0) expect(stderr).toMatch(/with the memory that it left|with empty memory/);
    }
    await cluster.untilLevel();
    expect(await replyOf('b')).toBe('g1  2 b\n');
  });

  test('that waits for others to start for the first time can be ended', async () => {
    const gamma = cluster.start('gamma');
    await until(async () => (await cluster.states()).slice(-1)[0] === 'starting');
    const ended = once(gamma.child, 'exit');
    expect(await cluster.farAway('down', '--all')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^host gamma \(process \d+\) is down.*\n$/),
      stderr: expect.stringMatching(/^host alpha \(.*\) can't be asked .*\n.*\nhost beta /),
    });
    expect(await ended).toEqual([0, null]);
  });
});

describe('restart --all', () => {
  test('asks one host after the other', async () => {
    await cluster.startAll('--respawn');
    expect(await replyOf('a')).toBe('g1  1 a\n');
    expect(await cluster.farAway('restart', '--all')).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(
        /^(host (alpha|beta|gamma) was restarted in \d+ ms: g0\/\d, g1\/\d\n){3}$/,
      ),
    });
    expect(await replyOf('b')).toBe('g1  2 b\n');
  });

  test('does not take a host that is slow to answer for one that is down', async () => {
    const [, , gamma] = await cluster.startAll('--respawn');
    gamma.child.kill('SIGSTOP');
    const restarted = cluster.farAway('restart', '--all');
    await setTimeout(SLOW_MS);
    gamma.child.kill('SIGCONT');
    expect(await restarted).toMatchObject({ code: 0, stderr: '' });
  });

  test('ends at a host that nobody starts again, and does not begin without all replicas', async () => {
    await cluster.startAll();
    expect(await cluster.farAway('restart', '--all', '--timeout-ms', '3000')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /stopped at host alpha: .*\(restarted: none; not: alpha, beta, gamma\)\n.*--respawn/,
      ),
    });
    expect(await cluster.farAway('restart', '--all')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('g0/0 (down)'),
    });
    expect(await cluster.states()).toEqual(['down', 'up', 'up']);
  });
});

describe('down', () => {
  test('ends no host of another machine, unless it is told to', async () => {
    const hosts = await cluster.startAll();
    expect(await cluster.farAway('down')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /To end alpha \(127\.0\.0\.2\), beta .* gamma .*`tram down --all/,
      ),
    });
    expect(await cluster.states()).toEqual(['up', 'up', 'up']);
    const exits = hosts.map(({ child }) => once(child, 'exit'));
    const down = await cluster.farAway('down', '--all');
    expect(down).toMatchObject({ code: 0, stderr: '' });
    for (const name of NAMES) {
      expect(down.stdout).toMatch(
        new RegExp(`host ${name} \\(process \\d+\\) is down; its memory stays`),
      );
    }
    expect(await Promise.all(exits)).toEqual(NAMES.map(() => [0, null]));
    expect(cluster.hasMemory()).toBe(true);
  });

  test('ends a host that has left memory here and runs on another machine', async () => {
    const [, , gamma] = await cluster.startAll();
    await gamma.end('SIGTERM');
    const moved = cluster.start('gamma', cluster.far);
    await moved.says('runs its replicas');
    await cluster.untilLevel();
    const exit = once(moved.child, 'exit');
    // It may be slow to answer.
    moved.child.kill('SIGSTOP');
    const ending = cluster.nearby('down', '--all');
    await setTimeout(SLOW_MS);
    moved.child.kill('SIGCONT');
    const down = await ending;
    expect(down).toMatchObject({ code: 0, stderr: '' });
    expect(down.stdout).toMatch(new RegExp(`host gamma \\(process ${moved.child.pid}\\) is down`));
    expect(await exit).toEqual([0, null]);
  });

  test('removes the memory on other machines with --force, and says what that costs', async () => {
    await cluster.startAll();
    const down = await cluster.farAway('down', '--all', '--force');
    expect(down).toMatchObject({ code: 0, stderr: expect.stringContaining('is lost') });
    expect(down.stdout).toContain('its memory is removed');
    expect(cluster.memories()).toEqual([]);
  });
});
