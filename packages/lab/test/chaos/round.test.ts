/** A short round of `npm run chaos` on processes. */
import { expect, test } from 'vitest';
import { runChaos } from './run-chaos.js';

test('a short round with one fault of each kind', { timeout: 120_000 }, async () => {
  const round = await runChaos(
    '--seed 4 --trees base --hosts 3 --faults 12 --seconds 6 --clients 3',
    true,
  );
  expect(Object.keys(round.faults)).toHaveLength(12);
  expect(round.acknowledged).toBeGreaterThan(0);
  expect(round.audits).toBeGreaterThan(0);
  expect(round.order).toBe('strict');
  expect(round.byTicks).toBeGreaterThan(0);
  expect(round.deferred).toBeGreaterThan(round.byTicks);
  expect(round.abandoned).toBeGreaterThan(0);
});
