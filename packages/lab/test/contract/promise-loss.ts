/** Promise 3: lost writes are reported, and no later write lands before the writer knows of the loss. */
import { setTimeout as wait } from 'node:timers/promises';
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backends.js';
import { PLACE } from './play-common.mjs';
import { begin, OWNER, onMachines, onStages, outcomes, tell, WRITER } from './scenes.js';
import type { Actor } from './stage.js';

export function promiseLoss(backend: Backend): void {
  describe('loss', () => {
    test('writes to a participant that is down are lost; after its restart they are ok once all losses are polled', async (context) => {
      await onMachines(backend, context, async (stage) => {
        const [owner, { puppet }] = await begin(stage);
        await owner.puppet.permit(8);
        await puppet.write(OWNER, 100, [1, 2], 8, 1);
        expect(outcomes(await puppet.completions())).toEqual(['1 ok']);
        await owner.kill();
        await puppet.write(OWNER, 102, [3], 8, 2);
        await puppet.write(OWNER, 103, [4], OPEN, 3);
        await puppet.read(OWNER, 100, 1, 4);

        const resumed = await stage.begin(OWNER, true);
        expect(resumed.incarnation).toBe(owner.incarnation + 1);
        expect(await resumed.puppet.permitted()).toBe(8);
        await puppet.write(OWNER, 104, [5], 8, 5);
        expect(await resumed.puppet.own(100, 5)).toEqual([1, 2, 0, 0, 0]);
        const lost = ['2 lost', '3 lost', '4 lost', '5 lost'];
        expect(outcomes(await puppet.completions())).toEqual(lost);

        await puppet.write(OWNER, 104, [6], 8, 6);
        await puppet.write(OWNER, 105, [7], 9, 7);
        await puppet.read(OWNER, 104, 1, 8);
        expect(outcomes(await puppet.completions())).toEqual(['6 ok', '7 refused', '8 ok']);
        expect(await puppet.fetched()).toEqual([6]);
        expect(await resumed.puppet.own(104, 1)).toEqual([6]);
      });
    });

    test('an owner restarts while it is written to: there is never a gap', async (context) => {
      let most = 0;
      await onMachines(backend, context, async (stage, seed) => {
        const rounds = backend.rounds({ shared: 0, simulated: 2000, machines: 6000 });
        const incarnations = 6;
        const writer = await stage.begin(WRITER);
        let owner = await stage.begin(OWNER);
        const writing = writer.play('gapWriter', { owner: OWNER, rounds, seed });
        for (let incarnation = 1; incarnation < incarnations; incarnation++) {
          owner.play('gapReader', { rounds });
          await stage.until(
            OWNER,
            PLACE.block + Math.floor((rounds * incarnation) / (incarnations + 1)),
            1,
          );
          await stage.aWhile();
          await owner.kill();
          await stage.aWhile();
          owner = await stage.begin(OWNER, true);
        }
        const reading = owner.play('gapReader', { rounds });
        const { lossesMax, ...written } = await writing.result<{ lossesMax: number }>();
        expect(written).toEqual({ wrong: [] });
        expect(await reading.result()).toEqual({ wrong: [] });
        most = Math.max(most, lossesMax);
      });
      expect(most).toBeGreaterThan(0);
      tell(backend, `up to ${most} posts lost at once`);
    });

    test.for([
      ['that the writer calls', OWNER, WRITER],
      ['that calls the writer', WRITER, OWNER],
    ] as const)(
      'writes to a frozen host (%s) are outstanding, then lost; and no old write lands after a new one',
      async ([, frozenOne, posterOne], context) => {
        const { openImpatient } = backend;
        if (openImpatient === undefined) context.skip('regions are never out of reach');
        else {
          await onStages({ ...backend, open: openImpatient }, async (stage) => {
            const actors = await begin(stage);
            const [frozen, poster] = [actors[frozenOne], actors[posterOne]];
            await frozen.puppet.permit(8);
            await frozen.pause();
            const { puppet } = poster;
            await puppet.write(frozenOne, 100, new Array(50_000).fill(1), 8, 1);
            // Long before it is given up, even on a busy machine.
            expect(await puppet.completions()).toEqual([]);
            await puppet.read(frozenOne, 100, 1, 2);
            await puppet.write(frozenOne, 100, [2], OPEN, 3);
            expect(await completionsOf(poster, 3)).toEqual(['1 lost', '2 lost', '3 lost']);
            expect(await puppet.hasEnded(frozenOne)).toBe(false);
            await puppet.write(frozenOne, 100, [3], 8, 4);
            expect(outcomes(await puppet.completions())).toEqual(['4 lost']);

            frozen.goOn();
            const written = await writeUntilOk(poster, frozenOne);
            expect(await frozen.puppet.own(100, 1)).toEqual([written]);
            await wait(200);
            expect(await frozen.puppet.own(100, 1)).toEqual([written]);
          });
        }
      },
    );
  });
}

async function completionsOf({ puppet }: Actor, count: number): Promise<string[]> {
  const found: string[] = [];
  while (found.length < count) found.push(...outcomes(await puppet.completions()));
  return found;
}

/** Writes increasing numbers until one is ok. */
async function writeUntilOk(poster: Actor, peer: number): Promise<number> {
  for (let tag = 10; ; tag++) {
    await poster.puppet.write(peer, 100, [tag], 8, tag);
    const [outcome] = await completionsOf(poster, 1);
    if (outcome === `${tag} ok`) return tag;
    await wait(5);
  }
}
