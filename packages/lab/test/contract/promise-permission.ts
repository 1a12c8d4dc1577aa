/** Promises 3 and 4: a write that is ok is visible to all, and landed before its permission was revoked. */

import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backends.js';
import { PLACE } from './play-common.mjs';
import {
  begin,
  isCaught,
  needsTwoCores,
  OWNER,
  onStages,
  outcomes,
  THIRD,
  tell,
  WRITER,
} from './scenes.js';
import type { Stage } from './stage.js';

export function promisePermission(backend: Backend): void {
  const { rounds } = backend;

  describe('permission', () => {
    test('a write under another guard is refused; an open write needs no permission', async () => {
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        const { puppet } = writer;
        await puppet.write(OWNER, 0, [1], 8, 1);
        expect(outcomes(await puppet.completions())).toEqual(['1 refused']);
        await owner.puppet.permit(8);
        expect(await owner.puppet.permitted()).toBe(8);
        await puppet.write(OWNER, 0, [1], 7, 1);
        await puppet.write(OWNER, 1, [2], 8, 2);
        await puppet.write(OWNER, 2, [3], OPEN, 3);
        expect(outcomes(await puppet.completions())).toEqual(['1 refused', '2 ok', '3 ok']);
        expect(await owner.puppet.own(1, 2)).toEqual([2, 3]);
      });
    });

    // Together more than a million revocations on each of the real memories.
    test.each([
      [1, 700_000],
      [7, 300_000],
      [60, 100_000],
    ])(
      'writes (words: %i) that are ok have landed before the revocation',
      async (words, shared) => {
        await onStages(backend, async (stage, seed) => {
          const race = { words, rounds: rounds({ shared, simulated: 60 }), seed };
          const { late, oks, raced } = await revocations(backend, stage, race);
          expect(late).toEqual([]);
          expect(oks).toBeGreaterThan(0);
          tell(
            backend,
            `${race.rounds} revocations, ${raced} of them during writes, ${oks} after a write that was ok`,
          );
        });
      },
    );

    const bugs = backend.isSimulated ? ['checksFirst'] : ['checksFirst', 'unfenced'];
    test.for(bugs)('a memory with a planted bug, %s, is caught', async (planted, context) => {
      needsTwoCores(backend, context);
      const caught = isCaught(backend, 40, async (stage, seed) => {
        const race = { words: 7, rounds: rounds({ shared: 50_000, simulated: 60 }), seed };
        return (await revocations(backend, stage, { ...race, planted })).late.length;
      });
      expect(await caught).toBe(true);
    });

    test('a writer that was paused is refused, and the sealed records do not change', async (context) => {
      if (backend.cantPause !== undefined) context.skip(backend.cantPause);
      const pauses = rounds({ shared: 60, simulated: 3, machines: 20 });
      await onStages(backend, async (stage) => {
        const [owner, writer] = await begin(stage);
        const bodyWords = rounds({ shared: 3000, simulated: 90, machines: 3000 });
        const blockWords = rounds({ shared: 200_000, simulated: 1000, machines: 200_000 });
        let firstPass = 1;
        for (let guard = 1; guard <= pauses; guard++) {
          await owner.puppet.permit(guard);
          const options = { owner: OWNER, guard, firstPass, bodyWords, blockWords };
          const writing = writer.play('appender', options);
          await stage.until(OWNER, PLACE.told, firstPass);
          await stage.aWhile();
          await writer.pause();
          const seal = owner.play('sealer', { guard: guard + 1, bodyWords });
          const sealed = await seal.result<{ pass: number; records: number; hash: number }>();
          writer.goOn();
          const ok = await writing.result<{ pass: number; records: number }>();
          expect([sealed.pass, sealed.pass - 1]).toContain(ok.pass);
          if (ok.pass === sealed.pass) expect(ok.records).toBeLessThanOrEqual(sealed.records);
          const after = owner.play('rehash', { records: sealed.records, bodyWords });
          expect(await after.result()).toBe(sealed.hash);
          firstPass = sealed.pass + 2;
        }
      });
    });
  });

  describe('litmus: both store, then load; they never both miss the other', () => {
    const guarded = { guard: 5, waits: true };
    const open = { guard: OPEN, waits: true };
    test.each([
      ['permit', 'write', 'permitLitmus', {}],
      ['write under a guard', 'the same', 'writeLitmus', guarded],
      ['open write, once it is ok', 'the same', 'writeLitmus', open],
      ['write, then read, both at a third', 'the same', 'thirdPartyLitmus', { third: THIRD }],
      ['my own word, then a read of yours', 'the same', 'ownLitmus', {}],
    ])('%s | %s', async (_mine, _yours, player, options) => {
      await onStages(backend, async (stage) => {
        expect(await bothMissed(backend, stage, player, options)).toBe(0);
      });
    });

    test('without waiting for completions both do miss, on real memory', async (context) => {
      if (backend.isSimulated) context.skip('writes to a simulated memory never land at once');
      needsTwoCores(backend, context);
      const caught = isCaught(backend, 20, (stage) =>
        bothMissed(backend, stage, 'writeLitmus', { guard: OPEN, waits: false }),
      );
      expect(await caught).toBe(true);
    });
  });
}

interface Race {
  readonly words: number;
  readonly rounds: number;
  readonly seed: number;
  readonly planted?: string;
}

/** Lets a writer and an owner race. @returns the writes that were ok and yet missing after the revocation */
async function revocations(
  backend: Backend,
  stage: Stage,
  race: Race,
): Promise<{ late: string[]; oks: number; raced: number }> {
  const [owner, writer] = await begin(stage);
  const { planted, ...common } = race;
  const pace = backend.isSimulated ? { looksMax: 60, outstandingMax: 4 } : { outstandingMax: 8 };
  const writing = writer.play('stubbornWriter', { ...common, ...pace, owner: OWNER, planted });
  const revoking = owner.play('revoker', { ...common, ...pace, writer: WRITER });
  const { seals, raced } = await revoking.result<{ seals: Int32Array; raced: number }>();
  const { oks } = await writing.result<{ oks: Int32Array }>();
  const late: string[] = [];
  for (let round = 0; round < race.rounds; round++) {
    if (oks[round] <= seals[round]) continue;
    late.push(
      `${oks[round]} was ok, but the owner read ${seals[round]} when it revoked guard ${round + 1}`,
    );
  }
  return { late, oks: oks.filter((number) => number > 0).length, raced };
}

async function bothMissed(
  backend: Backend,
  stage: Stage,
  player: string,
  options: object,
): Promise<number> {
  const [owner, writer] = await begin(stage);
  // On some memories a region exists only while its owner runs.
  if ('third' in options) await stage.begin(THIRD);
  const rounds = backend.rounds({ shared: 150_000, simulated: 200 });
  const common = { ...options, rounds, ...(backend.isSimulated && { looksMax: 20 }) };
  const mine = owner.play(player, { ...common, peer: WRITER, isOwner: true, mine: 0, yours: 1 });
  const yours = writer.play(player, { ...common, peer: OWNER, isOwner: false, mine: 1, yours: 0 });
  const seen = await mine.result<Uint8Array>();
  const seenByOther = await yours.result<Uint8Array>();
  return seen.filter((sight, round) => sight === 0 && seenByOther[round] === 0).length;
}
