/** `tram-store import dump.rdb`: files of redis-server, and of none. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { Connection } from '../differential/connection.js';
import { hasRedisServer, MISSING, startRedisServer } from '../differential/redis-server.js';
import { type Started, startGateway } from '../gateway/started.js';
import { contentsOf, fill, LIBRARY } from './contents.js';
import { runImport } from './run-import.js';

let folder: string;
let started: Started;
let store: Connection;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'store-import-'));
  started = await startGateway();
  store = await Connection.open({ port: started.port });
});

afterAll(async () => {
  store.close();
  await started.close();
  rmSync(folder, { recursive: true });
});

const to = (): string[] => ['--to', `127.0.0.1:${started.port}`];

test('everything that Redis saves', { timeout: 120_000 }, async (context) => {
  if (!hasRedisServer()) {
    if (process.env['CI']) throw new Error(MISSING);
    context.skip(true, MISSING);
  }
  const redis = await startRedisServer();
  try {
    await fill(redis.connection);
    await redis.connection.run([['SAVE']], 2);
    const before = await contentsOf(redis.connection);
    expect(before.size).toBeGreaterThan(40);
    await store.run([['FLUSHALL']], 2);
    const { output, exitCode } = await runImport(join(redis.folder, 'dump.rdb'), ...to());
    expect(output).toContain(`imported ${before.size} keys and 1 library`);
    expect(exitCode).toBe(0);
    const after = await contentsOf(store);
    expect([...after.keys()]).toEqual([...before.keys()]);
    for (const [key, value] of before) expect(after.get(key), key.slice(0, 50)).toEqual(value);
    expect(await store.run([['FCALL', 'hello', '0']], 2)).toEqual([['$', 'world']]);
  } finally {
    await redis.stop();
  }
});
