/** `tram down`: what it leaves in a history, and its logs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useCommandLine } from './command-line.js';

const line = useCommandLine();

test('what is killed and does not come back is told in the history', async () => {
  const trace = join(line.folder, 'losses');
  await line.up('--trace', trace);
  await line.tram('send', '--to', '0,1,2', '--text', 'x', '--count', '20');
  await line.tram('kill', 'g0/1');
  await line.tram('send', '--to', '0,1,2', '--text', 'x', '--count', '20');
  expect(await line.json('down')).toMatchObject({ drained: true, killed: [] });
  expect(readFileSync(join(trace, 'end.jsonl'), 'utf8')).toBe(
    [0, 1, 2].map((group) => `{"event":"crash","replica":"${group}/1"}\n`).join('') +
      '{"event":"end","quiescent":true}\n',
  );
  const verdict = await line.json<{ outcome: string; counts: unknown }>('check', trace);
  expect(verdict).toMatchObject({ outcome: 'holds', counts: { messages: 40, crashes: 3 } });
});

test('the logs of the last run stay, and no others', async () => {
  const service = line.write(
    'talking.mjs',
    "export function deliver({ payload }) { console.log('heard ' + new TextDecoder().decode(payload)); }",
  );
  const logs = line.stateDirectory();
  const heard = (file: string): string => readFileSync(join(logs, file), 'utf8');
  for (const run of ['first', 'second']) {
    await line.up('--service', service);
    await line.tram('send', '--to', '0', '--text', run);
    expect(heard('host-0.log')).toContain(`heard ${run}`);
    const down = await line.tram('down');
    expect(down.code).toBe(0);
    expect(down.stderr).toContain(`its logs stay in ${logs}\n`);
    expect(readdirSync(logs).sort()).toEqual([
      'host-0.log.1',
      'host-1.log.1',
      'host-2.log.1',
      'starter.log.1',
    ]);
    expect(heard('host-0.log.1')).toContain(`heard ${run}`);
  }
  expect(heard('host-0.log.1')).not.toContain('heard first');

  // A start that fails leaves them alone; one that goes on with dead hosts goes on with their logs too.
  await line.tram('up', '--service', join(line.folder, 'nowhere.mjs'));
  expect(heard('host-0.log.1')).toContain('heard second');
  await line.up('--service', service);
  await line.tram('send', '--to', '0', '--text', 'third');
  await line.killAll();
  await line.tram('up');
  expect(heard('host-0.log')).toContain('heard third');
  expect(heard('host-0.log.1')).toContain('heard second');
});
