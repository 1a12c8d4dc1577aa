/** Records, built on promise 2: a reader finds only complete records, even if their writer is killed. */

import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import type { Backend } from './backends.js';
import { PLACE } from './play-common.mjs';
import { begin, isCaught, needsTwoCores, OWNER, onStages, tell, WRITER } from './scenes.js';
import type { Stage } from './stage.js';

export function promiseRecords(backend: Backend): void {
  const { rounds } = backend;

  describe('records', () => {
    const rings = [
      { of: 'small records, one a write', ringWords: 256, bodyWordsMax: 15, batchMax: 1 },
      { of: 'small records in batches', ringWords: 512, bodyWordsMax: 12, batchMax: 8 },
      { of: 'records that fill the ring', ringWords: 64, bodyWordsMax: 59, batchMax: 2 },
      { of: 'large records', ringWords: 8192, bodyWordsMax: 3000, batchMax: 1 },
      { of: 'large records in batches', ringWords: 16384, bodyWordsMax: 2000, batchMax: 6 },
    ];
    const recordsOf = ({ ringWords, bodyWordsMax }: (typeof rings)[number]) =>
      bodyWordsMax > 1000
        ? rounds({ shared: 5000, simulated: 30 })
        : rounds({ shared: ringWords * 200, simulated: 200 });
    const variants = [
      { guard: 5, usesScratch: true },
      { guard: OPEN, usesScratch: true },
      { guard: 5, usesScratch: false },
      { guard: OPEN, usesScratch: false },
    ];

    async function runRing(stage: Stage, ring: (typeof rings)[number], options: object) {
      const [owner, writer] = await begin(stage);
      return async (variant: (typeof variants)[number], epoch: number, records: number) => {
        const common = { ...ring, ...variant, ...options, epoch, records, seed: epoch };
        await owner.puppet.permit(variant.guard);
        const writes = writer.play('ringWriter', { ...common, reader: OWNER });
        const reads = owner.play('ringReader', { ...common, writer: WRITER });
        const read = await reads.result<{ wrong: string[] }>();
        const written = await writes.result<{ wrong: string[]; timesFull: number }>();
        return { ...written, wrong: [...read.wrong, ...written.wrong] };
      };
    }

    test.each(rings)(
      'a ring of $of: the reader finds all of them, complete and in order',
      async (ring) => {
        const records = recordsOf(ring);
        await onStages(backend, async (stage, seed) => {
          const race = await runRing(stage, ring, {});
          const tried = backend.isSimulated ? [variants[seed % variants.length]] : variants;
          let timesFull = 0;
          for (const [i, variant] of tried.entries()) {
            const result = await race(variant, seed + i + 1, records);
            expect(result.wrong).toEqual([]);
            timesFull += result.timesFull;
          }
          // The reader sometimes keeps up with the writer, but not all the time.
          expect(timesFull).toBeGreaterThan(0);
        });
      },
    );

    test('a planted bug, a reader that checks only the ends of a record, is caught', async (context) => {
      needsTwoCores(backend, context);
      if (backend.landsInOrder) context.skip('words land in order: the end lands last');
      const ring = rings[2];
      const caught = isCaught(backend, 40, async (stage) => {
        const race = await runRing(stage, ring, { trusts: 'ends' });
        return (await race(variants[3], 1, recordsOf(ring))).wrong.length;
      });
      expect(await caught).toBe(true);
    });

    test('records of hundreds of KiB are seen incomplete, and not taken until they are complete', async (context) => {
      if (backend.isSimulated || backend.isShared) context.skip('the rings above show it');
      const ring = { of: 'huge records', ringWords: 1 << 17, bodyWordsMax: 100_000, batchMax: 1 };
      const records = 60;
      await onStages(backend, async (stage) => {
        const race = await runRing(stage, ring, {});
        expect((await race(variants[2], 1, records)).wrong).toEqual([]);
      });
      const caught = isCaught(backend, 10, async (stage) => {
        const race = await runRing(stage, ring, { trusts: 'head' });
        return (await race(variants[2], 1, records)).wrong.length;
      });
      expect(await caught).toBe(true);
    });

    test('any part of a record is not taken for a record', async () => {
      await onStages(backend, async (stage, seed) => {
        const [owner, writer] = await begin(stage);
        const records = rounds({ shared: 30_000, simulated: 40 });
        const options = { records, bodyWordsMax: 12, seed };
        const writes = writer.play('scatterWriter', { ...options, reader: OWNER });
        const reads = owner.play('scatterReader', { ...options, writer: WRITER });
        expect(await reads.result()).toMatchObject({ wrong: [] });
        await writes.result();
      });
    });

    test.each([
      ['small', 16],
      ['large', rounds({ shared: 20_000, simulated: 300, machines: 20_000 })],
    ])(
      'a writer of %s records is killed: no incomplete record is taken, and the next incarnation goes on',
      async (_size, bodyWords) => {
        await onStages(backend, async (stage) => {
          const incarnations = rounds({ shared: 13, simulated: 5, machines: 7 });
          const lastRecords = 20;
          const owner = await stage.begin(OWNER);
          const reads = owner.play('incarnationReader', {
            lastEpoch: incarnations,
            lastRecords,
            bodyWords,
          });
          for (let epoch = 1; epoch <= incarnations; epoch++) {
            const writer = await stage.begin(WRITER);
            expect(writer.incarnation).toBe(epoch);
            const isLast = epoch === incarnations;
            const records = isLast ? lastRecords : -1;
            writer.play('incarnationWriter', { reader: OWNER, epoch, bodyWords, records });
            if (isLast) break;
            await stage.until(OWNER, PLACE.told, epoch);
            await stage.aWhile();
            await writer.kill();
          }
          const read = await reads.result<{ taken: number; leftHalf: number }>();
          expect(read).toMatchObject({ wrong: [] });
          expect(read.taken).toBeGreaterThan(0);
          tell(
            backend,
            `of ${incarnations - 1} writers killed, ${read.leftHalf} left half a record`,
          );
        });
      },
    );
  });
}
