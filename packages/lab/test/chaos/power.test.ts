/** A short round of `npm run chaos -- --power` on processes. */
import { expect, test } from 'vitest';
import { runChaos } from './run-chaos.js';

test('power cuts under load and during a recovery', { timeout: 120_000 }, async () => {
  const round = await runChaos('--power --seed 24 --trees depth --cuts 2 --clients 2');
  expect(round.cuts).toBeGreaterThan(0);
  expect(round.startCuts).toBeGreaterThan(0);
  expect(round.eras).toBeGreaterThan(round.cuts);
  expect(round.acknowledged).toBeGreaterThan(0);
});
