/** A short round of `npm run chaos -- --memory machines --unauthenticated`. */
import { beforeEach, expect, test } from 'vitest';
import { needLibfabric } from '../../../tram/test/memory/fabric/present.js';
import { needMachines } from './need-machines.js';
import { runChaos } from './run-chaos.js';

beforeEach((context) => {
  needMachines(context);
  needLibfabric(context);
});

test('unauthenticated peers at all ports do not disturb the cluster', {
  timeout: 120_000,
}, async () => {
  const round = await runChaos(
    '--memory machines --seed 4 --unauthenticated 5 --seconds 5 --clients 3',
    true,
  );
  expect(round.acknowledged).toBeGreaterThan(0);
  expect(round.unauthenticated.refusals.wrongProof).toBeGreaterThan(0);
});
