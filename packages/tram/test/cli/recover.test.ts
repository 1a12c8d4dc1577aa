/** `tram recover` as an operator runs it, and `tram up` before and after it. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SMALL, useCommandLine } from './command-line.js';

const line = useCommandLine();

test('a cluster comes back after tram down, and after the loss of most journals only if that is accepted', async () => {
  const journal = join(line.folder, 'journals');
  const durable = [
    ...SMALL,
    '--service',
    line.service,
    '--durability',
    'always',
    '--journal',
    journal,
  ];
  expect(await line.tram('up', ...durable)).toMatchObject({ code: 0 });
  expect((await line.tram('send', '--to', '0,2', '--text', 'a')).stdout).toContain('1 a');
  expect(await line.exactly('recover', journal)).toMatchObject({ code: 1 });
  await line.tram('down');
  expect(await line.exactly('recover', journal)).toMatchObject({
    code: 0,
    stdout: 'nothing is lost: start the cluster, and it recovers\n',
  });
  for (const host of [0, 2]) rmSync(join(journal, `host-${host}`), { recursive: true });
  const refused = await line.tram('up', ...durable);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('host-0 has none of it, host-2 has none of it');
  expect(await line.exactly('recover', journal)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^g0: .*\ng1: .*\ng2: .*\n$/),
  });
  expect(await line.exactly('recover', journal, '--accept-loss')).toMatchObject({ code: 0 });
  expect(await line.tram('up', ...durable)).toMatchObject({ code: 0 });
  expect((await line.tram('send', '--to', '0,2', '--text', 'b')).stdout).toContain('2 b');
});

test('needs journals', async () => {
  const { code, stderr } = await line.exactly('recover', line.folder);
  expect(code).toBe(1);
  expect(stderr).toContain('there are no journals in');
  expect((await line.exactly('recover', '/nowhere')).code).toBe(1);
});
