/** The warm-up of a host, in the thread of the test. Other tests turn it off (`vitest.config.ts`), except for some of chaos. */
import { expect, test } from 'vitest';
import { WarmUp } from '../../src/hosting/warm-up.js';
import { ORDERS } from '../../src/protocol/edges.js';

test.each(ORDERS)('it plays all its rounds, with the order %s', (order) => {
  const warmUp = new WarmUp(order);
  warmUp.begin();
  expect(warmUp.isComplete).toBe(false);
  while (!warmUp.isComplete) warmUp.playRound();
});
