/** Promise 5: a restart with an empty region, or with the region as it was. */

import { OPEN, RETIRED } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backends.js';
import { PLACE } from './play-common.mjs';
import { begin, OWNER, onStages, outcomes, WRITER } from './scenes.js';

/** The place of the row in a region (`layout.ts`). */
const ROW = 0;

export function promiseRestart(backend: Backend): void {
  const appending = {
    owner: OWNER,
    guard: 1,
    firstPass: 1,
    bodyWords: backend.rounds({ shared: 500, simulated: 40, machines: 500 }),
    blockWords: backend.rounds({ shared: 50_000, simulated: 400, machines: 50_000 }),
  };
  const { bodyWords } = appending;
  // promise-loss.ts has the promises for these memories.
  const isOutOfReach =
    backend.isSimulated || backend.isShared
      ? ''
      : 'a region is out of reach while its owner is down';

  describe('restart', () => {
    test('fresh: empty, in a higher incarnation, and earlier guards are refused', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        await owner.puppet.permit(8);
        await writer.puppet.write(OWNER, 100, [1, 2, 3], 8, 1);
        expect(await owner.puppet.own(100, 3)).toEqual([1, 2, 3]);
        expect(outcomes(await writer.puppet.completions())).toEqual(['1 ok']);
        await owner.kill();

        const reborn = await stage.begin(OWNER);
        expect(reborn.incarnation).toBeGreaterThan(owner.incarnation);
        expect(await reborn.puppet.isEmpty()).toBe(true);
        expect(await reborn.puppet.permitted()).toBe(RETIRED);
        await writer.puppet.write(OWNER, 100, [1, 2, 3], 8, 2);
        expect(outcomes(await writer.puppet.completions())).toEqual(['2 refused']);

        await reborn.puppet.permit(9);
        await writer.puppet.write(OWNER, 200, [4], 8, 3);
        await writer.puppet.write(OWNER, 300, [5], 9, 4);
        expect(outcomes(await writer.puppet.completions())).toEqual(['3 refused', '4 ok']);
        expect(await reborn.puppet.own(300, 1)).toEqual([5]);
      });
    });

    test('fresh: a writer at work is refused from then on', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        await owner.puppet.permit(1);
        const writing = writer.play('appender', appending);
        await stage.until(OWNER, PLACE.told, 2);
        await owner.kill();
        const reborn = await stage.begin(OWNER);
        await writing.result();
        expect(await reborn.puppet.permitted()).toBe(RETIRED);
        await reborn.puppet.permit(2);
        await writer.puppet.write(OWNER, PLACE.told, [7], 1, 1);
        await writer.puppet.write(OWNER, PLACE.told, [8], 2, 2);
        expect(outcomes(await writer.puppet.completions())).toEqual(['1 refused', '2 ok']);
        expect(await reborn.puppet.own(PLACE.told, 1)).toEqual([8]);
      });
    });

    test('fresh: when any word is cleared, the row is cleared and nothing is permitted', async () => {
      await onStages(backend, async (stage) => {
        const [first, watcher] = await begin(stage);
        let owner = first;
        const restarts = backend.rounds({ shared: 10, simulated: 10, machines: 5 });
        for (let guard = 1; guard <= restarts; guard++) {
          await owner.puppet.permit(guard);
          await owner.puppet.setOwn(ROW, 99);
          await owner.puppet.setOwn(PLACE.told, 99);
          const watching = watcher.play('watcher', { owner: OWNER, row: ROW, guard });
          await owner.kill();
          owner = await stage.begin(OWNER);
          expect(await watching.result()).toEqual({ row: 0, outcome: 'refused' });
        }
      });
    });

    test('the region of a participant that is down is read and written as before; it resumes with all of it', async (context) => {
      if (isOutOfReach) context.skip(isOutOfReach);
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        await owner.puppet.permit(8);
        await owner.puppet.setOwn(50, 11);
        await writer.puppet.write(OWNER, 100, [1, 2], 8, 1);
        await owner.kill();

        await writer.puppet.write(OWNER, 102, [3], 8, 2);
        await writer.puppet.write(OWNER, 103, [4], OPEN, 3);
        await writer.puppet.write(OWNER, 104, [5], 7, 4);
        await writer.puppet.read(OWNER, 50, 1, 5);
        expect(outcomes(await writer.puppet.completions())).toEqual([
          '1 ok',
          '2 ok',
          '3 ok',
          '4 refused',
          '5 ok',
        ]);
        expect(await writer.puppet.fetched()).toEqual([11]);

        const resumed = await stage.begin(OWNER, true);
        expect(resumed.incarnation).toBe(owner.incarnation + 1);
        expect(await resumed.puppet.permitted()).toBe(8);
        expect(await resumed.puppet.own(50, 1)).toEqual([11]);
        expect(await resumed.puppet.own(100, 4)).toEqual([1, 2, 3, 4]);
        await writer.puppet.write(OWNER, 104, [6], 8, 6);
        expect(outcomes(await writer.puppet.completions())).toEqual(['6 ok']);
        expect(await resumed.puppet.own(104, 1)).toEqual([6]);
      });
    });

    test('writes to an owner that is killed go on, and it resumes', async (context) => {
      if (isOutOfReach) context.skip(isOutOfReach);
      await onStages(backend, async (stage) => {
        const writer = await stage.begin(WRITER);
        let owner = await stage.begin(OWNER);
        await owner.puppet.permit(1);
        const writing = writer.play('appender', appending);
        await stage.until(OWNER, PLACE.told, 1);
        for (let incarnation = 2; incarnation < 6; incarnation++) {
          await owner.kill();
          await stage.until(OWNER, PLACE.told, stage.word(OWNER, PLACE.told) + 1);
          owner = await stage.begin(OWNER, true);
          expect(owner.incarnation).toBe(incarnation);
          expect(await owner.puppet.permitted()).toBe(1);
        }
        const seal = owner.play('sealer', { guard: 2, bodyWords });
        const sealed = await seal.result<{ pass: number; records: number }>();
        const ok = await writing.result<{ pass: number; records: number }>();
        expect([sealed.pass, sealed.pass - 1]).toContain(ok.pass);
        if (ok.pass === sealed.pass) expect(ok.records).toBeLessThanOrEqual(sealed.records);
      });
    });
  });
}
