/** `kill`, `restart` and `down` with `--config`: on processes, and on hosts of a cluster across machines. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { signal } from '../../src/hosting/local-host.js';
import { Loopback, NAMES } from '../loopback.js';
import { needLibfabric } from '../memory/fabric/present.js';
import { type Result, useCommandLine } from './command-line.js';

const line = useCommandLine();

test('a signal to a process that has ended meanwhile is no error', () => {
  expect(signal(spawnSync('true').pid, 'SIGKILL')).toBe(false);
});

describe('a cluster of processes', () => {
  test('is named by its configuration file', async () => {
    const file = line.write(
      'processes.yaml',
      `name: ${line.name}\ngroups: 2\nclients: 4\nlogBytes: 65536\nservice: ./service.mjs\n`,
    );
    const tram = (...args: string[]): Promise<Result> =>
      line.tram(args[0], ...args.slice(1), '--config', file);
    expect(await tram('up')).toMatchObject({ code: 0 });
    expect(await tram('send', '--to', '1', '--text', 'x')).toMatchObject({ stdout: 'g1  1 x\n' });
    expect(await tram('kill', 'g1/2')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^killed host 2 \(process \d+\), which hosts g0\/2, g1\/2\n/),
    });
    expect(await tram('kill', 'g1/2')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`tram restart g1/2 --config ${file}`),
    });
    expect(await tram('restart', 'g1/2')).toMatchObject({ code: 0 });
    expect(await tram('lead', 'g1/2')).toMatchObject({ code: 0 });
    expect(await tram('status')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${line.name} running`),
    });
    expect(await tram('down')).toMatchObject({
      code: 0,
      stdout: `cluster "${line.name}" is down\n`,
    });
    expect(line.remains()).toEqual([]);
    expect(await tram('status')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`tram up --config ${file}`),
    });
  });

  test('on threads can not be reached by commands', async () => {
    const file = line.write('threads.yaml', 'memory: threads\ngroups: 2\n');
    for (const command of [['kill', 'g0/0'], ['down'], ['status']]) {
      expect(await line.tram(command[0], ...command.slice(1), '--config', file)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('memory: threads'),
      });
    }
  });
});

describe('a cluster across machines', () => {
  let cluster: Loopback;

  beforeEach(needLibfabric);
  afterEach(() => cluster?.clearUp());

  async function tram(...args: string[]): Promise<Result> {
    return line.exactly(...args);
  }

  describe('whose hosts can not be reached', () => {
    test.each([
      [
        ['kill', 'g1/2'],
        'host gamma, which runs g1/2, is not on this machine',
        'gamma (240.0.0.3)',
      ],
      [['restart', 'g1/0', '--fresh'], 'is not on this machine', 'alpha (240.0.0.1)'],
      [['down'], 'runs on this machine', 'alpha (240.0.0.1), beta (240.0.0.2), gamma (240.0.0.3)'],
    ])('%j says where to run it', async (words, message, machines) => {
      // Reserved addresses, which no machine has.
      cluster = await Loopback.make(['240.0.0.1', '240.0.0.2', '240.0.0.3']);
      const { config: file } = cluster;
      const { code, stderr } = await tram(...words, '--config', file);
      expect(code).toBe(1);
      expect(stderr).toContain(message);
      expect(stderr).toContain(`\`tram ${words.join(' ')} --config ${file}\``);
      expect(stderr).toContain(machines);
    });
  });

  test('whose hosts have never run says how to start them', async () => {
    cluster = await Loopback.make();
    const { config: file } = cluster;
    for (const words of [
      ['kill', 'g1/2'],
      ['restart', 'g1/2'],
    ]) {
      expect(await tram(...words, '--config', file)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /does not run here and has left no memory\n.*tram host gamma/,
        ),
      });
    }
    expect(await tram('down', '--config', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('tram host NAME'),
    });
  });

  describe('whose hosts are on this machine', () => {
    let file: string;

    beforeEach(async () => {
      cluster = await Loopback.make();
      file = cluster.config;
      await cluster.startAll();
    }, 60_000);

    test('loses one, and gets it back with and without its memory', async () => {
      expect(await tram('send', '--config', file, '--to', '1', '--text', 'x')).toMatchObject({
        stdout: 'g1  1 x\n',
      });
      const killed = await tram('kill', 'g1/2', '--config', file, '--json');
      expect(killed).toMatchObject({ code: 0 });
      expect(JSON.parse(killed.stdout)).toMatchObject({
        host: 2,
        name: 'gamma',
        replicas: ['g0/2', 'g1/2'],
      });
      expect(await tram('kill', 'g1/2', '--config', file)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('host gamma, which runs g1/2, is not running'),
      });
      expect(await tram('restart', 'g1/2', '--config', file)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('host gamma is up again, with the memory'),
      });
      expect(await tram('kill', 'g1/2', '--config', file)).toMatchObject({ code: 0 });
      expect(await tram('restart', 'g1/2', '--fresh', '--config', file)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('host gamma is up again, with empty memory'),
      });
      expect(await tram('lead', 'g1/2', '--config', file)).toMatchObject({ code: 0 });
      expect(await tram('send', '--config', file, '--to', '1', '--text', 'y')).toMatchObject({
        stdout: 'g1  2 y\n',
      });
    });

    test('is stopped and continued', async () => {
      expect(await tram('kill', 'g0/1', '--signal', 'SIGSTOP', '--config', file)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^stopped host beta/),
      });
      expect(await tram('restart', 'g0/1', '--config', file)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('stopped (SIGSTOP)'),
      });
      expect(await tram('kill', 'g0/1', '--signal', 'SIGCONT', '--config', file)).toMatchObject({
        code: 0,
      });
      await cluster.untilLevel();
    });

    test('goes down and keeps its memory, unless that is to be removed', async () => {
      const down = await tram('down', '--config', file);
      expect(down).toMatchObject({ code: 0, stderr: '' });
      for (const name of NAMES) {
        expect(down.stdout).toMatch(
          new RegExp(`host ${name} \\(process \\d+\\) is down; its memory stays`),
        );
      }
      expect(cluster.hasMemory()).toBe(true);
      expect(await tram('down', '--config', file)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('host alpha was not running'),
      });
      const forced = await tram('down', '--force', '--config', file, '--json');
      expect(JSON.parse(forced.stdout)).toEqual({
        name: cluster.name,
        hosts: NAMES.map((name) => ({ name, pid: null, wasKilled: false })),
        memory: 'removed',
        elsewhere: [],
      });
      expect(cluster.memories()).toEqual([]);
    });
  });
});
