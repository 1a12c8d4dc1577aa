/** `tram-store import redis://…`: from a running redis-server. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Connection } from '../differential/connection.js';
import { runsOf } from '../differential/families/all.js';
import {
  hasRedisServer,
  MISSING,
  type RedisServer,
  startRedisServer,
} from '../differential/redis-server.js';
import { type Started, startGateway } from '../gateway/started.js';
import { contentsOf, fill } from './contents.js';
import { type Ended, runImport } from './run-import.js';

if (!hasRedisServer() && process.env['CI']) throw new Error(MISSING);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

describe.skipIf(!hasRedisServer())('a running server', () => {
  let redis: RedisServer;
  let url: string;
  let started: Started;
  let store: Connection;

  beforeAll(async () => {
    const port = await freePort();
    redis = await startRedisServer({
      port: String(port),
      databases: '16',
      'repl-diskless-sync-delay': '0',
    });
    url = `redis://127.0.0.1:${port}`;
    started = await startGateway();
    store = await Connection.open({ port: started.port });
  });

  afterAll(async () => {
    store.close();
    await started.close();
    await redis.stop();
  });

  beforeEach(async () => {
    for (const server of [redis.connection, store]) {
      await server.run([['FLUSHALL'], ['FUNCTION', 'FLUSH']], 2);
    }
  });

  const run = (...args: string[]): Promise<Ended> =>
    runImport(url, '--to', `127.0.0.1:${started.port}`, ...args);

  const compare = async (): Promise<void> => {
    const [before, after] = [await contentsOf(redis.connection), await contentsOf(store)];
    expect([...after.keys()]).toEqual([...before.keys()]);
    for (const [key, { expiresAt, ...value }] of before) {
      const { expiresAt: ourTime, ...ourValue } = after.get(key)!;
      expect(ourValue, key.slice(0, 50)).toEqual(value);
      // SCAN comes with times to live.
      expect(Math.abs(ourTime - expiresAt), key).toBeLessThan(60_000);
    }
  };

  const WAYS: [name: string, diskless: string, args: string[]][] = [
    ['as a replica', 'yes', []],
    ['as a replica, from a file', 'no', []],
    ['by SCAN', 'yes', ['--scan']],
  ];

  it.each(WAYS)('everything, %s', async (_, diskless, args) => {
    await redis.connection.run([['CONFIG', 'SET', 'repl-diskless-sync', diskless]], 2);
    await fill(redis.connection);
    const { output, exitCode } = await run(...args);
    const [[, size]] = await redis.connection.run([['DBSIZE']], 2);
    expect(output).toContain(`imported ${size} keys and 1 library`);
    expect(exitCode).toBe(0);
    expect(await store.run([['FCALL', 'hello', '0']], 2)).toEqual([['$', 'world']]);
    await compare();
  });

  it('changes too, until it is told to end', async () => {
    await fill(redis.connection);
    const child = follow();
    await child.isFollowing;
    // Redis tells replicas what commands have changed, in other words.
    const seeds = [1, 2, 3].flatMap((seed) => fc.sample(runsOf([], 500), { seed, numRuns: 2 }));
    for (const steps of seeds) await redis.connection.run(steps.flat(), 2);
    // WAIT returns once the command has acknowledged everything.
    const wait = redis.connection.run(
      [
        ['SET', 'last', 'one'],
        ['WAIT', '1', '20000'],
      ],
      2,
    );
    expect(await Promise.race([wait, child.ended])).toEqual([
      ['+', 'OK'],
      [':', '1'],
    ]);
    await compare();
    child.end();
    expect(await child.ended).toEqual({
      exitCode: 0,
      output: expect.stringContaining('the store has everything'),
    });
  });

  const follow = (...args: string[]) =>
    followServer(url, '--to', `127.0.0.1:${started.port}`, ...args);
});

interface Following {
  /** The keys have been copied. */
  readonly isFollowing: Promise<void>;
  readonly ended: Promise<Ended>;
  end(): void;
}

/** Runs the command in a process of its own, which a signal can end. */
function followServer(...args: string[]): Following {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const child = spawn(process.execPath, [main, 'import', '--follow', ...args]);
  let output = '';
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => resolve({ output, exitCode: code ?? -1 }));
  });
  child.stdout.on('data', (text) => {
    output += text;
  });
  const isFollowing = new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (text) => {
      output += text;
      if (output.includes('Now following')) resolve();
    });
    void ended.then(() => reject(new Error(output)));
  });
  isFollowing.catch(() => undefined);
  return { isFollowing, ended, end: () => child.kill('SIGINT') };
}
