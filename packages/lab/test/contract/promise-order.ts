/** Promises 1 and 2: order, whole words, completions; and writes outside of a region are refused. */

import { FAILURES_ONLY, OPEN } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backends.js';
import { PLACE } from './play-common.mjs';
import { begin, OWNER, onShared, onStages, outcomes, THIRD, tell } from './scenes.js';
import type { Actor } from './stage.js';

/** All bits below that of `FAILURES_ONLY`. */
const LARGEST_TAG = FAILURES_ONLY - 1;

export function promiseOrder(backend: Backend): void {
  const { rounds } = backend;

  describe('order and words', () => {
    test.each([1, 3, 20, 400])(
      'blocks of %i words land before later writes; words are never torn',
      async (words) => {
        const count = rounds({ shared: 20_000, simulated: 100 });
        await onStages(backend, async (stage, seed) => {
          const actors = [...(await begin(stage)), await stage.begin(THIRD)];
          const [owner, writer, third] = actors as [Actor, Actor, Actor];
          const reads = owner.play('orderReader', { words, rounds: count });
          const peers = [OWNER, THIRD];
          const writes = writer.play('orderWriter', { peers, words, rounds: count, seed });
          expect(await writes.result()).toEqual({ wrong: [] });
          expect(await reads.result()).toMatchObject({ wrong: [] });
          expect(await third.puppet.own(PLACE.told, 1)).toEqual([count]);
        });
      },
    );

    test('words are not torn in blocks that the network must split', async (context) => {
      if (backend.isSimulated || backend.isShared) context.skip('there is no network');
      await onStages(backend, async (stage, seed) => {
        const [owner, writer] = await begin(stage);
        const options = { words: 20_000, rounds: 2000 };
        const reads = owner.play('orderReader', options);
        const writes = writer.play('orderWriter', { ...options, peers: [OWNER], seed });
        expect(await writes.result()).toEqual({ wrong: [] });
        const { wrong, halfWay } = await reads.result<{ wrong: string[]; halfWay: number }>();
        expect(wrong).toEqual([]);
        expect(halfWay).toBeGreaterThan(0);
        tell(backend, `${halfWay} times a block was seen incomplete`);
      });
    });

    test.for([
      [20, OPEN],
      [20, 5],
      [1000, OPEN],
      [1000, 5],
    ] as const)(
      'the first of %i words under guard %i lands last',
      async ([words, guard], context) => {
        const missing = 'the contract does not promise it; only shared memory writes in this way';
        await onShared(backend, context, missing, async (stage) => {
          const [owner, writer] = await begin(stage);
          await owner.puppet.permit(guard);
          const count = words > 100 ? 100_000 : 1_000_000;
          const reads = owner.play('headReader', { words, rounds: count });
          await writer.play('blockWriter', { reader: OWNER, words, rounds: count, guard }).result();
          expect(await reads.result()).toMatchObject({ wrong: [] });
        });
      },
    );

    test('a write copies its source, and a read fetches the words that were requested', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        await writer.puppet.writeAndForget(OWNER, 10, [1, 2, 3, 4], 1, 2, 1);
        expect(await owner.puppet.own(9, 4)).toEqual([0, 2, 3, 0]);
        await owner.puppet.setOwn(12, 4);
        await writer.puppet.read(OWNER, 10, 3, 2);
        expect(outcomes(await writer.puppet.completions())).toEqual(['1 ok', '2 ok']);
        expect(await writer.puppet.fetched()).toEqual([2, 3, 4]);
      });
    });

    test('a stage on machines: the fire-and-forget writes of an actor have landed when its job is done', async (context) => {
      if (backend.isSimulated || backend.isShared) context.skip('there is no network');
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        const absent = owner.play('absentee', { ms: 300 });
        await stage.until(OWNER, PLACE.told, 1);
        await writer.puppet.write(OWNER, PLACE.answered, [7], OPEN, 0);
        expect(stage.word(OWNER, PLACE.answered)).toBe(7);
        await absent.result();
      });
    });

    test('any number of completions wait until they are polled, with their tags', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        await writer.puppet.writeMany(OWNER, 10, 1000);
        await writer.puppet.write(OWNER, 11, [1], OPEN, LARGEST_TAG);
        const completions = await writer.puppet.completions();
        const tags = Array.from({ length: 1000 }, (_, i) => i + 1);
        expect(completions.map(({ tag }) => tag)).toEqual([...tags, LARGEST_TAG]);
        expect(completions.every(({ peer, outcome }) => peer === OWNER && outcome === 'ok')).toBe(
          true,
        );
        expect(await owner.puppet.own(10, 2)).toEqual([1000, 1]);
        expect(await writer.puppet.completions()).toEqual([]);
      });
    });

    test('of a write that reports only failures, a failure is reported with its tag', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        const [permitted, revoked, tag] = [5, 7, FAILURES_ONLY | 1];
        await owner.puppet.permit(permitted);
        await writer.puppet.write(OWNER, 10, [1], permitted, tag);
        await writer.puppet.write(OWNER, 11, [2], revoked, tag);
        const failures = (await writer.puppet.completions()).filter(
          ({ outcome }) => outcome !== 'ok',
        );
        expect(failures).toMatchObject([{ tag, guard: revoked, outcome: 'refused' }]);
      });
    });

    test('scratch is empty, and private', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        await writer.puppet.scratch(8);
        expect(await writer.puppet.freshScratch(8)).toEqual(new Array(8).fill(0));
        expect(await owner.puppet.freshScratch(8)).toEqual(new Array(8).fill(0));
        expect(await owner.puppet.isEmpty()).toBe(true);
        expect(await writer.puppet.isEmpty()).toBe(true);
      });
    });

    test('writes and reads outside of the region are refused', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        const words = await owner.puppet.ownWords();
        const { puppet } = writer;
        for (const [at, count] of [
          [-1, 1],
          [-1, 2],
          [0, 0],
          [0, words + 1],
          [words - 1, 2],
          [words, 1],
        ] as const) {
          const values = new Array(count).fill(1);
          await expect(puppet.write(OWNER, at, values, OPEN, 1)).rejects.toThrow(RangeError);
          await expect(puppet.write(OWNER, at, values, 5, 1)).rejects.toThrow(RangeError);
          await expect(puppet.read(OWNER, at, count, 1)).rejects.toThrow(RangeError);
        }
        expect(await owner.puppet.isEmpty()).toBe(true);
        expect(await puppet.completions()).toEqual([]);
        await puppet.write(OWNER, words - 1, [7], OPEN, 1);
        expect(await owner.puppet.own(words - 1, 1)).toEqual([7]);
      });
    });
  });
}
