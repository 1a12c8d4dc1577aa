/** A short round of `npm run chaos -- --memory machines`. */
import { beforeEach, expect, test } from 'vitest';
import { needLibfabric } from '../../../tram/test/memory/fabric/present.js';
import { needMachines } from './need-machines.js';
import { runChaos } from './run-chaos.js';

beforeEach((context) => {
  needMachines(context);
  needLibfabric(context);
});

test('a short round with most kinds of faults', { timeout: 240_000 }, async () => {
  const round = await runChaos(
    '--memory machines --seed 4 --trees base --faults 14 --seconds 5 --clients 3',
  );
  expect(Object.keys(round.faults).length).toBeGreaterThan(10);
  expect(round.acknowledged).toBeGreaterThan(0);
  expect(round.audits).toBeGreaterThan(0);
  expect(round.order).toBe('strict');
  expect(round.byTicks).toBeGreaterThan(0);
  expect(round.deferred).toBeGreaterThan(round.byTicks);
  expect(round.abandoned).toBeGreaterThan(0);
});
