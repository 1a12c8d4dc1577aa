/** The bare ring transfers every record once and unchanged, and its checks notice errors. Its sides run built JavaScript. */
import { describe, expect, test } from 'vitest';
import type * as PairModule from '../../../src/bench/raw/pair.js';
import type * as RingModule from '../../../src/bench/raw/ring.js';
import { expectNoLeftOvers } from '../left-overs.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/raw/${name}.js`, import.meta.url).href;
const { measureRawRing, ringWords }: typeof RingModule = await import(built('ring'));
const { runPair }: typeof PairModule = await import(built('pair'));

const SECONDS = 0.1;
expectNoLeftOvers();

describe.each(['threads', 'processes'] as const)('%s', (memory) => {
  test.each([0, 4, 64, 100, 1000])(
    'a ring with records of %i bytes transfers each once and unchanged',
    async (recordBytes) => {
      const options = { memory, recordBytes, seconds: SECONDS, checksContents: true };
      const { messagesPerSecond, batchedMessagesPerSecond } = await measureRawRing(options);
      expect(messagesPerSecond).toBeGreaterThan(0);
      expect(batchedMessagesPerSecond).toBeGreaterThan(0);
    },
  );

  test('a ring is measured without checking contents', async () => {
    const { messagesPerSecond } = await measureRawRing({
      memory,
      recordBytes: 64,
      seconds: SECONDS,
    });
    expect(messagesPerSecond).toBeGreaterThan(0);
  });

  test('a wrong word is reported', async () => {
    const common = { recordWords: 16, checksContents: true } as const;
    const run = runPair(memory, ringWords(16), [
      { ...common, role: 'consume', seconds: SECONDS },
      { ...common, role: 'produce', batch: 1, checksContents: false },
    ]);
    await expect(run).rejects.toThrow('record 0 of the ring differs from the one that was sent');
  });

  test('a wrong record number is reported, even without checking contents', async () => {
    const common = { checksContents: false } as const;
    const run = runPair(memory, ringWords(32), [
      { ...common, role: 'consume', recordWords: 32, seconds: SECONDS },
      { ...common, role: 'produce', recordWords: 16, batch: 1 },
    ]);
    await expect(run).rejects.toThrow('record 1 of the ring differs from the one that was sent');
  });
});

test('a ring that is too large is refused before any process starts', async () => {
  const run = measureRawRing({ memory: 'processes', recordBytes: 2 ** 40, seconds: SECONDS });
  await expect(run).rejects.toThrow();
});
