/** The same scripts at a real redis-server and at the engine: the replies have to be the same, in RESP 2 and 3. */

import { expect, test } from 'vitest';
import { requireRedisServer } from './draw.js';
import { EngineTarget } from './engine-target.js';
import { differencesOfScripts } from './scripts-run.js';

test.for([2, 3] as const)(
  'scripts reply as they do in Redis, in RESP %i',
  { timeout: 60_000 },
  async (protocol, context) => {
    requireRedisServer(context);
    expect(await differencesOfScripts(new EngineTarget(), protocol)).toEqual([]);
  },
);
