/** `tram down`: what it leaves in a history. */
import { readFileSync } from 'node:fs';
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
