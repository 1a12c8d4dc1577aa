/** The warm-up of a host, in the thread of the test. Other tests turn it off (`vitest.config.ts`), except for some of chaos. */
import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/config.js';
import { ClusterContext } from '../../src/hosting/cluster-context.js';
import { WarmUp } from '../../src/hosting/warm-up.js';
import { NO_SALT } from '../../src/memory/record.js';
import { threadsArena } from '../../src/memory/threads.js';
import { ORDERS } from '../../src/protocol/edges.js';

test.each(ORDERS)('it plays all its turns, with the order %s', (order) => {
  const config = resolveConfig({ order, groups: 8 }, NO_SALT);
  const arena = threadsArena(new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4));
  const warmUp = new WarmUp(ClusterContext.create(config, arena));
  warmUp.begin();
  expect(warmUp.isComplete).toBe(false);
  while (!warmUp.isComplete) warmUp.playTurn();
});
