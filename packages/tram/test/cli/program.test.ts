/** The commands together: the life of a cluster of processes, with real signals, and what they say of mistakes. */
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { finish, textOf, until, useCommandLine } from './command-line.js';

const line = useCommandLine();

test('a cluster lives, loses hosts, gets them back and ends; its history holds', async () => {
  const trace = join(line.folder, 'history');
  const started = await line.up('--service', line.service, '--trace', trace);
  expect(started.stdout).toContain('└─ g1     leader g1/');
  expect(started.stderr).toContain(`tram down --name ${line.name}`);
  expect(statSync(join(line.stateDirectory(), 'host-0.log')).mode & 0o777).toBe(0o600);

  const first = await line.status();
  expect(first).toMatchObject({ state: 'running', clients: { connected: 0, most: 4 } });
  expect(first.groups.map(({ parent }) => parent)).toEqual([-1, 0, 1]);
  expect(first.groups.every(({ leader }) => leader !== undefined)).toBe(true);
  expect(first.hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);

  // Send and tail.
  const tail = line.start('tail', '--group', '2', '--count', '2');
  const tailEnds = once(tail, 'close');
  const tailed = textOf(tail.stdout!);
  const following = textOf(tail.stderr!);
  await until(() => following.text.includes('following g2'));
  expect(await line.tram('send', '--to', '0,g2', '--text', 'hello')).toEqual({
    code: 0,
    stdout: 'g0  1 hello\ng2  1 hello\n',
    stderr: '',
  });
  expect(
    await finish(line.start('send', '--to', '2', '--count', '1'), 'from a pipe'),
  ).toMatchObject({
    stdout: 'g2  2 from a pipe\n',
  });
  expect(await tailEnds).toEqual([0, null]);
  expect(tailed.text).toMatch(/^g2 +0 +c1:0\.0 +0,2 {2}hello\ng2 +1 +c2:2\.0 +2 {2}from a pipe\n$/);

  // A host with leaders is lost: the others go on.
  const leader = `g2/${first.groups[2].leader}`;
  const killed = await line.json<{ host: number; replicas: string[]; led: string[] }>(
    'kill',
    leader,
  );
  expect(killed.replicas).toEqual([0, 1, 2].map((group) => `g${group}/${killed.host}`));
  expect(killed.led).toContain(leader);
  expect(await line.tram('send', '--to', '2', '--text', 'still here')).toMatchObject({
    code: 0,
    stdout: 'g2  3 still here\n',
  });
  expect((await line.status()).hosts[killed.host]).toMatchObject({ state: 'down' });
  expect(await line.tram('kill', leader)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not running'),
  });

  // It comes back with nothing, and has the state.
  const fresh = await line.tram('restart', leader, '--fresh');
  expect(fresh).toMatchObject({ code: 0, stdout: expect.stringContaining('with empty memory') });
  expect(await line.tram('lead', leader)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${leader} leads its group under ballot`),
  });
  expect((await line.tram('send', '--to', '2', '--text', 'x')).stdout).toBe('g2  4 x\n');

  // And with the memory that it left behind.
  await line.tram('kill', leader);
  await line.tram('send', '--to', '2', '--text', 'y');
  const resumed = await line.tram('restart', leader);
  expect(resumed).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('with the memory that it had left behind'),
  });
  expect((await line.tram('lead', leader)).code).toBe(0);
  expect((await line.tram('send', '--to', '2', '--text', 'z')).stdout).toBe('g2  6 z\n');

  const shown = (await line.tram('status')).stdout.split('\n');
  expect(shown.join('\n')).toContain('×3');
  expect(shown.filter((line) => line.length > 80)).toEqual([]);

  expect(await line.tram('down')).toMatchObject({
    code: 0,
    stdout: `cluster "${line.name}" is down\n`,
  });
  expect(line.remains()).toEqual([]);
  const verdict = await line.tram('check', trace);
  expect(verdict, verdict.stdout).toMatchObject({ code: 0, stderr: '' });
  expect(verdict.stdout).toMatch(/verdict: holds\n$/);
  expect(verdict.stdout).toContain('6 messages');
});

test('errors name what there is instead', async () => {
  const nothing = await line.tram('status');
  expect(nothing).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no cluster'),
  });
  expect(nothing.stderr).toContain(`tram up --name ${line.name}`);
  expect((await line.tram('down')).code).toBe(1);
  await line.up();
  for (const [command, replica] of [
    ['kill', 'g3/0'],
    ['restart', '0/3'],
    ['lead', 'nonsense'],
  ] as const) {
    const result = await line.tram(command, replica);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('this cluster has g0/0 to g2/2');
  }
  expect((await line.tram('send', '--to', '7', '--text', 'x')).code).toBe(2);
  expect((await line.tram('tail', '--group', '7')).code).toBe(2);
  expect(await line.tram('send', '--to', '0', '--text', 'x'.repeat(2000))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('payloadBytesMax'),
  });
});
