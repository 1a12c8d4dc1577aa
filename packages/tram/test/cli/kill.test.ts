/** `tram kill`: hosts that hang, and hosts that end. */
import { expect, test } from 'vitest';
import { SMALL, useCommandLine } from './command-line.js';

const line = useCommandLine();

test('a host that hangs is deposed, shown, and killed in the end', async () => {
  await line.up();
  const [group] = (await line.status()).groups;
  await line.tram('kill', `g0/${group!.leader}`, '--signal', 'SIGSTOP');
  expect((await line.tram('send', '--to', '0', '--text', 'x')).code).toBe(0);
  expect((await line.tram('status')).stdout).toContain('stopped');
  expect(await line.tram('restart', `g0/${group!.leader}`)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('stopped (SIGSTOP)'),
  });
  const lead = await line.tram('lead', `g0/${group!.leader}`, '--timeout-ms', '300');
  expect(lead).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/after 300 ms: g0\/\d does/),
  });
  await line.tram('kill', `g0/${group!.leader}`, '--signal', 'SIGCONT');
  expect((await line.tram('lead', `g0/${group!.leader}`)).code).toBe(0);
});

test('a host that is killed stays down, and a kill that costs a majority or the state is warned of', async () => {
  await line.up();
  expect((await line.tram('kill', 'g0/1')).stderr).toBe('');
  expect((await line.tram('kill', 'g0/0')).stderr).toBe(
    'warning: the end of host 0 costs g0, g1, g2 their majority, and they stop until enough hosts are back\n',
  );
  expect((await line.tram('kill', 'g0/2')).stderr).toContain(
    'costs g0, g1, g2 the last running copy of their state',
  );
  expect((await line.status()).hosts.map(({ state }) => state)).toEqual(['down', 'down', 'down']);
  // Under the starter that still runs.
  const starter = line.starter();
  expect(await line.tram('up', ...SMALL)).toMatchObject({ code: 0 });
  expect((await line.status()).hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
  expect(line.starter()).toBe(starter);
});
