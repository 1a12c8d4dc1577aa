/** A store replies over TCP as a real redis-server does: to drawn commands, to transactions of them, and to scripts. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Store } from '../../src/index.js';
import { Connection } from '../differential/connection.js';
import { DRAWING_MS_MAX, expectNoDifference, requireRedisServer } from '../differential/draw.js';
import { differencesOfScripts } from '../differential/scripts-run.js';

describe.for([
  ['one shard', 1, 'one shard'],
  ['four shards', 4, 'several shards'],
] as const)('a store of %s', ([, shards, kind]) => {
  let store: Store;
  let connection: Connection;

  beforeAll(async () => {
    store = await Store.start({ port: 0, shards, replicas: 1 });
    connection = await Connection.open({ port: store.port! });
  });

  afterAll(async () => {
    connection.close();
    await store.close();
  });

  test.for([2, 3] as const)(
    'replies as Redis in RESP %i',
    { timeout: DRAWING_MS_MAX },
    async (protocol, context) => {
      requireRedisServer(context);
      await expectNoDifference(connection, protocol, kind, 1_500);
    },
  );

  test.for([2, 3] as const)('runs scripts as Redis in RESP %i', async (protocol, context) => {
    requireRedisServer(context);
    expect(await differencesOfScripts(connection, protocol)).toEqual([]);
  });
});
