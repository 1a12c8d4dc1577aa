/** `tram restart`: hosts that were killed take up what they had. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Cluster, keeping, pause } from '../built.js';
import { finish, MAIN, until, useCommandLine } from './command-line.js';

const line = useCommandLine();

test('memory outlives its processes: hosts that were killed and resume have lost nothing', async () => {
  const trace = join(line.folder, 'resumed');
  await line.up('--service', line.service, '--trace', trace);
  await line.tram('send', '--to', '1,2', '--text', 'x', '--count', '20');
  for (const group of [0, 1, 2]) expect((await line.tram('lead', `g${group}/0`)).code).toBe(0);
  await line.tram('kill', 'g0/1');
  await line.tram('kill', 'g0/2');
  expect((await line.tram('status')).stdout).toContain(
    'no replica could replace the leader of g0, g1, g2',
  );
  expect((await line.tram('send', '--to', '1', '--text', 'alone')).stdout).toBe('g1  21 alone\n');
  expect((await line.tram('restart', 'g0/1')).code).toBe(0);
  await line.tram('kill', 'g0/0');
  expect(await line.tram('send', '--to', '1', '--text', 'x', '--timeout-ms', '300')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('no leader in g0, g1, g2'),
  });
  expect((await line.tram('restart', 'g0/2')).code).toBe(0);
  expect((await line.tram('send', '--to', '1', '--text', 'two')).stdout).toMatch(
    /^g1 {2}2[23] two\n$/,
  );
  expect((await line.tram('restart', 'g0/0')).code).toBe(0);
  expect(await line.json('down')).toMatchObject({ drained: true });
  const verdict = await line.tram('check', trace);
  expect(verdict.stdout).toMatch(/verdict: holds\n$/);
});

test('a restarted host stays up when its starter learns late that it had ended', async () => {
  const { logger, warnings } = keeping();
  const cluster = await Cluster.start({
    groups: 1,
    hosts: 3,
    memory: 'processes',
    name: line.name,
    logger,
  });
  try {
    process.kill(cluster.status().hosts[1].pid, 'SIGKILL');
    // This blocks the event loop, so the exit of the killed host becomes known after the restart.
    const args = [MAIN, 'restart', 'g0/1', '--name', line.name];
    execFileSync(process.execPath, args, { stdio: 'ignore' });
    while (warnings.length === 0) await pause(5);
    expect(warnings).toEqual(['host 1 has ended: SIGKILL']);
    expect(cluster.status().hosts[1].state).toBe('up');
    // One that another process has started is restarted too.
    const { pid } = cluster.status().hosts[1];
    await cluster.restart(1);
    expect(cluster.status().hosts[1].pid).not.toBe(pid);
    expect(cluster.status().hosts[1].state).toBe('up');
  } finally {
    await cluster.destroy();
  }
});

test('a host that runs ends in order, and starts again', async () => {
  await line.up('--service', line.service);
  await line.tram('send', '--to', '1', '--text', 'x');
  const before = await line.pids();
  expect(await line.tram('restart', 'g0/1')).toMatchObject({ code: 0 });
  const after = await line.pids();
  expect(after.map((pid, host) => pid === before[host])).toEqual([true, false, true]);
});

test('a restart with empty memory is refused where it would cost the last copy of the state', async () => {
  await line.up('--service', line.service);
  await line.tram('send', '--to', '1', '--text', 'x');
  await line.tram('kill', 'g0/0');
  await line.tram('kill', 'g0/1');
  expect(await line.tram('restart', 'g0/0', '--fresh')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("host 0 can't start with empty memory: g0 needs 2 other"),
  });
  expect((await line.tram('restart', 'g0/0')).code).toBe(0);
  expect((await line.tram('restart', 'g0/1', '--fresh')).code).toBe(0);
  expect((await line.tram('send', '--to', '1', '--text', 'y')).stdout).toBe('g1  2 y\n');
});

test('all hosts are restarted in turn while a client sends, and the starter watches over them', async () => {
  await line.up('--service', line.service);
  const before = await line.pids();
  const sending = finish(line.start('send', '--to', '1,2', '--text', 'x', '--count', '2000'));
  const restarted = await line.tram('restart', '--all');
  expect(restarted).toMatchObject({ code: 0, stderr: '' });
  expect(restarted.stdout).toMatch(
    /^(host \d was restarted in \d+ ms: g0\/\d, g1\/\d, g2\/\d\n){3}$/,
  );
  expect(await sending).toMatchObject({ code: 0 });
  expect((await line.tram('send', '--to', '1', '--text', 'y')).stdout).toBe('g1  2001 y\n');
  const after = await line.pids();
  expect(after.filter((pid) => before.includes(pid))).toEqual([]);
  process.kill(after[0]!, 'SIGKILL');
  await until(async () => {
    const [first] = (await line.status()).hosts;
    return first!.state === 'up' && first!.pid !== after[0];
  });
});

test('a restart of all hosts does not begin while one is down', async () => {
  await line.up();
  await line.tram('kill', 'g0/1');
  expect(await line.tram('restart', '--all')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('g0/1 (down)'),
  });
  expect(await line.tram('restart')).toMatchObject({ code: 2 });
  expect(await line.tram('restart', 'g0/1', '--all')).toMatchObject({ code: 2 });
});
