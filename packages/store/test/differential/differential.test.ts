/** The engine alone replies as a real redis-server does. `cluster/differential.test.ts` tests whole stores. */

import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/table.js';
import { DRAWING_MS_MAX, expectNoDifference, requireRedisServer } from './draw.js';
import { EngineTarget } from './engine-target.js';
import { DRAWN } from './families/all.js';

/** Categories whose families are still to be written, or that have a test of their own: `scripts.test.ts`. */
const TO_COME = ['pubsub', 'scripting'];

describe('the differential test', () => {
  test('draws every command that the engine runs', () => {
    const missing = COMMANDS.filter(
      ({ name, run, category }) => run && !DRAWN.has(name) && !TO_COME.includes(category),
    );
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  test.for([2, 3] as const)(
    'finds no difference in RESP %i',
    { timeout: DRAWING_MS_MAX },
    async (protocol, context) => {
      requireRedisServer(context);
      await expectNoDifference(new EngineTarget(), protocol, 'engine', 5_000);
    },
  );
});
