/** Two sides on shared memory always end, and leave no thread behind. The sides run built JavaScript. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type * as PairModule from '../../../src/bench/raw/pair.js';
import { ringWords } from '../../../src/bench/raw/ring.js';
import { expectNoLeftOvers } from '../left-overs.js';

const built = new URL('../../../dist/bench/raw/pair.js', import.meta.url).href;
const { runPair }: typeof PairModule = await import(built);

expectNoLeftOvers();

test('two sides that wait for each other time out', async () => {
  const run = runPair('processes', ringWords(16), [{ role: 'pong' }, { role: 'pong' }]);
  await expect(run).rejects.toThrow('has made no progress');
});

test('no thread keeps the program running, whether the run succeeds or fails', async () => {
  const program = `
    import { runPair } from ${JSON.stringify(built)};
    await runPair('threads', 64, [{ role: 'ping', seconds: 0.01 }, { role: 'pong' }]);
    const common = { recordWords: 16, batch: 1, seconds: 600 };
    const failing = runPair('threads', ${ringWords(16)}, [
      { ...common, role: 'consume', checksContents: true },
      { ...common, role: 'produce', checksContents: false },
    ]);
    await failing.catch((error) => console.log(error.message));`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  expect((await run).stdout).toContain('differs from the one that was sent');
});
