/** The hints: `hasEnded` and `wake`. */
import { setTimeout as wait } from 'node:timers/promises';
import { HOST, PARKED } from 'tram-multicast/internal/memory/arena.js';
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backends.js';
import { PLACE } from './play-common.mjs';
import { begin, needsTwoCores, OWNER, onShared, onStages, THIRD, tell, WRITER } from './scenes.js';
import { isShared } from './stage.js';

export function promiseHints(backend: Backend): void {
  describe('hints', () => {
    test('hasEnded: false while it runs, true once the platform knows, false after a restart', async () => {
      let known = 0;
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        expect(await writer.puppet.hasEnded(OWNER)).toBe(false);
        await owner.kill();
        if (isShared(stage)) {
          expect(await writer.puppet.hasEnded(OWNER)).toBe(false);
          stage.noteEnd(OWNER);
        }
        if (!backend.isShared && !backend.isSimulated) {
          while (!(await writer.puppet.hasEnded(OWNER))) await stage.aWhile();
        }
        if (await writer.puppet.hasEnded(OWNER)) known++;
        expect(await writer.puppet.hasEnded(THIRD)).toBe(false);
        await stage.begin(OWNER);
        expect(await writer.puppet.hasEnded(OWNER)).toBe(false);
      });
      expect(known).toBeGreaterThan(0);
    });

    const noSleep = backend.isSimulated
      ? 'in the simulated memory only time wakes a participant'
      : 'a host on a machine of its own sleeps on its network';

    test.for([
      [1, 20_000],
      [2, 5000],
    ] as const)(
      'a host (wakers: %i, times: %i) never oversleeps',
      async ([count, each], context) => {
        await onShared(backend, context, noSleep, async (stage) => {
          const wakers = [WRITER, THIRD].slice(0, count);
          const host = await stage.begin(OWNER);
          const sleeping = host.play('sleeper', { wakers, rounds: each });
          const waking = await Promise.all(
            wakers.map(async (waker, place) => {
              const actor = await stage.begin(waker);
              return actor.play('waker', { sleeper: OWNER, place, rounds: each, seed: waker });
            }),
          );
          for (const playing of waking) await playing.result();
          const { sleeps } = await sleeping.result<{ sleeps: number }>();
          expect(sleeps).toBeGreaterThan(0);
          tell(backend, `${count} × ${each} wakes, ${sleeps} sleeps`);
        });
      },
    );

    test('a planted bug, a waker that checks before it marks the work, makes a host oversleep', async (context) => {
      needsTwoCores(backend, context);
      await onShared(backend, context, noSleep, async (stage) => {
        const [host, waker] = await begin(stage);
        let overslept = 0;
        for (let attempt = 0; attempt < 200 && overslept === 0; attempt++) {
          await host.puppet.setOwn(PLACE.told, 0);
          await waker.puppet.setOwn(PLACE.answered, 0);
          const common = { rounds: 200, seed: attempt };
          const sleeping = host.play('sleeper', { ...common, wakers: [WRITER], sleepUs: 20_000 });
          const planted = 'wakesCarelessly';
          await waker.play('waker', { ...common, sleeper: OWNER, place: 0, planted }).result();
          ({ overslept } = await sleeping.result<{ overslept: number }>());
        }
        expect(overslept).toBeGreaterThan(0);
      });
    });

    test('only an urgent wake wakes a sleeping host', async (context) => {
      await onShared(backend, context, noSleep, async (stage) => {
        const [host, waker] = await begin(stage);
        const sleeping = host.play('sleeper', { wakers: [WRITER], rounds: 1 });
        const parked = stage.map.host(stage.map.hostOf(OWNER)) + HOST.parked;
        const isParked = () => Atomics.load(stage.arena.words, parked) === PARKED.parked;
        while (!isParked()) await wait(1);
        const runs = stage.map.region(OWNER) + PLACE.block;
        const before = stage.arena.words[runs];
        await waker.puppet.write(OWNER, PLACE.told, [1], OPEN, 1);
        await waker.puppet.wake(OWNER, false);
        expect(isParked()).toBe(true);
        await wait(50);
        expect(isParked()).toBe(true);
        expect(stage.arena.words[runs]).toBe(before);
        await waker.puppet.wake(OWNER, true);
        await sleeping.result();
        expect(await waker.puppet.own(PLACE.answered, 1)).toEqual([1]);
      });
    });
  });
}
