/** `tram kill`: hosts that hang. */
import { expect, test } from 'vitest';
import { useCommandLine } from './command-line.js';

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
