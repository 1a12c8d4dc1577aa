/**
 * What the raw measurements claim to have moved, they have moved; and whatever happens, nothing stays
 * behind. The sides are built JavaScript, so this runs on dist/.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import type * as RawPairModule from '../../../src/bench/raw/pair.js';
import type * as PingPongModule from '../../../src/bench/raw/ping-pong.js';
import type * as RawRingModule from '../../../src/bench/raw/ring.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/${name}.js`, import.meta.url).href;
const { measurePingPong }: typeof PingPongModule = await import(built('raw/ping-pong'));
const { measureRawRing, ringWords }: typeof RawRingModule = await import(built('raw/ring'));
const { runPair }: typeof RawPairModule = await import(built('raw/pair'));

const MEMORIES = ['threads', 'processes'] as const;
const SECONDS = 0.2;

function files(): string[] {
  return readdirSync('/dev/shm').filter((name) => name.startsWith(`tram-bench-${process.pid}-`));
}

/** The processes that this one has started and that have not ended. */
function children(): number[] {
  const list = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return list.split(' ').filter(Boolean).map(Number);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

const childrenBefore = children();

afterEach(() => {
  expect(files()).toEqual([]);
  expect(children()).toEqual(childrenBefore);
});

describe.each(MEMORIES)('%s', (memory) => {
  test.each([0, 4, 64, 100, 1000])(
    'a ring of %i bytes loses, doubles and changes nothing',
    async (recordBytes) => {
      const options = { memory, recordBytes, seconds: SECONDS, checksContents: true };
      const { messagesPerSecond, batchedMessagesPerSecond } = await measureRawRing(options);
      expect(messagesPerSecond).toBeGreaterThan(0);
      expect(batchedMessagesPerSecond).toBeGreaterThan(0);
    },
  );

  test('a ring is measured without looking at contents', async () => {
    const { messagesPerSecond } = await measureRawRing({
      memory,
      recordBytes: 64,
      seconds: SECONDS,
    });
    expect(messagesPerSecond).toBeGreaterThan(0);
  });

  test('a round trip is measured', async () => {
    const { roundTripNsP50, roundTripNsMean } = await measurePingPong({ memory, seconds: SECONDS });
    expect(roundTripNsP50).toBeGreaterThan(0);
    expect(roundTripNsMean).toBeGreaterThan(0);
  });

  test('a wrong word is noticed', async () => {
    const common = { recordWords: 16, checksContents: true } as const;
    const run = runPair(memory, ringWords(16), [
      { ...common, role: 'consume', seconds: SECONDS },
      { ...common, role: 'produce', batch: 1, checksContents: false },
    ]);
    await expect(run).rejects.toThrow('record 0 of the ring is not what was sent');
  });

  test('a wrong number is noticed, even if nobody looks at contents', async () => {
    const common = { checksContents: false } as const;
    const run = runPair(memory, ringWords(32), [
      { ...common, role: 'consume', recordWords: 32, seconds: SECONDS },
      { ...common, role: 'produce', recordWords: 16, batch: 1 },
    ]);
    await expect(run).rejects.toThrow('record 1 of the ring is not what was sent');
  });
});

test('two sides that wait for each other give up', async () => {
  const run = runPair('processes', ringWords(16), [{ role: 'pong' }, { role: 'pong' }]);
  await expect(run).rejects.toThrow('has not moved');
});

test.each([0, 1])('when side %i is killed, the other one ends', async (side) => {
  const run = measurePingPong({ memory: 'processes', seconds: 600 });
  const failure = expect(run).rejects.toThrow('ended before its result: SIGKILL');
  await until(() => children().length === childrenBefore.length + 2);
  // Both have mapped the file once it is gone.
  await until(() => files().length === 0);
  const started = children().filter((pid) => !childrenBefore.includes(pid));
  process.kill(started[side], 'SIGKILL');
  await failure;
});

test('no thread is left that would keep a program from ending, however the run went', async () => {
  const program = `
    import { runPair } from ${JSON.stringify(built('raw/pair'))};
    await runPair('threads', 64, [{ role: 'ping', seconds: 0.01 }, { role: 'pong' }]);
    const common = { recordWords: 16, batch: 1, seconds: 600 };
    const failing = runPair('threads', ${ringWords(16)}, [
      { ...common, role: 'consume', checksContents: true },
      { ...common, role: 'produce', checksContents: false },
    ]);
    await failing.catch((error) => console.log(error.message));`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  expect((await run).stdout).toContain('is not what was sent');
});

test('what can not be had is refused before anything is started', async () => {
  const run = measureRawRing({ memory: 'processes', recordBytes: 2 ** 40, seconds: SECONDS });
  await expect(run).rejects.toThrow();
});
