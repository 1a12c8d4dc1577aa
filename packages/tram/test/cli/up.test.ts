/** `tram up`: with what it starts, what it refuses, and that it leaves nothing behind when it fails. */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { finish, SMALL, textOf, until, useCommandLine } from './command-line.js';

const line = useCommandLine();

describe('up', () => {
  test('refuses a name that is taken, with the processes that have it', async () => {
    await line.up();
    const taken = await line.tram('up', ...SMALL);
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain(`its hosts are the processes ${(await line.pids()).join(', ')}`);
    expect(taken.stderr).toContain(`tram down --name ${line.name}`);
    expect((await line.tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
  });

  test('goes on with the state that a cluster of that name left when all was killed', async () => {
    await line.up('--service', line.service);
    await line.tram('send', '--to', '1', '--text', 'x', '--count', '3');
    await line.killAll();
    const { stdout } = await line.tram('status');
    expect(stdout).toContain('all hosts are down');
    expect(stdout).toContain(`go on with the state that they left: tram up --name ${line.name}`);
    const again = await line.tram('up');
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('resumed cluster') });
    expect((await line.tram('send', '--to', '1', '--text', 'y')).stdout).toBe('g1  4 y\n');
    expect(await line.json('status')).toMatchObject({ supervised: true });
  });

  test('starts hosts that were stopped in order, under the starter that runs', async () => {
    await line.up('--service', line.service);
    await line.tram('send', '--to', '1', '--text', 'x', '--count', '2000');
    const starter = line.starter();
    for (const pid of await line.pids()) process.kill(pid, 'SIGTERM');
    // The starter may restart a host that has ended before the command keeps it down.
    for (const member of [0, 1, 2])
      await until(async () => (await line.tram('kill', `g0/${member}`)).code === 0);
    await until(async () => (await line.json<{ state: string }>('status')).state === 'down');
    const again = await line.tram('up', ...SMALL);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('resumed cluster') });
    expect((await line.tram('send', '--to', '1', '--text', 'y')).stdout).toBe('g1  2001 y\n');
    expect(line.starter()).toBe(starter);
  });

  test('supervises hosts that run, and restarts those that have ended', async () => {
    await line.up('--service', line.service);
    await line.tram('send', '--to', '1', '--text', 'x');
    process.kill(line.starter(), 'SIGKILL');
    const [first, second, third] = await line.pids();
    process.kill(third!, 'SIGKILL');
    await until(() => line.processes().length === 2);
    expect(await line.tram('up')).toMatchObject({ code: 0 });
    expect((await line.pids()).slice(0, 2)).toEqual([first, second]);
    process.kill(second!, 'SIGKILL');
    await until(async () => {
      const { hosts } = await line.status();
      return hosts[1]!.state === 'up' && hosts[1]!.pid !== second;
    });
    expect((await line.tram('send', '--to', '1', '--text', 'y')).stdout).toBe('g1  2 y\n');
    // Also the host that this starter has not started ends with it.
    process.kill(line.starter(), 'SIGTERM');
    await until(() => line.processes().length === 0);
    expect(line.remains()).toEqual([]);
  });

  test('refuses other options than those of the state that was left', async () => {
    await line.up();
    await line.killAll();
    const other = await line.tram('up', '--groups', '5', '--clients', '4', '--tree', 'simple');
    expect(other).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('other options than you ask for: groups, tree'),
    });
    expect(other.stderr).toContain(`tram up --name ${line.name}`);
    expect(other.stderr).toContain(`tram down --name ${line.name}`);
    expect(await line.tram('up', ...SMALL, '--foreground', '--timeout-ms', '1')).toMatchObject({
      code: 1,
    });
    await line.up();
  });

  test('says so if the state is lost, and keeps what is there', async () => {
    await line.up('--service', line.service);
    // More than a log holds.
    await line.tram('send', '--to', '1', '--text', 'x'.repeat(500), '--count', '1000');
    await line.killAll();
    const again = await line.tram('up');
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the state of g1 is lost'),
    });
    expect(again.stderr).toContain(`\`tram down --name ${line.name}\``);
    expect(line.processes()).toEqual([]);
    expect(existsSync(`/dev/shm/tram-${line.name}`)).toBe(true);
    expect(await line.tram('down')).toMatchObject({ code: 0 });
    await line.up();
  });

  test('leaves nothing behind when it is interrupted', async () => {
    const trace = join(line.folder, 'interrupted');
    // The hosts load a service that never gets ready, so the start can't be over before the signal comes.
    const endless = line.write('endless.mjs', 'await new Promise((end) => setTimeout(end, 1e8));');
    const child = line.start('up', ...SMALL, '--trace', trace, '--service', endless);
    const finished = finish(child);
    // The starter, and a host.
    await until(() => line.processes().length > 1);
    child.kill('SIGINT');
    expect(await finished).toMatchObject({
      code: 130,
      stderr: expect.stringContaining('interrupted'),
    });
    expect(line.remains()).toEqual([]);
    expect(existsSync(trace)).toBe(false);
  });

  test('leaves nothing behind when the service can not be loaded', async () => {
    const trace = join(line.folder, 'unloaded');
    const missing = await line.tram('up', ...SMALL, '--service', join(line.folder, 'nowhere.mjs'));
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('nowhere.mjs') });
    const broken = join(line.folder, 'broken.mjs');
    writeFileSync(broken, 'export const nothing = 0;');
    const empty = await line.tram('up', ...SMALL, '--service', broken, '--trace', trace);
    expect(empty).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exports no function'),
    });
    expect(line.remains()).toEqual([]);
    expect(existsSync(trace)).toBe(false);
  });

  test('names what is wrong with a file or an option', async () => {
    const file = join(line.folder, 'wrong.yaml');
    writeFileSync(file, 'groups: 3\nreplikas: 3\n');
    const wrong = await line.tram('up', '--config', file);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain(
      `${file}:2:1: unknown option "replikas": did you mean replicas?`,
    );
    expect(await line.tram('up', '--config', join(line.folder, 'nowhere.yaml'))).toMatchObject({
      code: 2,
    });
    expect(await line.tram('up', '--groups', '99')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('groups must be an integer from 1 to 64, not 99'),
    });
    expect(line.remains()).toEqual([]);
  });

  test('takes its options from a file, and those of the command line before', async () => {
    const file = join(line.folder, 'right.yaml');
    writeFileSync(file, 'groups: 5\ntree: simple\nclients: 4\nservice: ./service.mjs\n');
    const result = await line.tram('up', '--config', file, '--groups', '2');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stdout.split('\n')).toHaveLength(3);
    expect((await line.tram('send', '--to', '1', '--text', 'x')).stdout).toBe('g1  1 x\n');
  });

  test('stays with --foreground, until Ctrl-C or until somebody takes it down', async () => {
    const child = line.start('up', ...SMALL, '--foreground');
    const said = textOf(child.stderr!);
    await until(() => said.text.includes('logs '));
    expect((await line.tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
    const ends = once(child, 'close');
    child.kill('SIGINT');
    expect(await ends).toEqual([130, null]);
    expect(line.remains()).toEqual([]);

    const other = line.start('up', ...SMALL, '--foreground');
    const otherEnds = once(other, 'close');
    const saidToo = textOf(other.stderr!);
    await until(() => saidToo.text.includes('logs '));
    expect((await line.tram('down')).code).toBe(0);
    expect(await otherEnds).toEqual([0, null]);
    expect(line.remains()).toEqual([]);
  });

  test('leaves a process behind that restarts hosts which end, until somebody takes it down', async () => {
    await line.up();
    expect((await line.tram('status')).stdout).not.toContain('supervised');
    const [, second] = await line.pids();
    process.kill(second!, 'SIGKILL');
    await until(async () => {
      const { hosts } = await line.status();
      return hosts[1]!.state === 'up' && hosts[1]!.pid !== second;
    });
    const log = readFileSync(join(line.stateDirectory(), 'starter.log'), 'utf8');
    expect(log).toMatch(/starter: host 1 has ended: SIGKILL\n.*starter: host 1 is restarted in/);

    // A host that the starter has not started itself is restarted too.
    await line.tram('kill', 'g0/2');
    expect((await line.tram('restart', 'g0/2')).code).toBe(0);
    const [, , third] = await line.pids();
    process.kill(third!, 'SIGKILL');
    await until(async () => {
      const { hosts } = await line.status();
      return hosts[2]!.state === 'up' && hosts[2]!.pid !== third;
    });
    expect((await line.tram('down')).code).toBe(0);
    expect(line.remains()).toEqual([]);
  });

  test('its hosts go on without that process, and status says so', async () => {
    await line.up();
    process.kill(line.starter(), 'SIGKILL');
    await until(
      async () => (await line.json<{ supervised: boolean }>('status')).supervised === false,
    );
    expect((await line.tram('status')).stdout).toContain('not supervised');
    expect((await line.tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
    expect((await line.tram('down')).code).toBe(0);
    expect(line.remains()).toEqual([]);
  });
});
