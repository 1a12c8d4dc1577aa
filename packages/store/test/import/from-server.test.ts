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
import { contentsOf, fill, requireOk } from './contents.js';
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

  const to = (): string[] => ['--to', `127.0.0.1:${started.port}`];
  const run = (...args: string[]): Promise<Ended> => runImport(url, ...to(), ...args);

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
    const seeds = [1, 2, 3].flatMap((seed) =>
      fc.sample(runsOf([], 500, 'one shard'), { seed, numRuns: 2 }),
    );
    for (const steps of seeds) await redis.connection.run(steps.flat().filter(isTimeless), 2);
    await requireOk(redis.connection, FAR);
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

  it('changes of other databases are left out, and those of all are not', async () => {
    const { connection } = redis;
    await connection.run(
      [
        ['SET', 'a', '1'],
        ['SELECT', '3'],
        ['SET', 'other', '1'],
        ['SELECT', '0'],
      ],
      2,
    );
    const child = follow('--db', '0');
    await child.isFollowing;
    await connection.run(
      [
        ['SELECT', '3'],
        ['SET', 'other', '2'],
        ['COPY', 'other', 'c', 'DB', '4'],
      ],
      2,
    );
    await connection.run(
      [['MULTI'], ['SET', 'x', '1'], ['SELECT', '0'], ['SET', 'b', '1'], ['EXEC']],
      2,
    );
    await connection.run([['WAIT', '1', '20000']], 2);
    await compare();
    await connection.run(
      [['SELECT', '3'], ['FLUSHALL'], ['SELECT', '0'], ['WAIT', '1', '20000']],
      2,
    );
    expect(await store.run([['DBSIZE']], 2)).toEqual([[':', '0']]);
    child.end();
    const { output, exitCode } = await child.ended;
    expect(output).toContain('left out: 1 key of database 3.');
    expect(output).toContain('left out: 3 changes of other databases');
    expect(exitCode).toBe(0);
  });

  it('a change that the store does not take ends it', async () => {
    const child = follow();
    await child.isFollowing;
    await redis.connection.run(
      [
        ['SET', 'a', '1'],
        ['MOVE', 'a', '5'],
      ],
      2,
    );
    const { output, exitCode } = await child.ended;
    expect(output).toContain('Redis has run MOVE between its databases 0 and 5');
    expect(exitCode).toBe(1);
  });

  it('a server that ends the connection', async () => {
    const child = follow();
    await child.isFollowing;
    await redis.connection.run([['CLIENT', 'KILL', 'TYPE', 'replica']], 2);
    const { output, exitCode } = await child.ended;
    expect(output).toMatch(/the connection to .* has ended/);
    expect(output).toContain('client-output-buffer-limit');
    expect(exitCode).toBe(1);
  });

  it.each(WAYS)('its other databases are told, %s', async (_name, _diskless, args) => {
    await redis.connection.run(
      [
        ['SET', 'a', '1'],
        ['SELECT', '3'],
        ['MSET', 'b', '1', 'c', '1'],
      ],
      2,
    );
    const first = await run(...args);
    expect(first.output).toContain('left out: 2 keys of database 3.');
    expect(first.exitCode).toBe(1);
    const third = await runImport(`${url}/3`, ...to(), '--replace', ...args);
    expect(third.output).toContain('imported 2 keys');
    expect(third.exitCode).toBe(0);
    expect(await store.run([['DBSIZE']], 2)).toEqual([[':', '3']]);
    await redis.connection.run([['SELECT', '0']], 2);
  });

  it.each(WAYS)('not into a store that has keys, %s', async (_name, _diskless, args) => {
    await redis.connection.run([['SET', 'a', '1']], 2);
    await store.run([['SET', 'b', '1']], 2);
    await expect(run(...args)).rejects.toThrow('the store has 1 key already');
    expect(await store.run([['EXISTS', 'a']], 2)).toEqual([[':', '0']]);
  });

  it('and back', async () => {
    await fill(redis.connection);
    await run();
    const before = await contentsOf(redis.connection);
    await redis.connection.run([['FLUSHALL'], ['FUNCTION', 'FLUSH']], 2);
    const back = ['--scan', '--to', url.replace('redis://', '')];
    const { output, exitCode } = await runImport(`redis://127.0.0.1:${started.port}`, ...back);
    expect(output).toContain(`imported ${before.size} keys and 1 library`);
    expect(exitCode).toBe(0);
    await compare();
    expect([...(await contentsOf(redis.connection)).keys()]).toEqual([...before.keys()]);
  });

  it('as a user who may only read', async () => {
    const rules = ['on', '>secret', '~*', '+@read', '+@connection', '+info', '+select'];
    await requireOk(redis.connection, [
      ['SET', 'a', '1'],
      ['ACL', 'SETUSER', 'reader', ...rules],
    ]);
    const reader = url.replace('//', '//reader:secret@');
    await expect(runImport(reader, ...to())).rejects.toMatchObject({
      message: expect.stringContaining('does not accept us as a replica: NOPERM'),
      hint: expect.stringContaining('--scan'),
    });
    const { output, exitCode } = await runImport(reader, ...to(), '--scan');
    expect(output).toContain('imported 1 key in');
    // The functions, which this user may not read.
    expect(output).toContain('left out: a library of functions: NOPERM');
    expect(exitCode).toBe(1);
    const wrong = runImport(url.replace('//', '//reader:wrong@'), ...to(), '--replace');
    await expect(wrong).rejects.toThrow('refuses us: WRONGPASS');
  });

  const follow = (...args: string[]) => followServer(url, ...to(), ...args);
});

const SEVERAL_DATABASES = ['move', 'swapdb', 'select'];
const WITH_TIMES = ['expire', 'pexpire', 'expireat', 'pexpireat', 'setex', 'psetex', 'restore'];
const TIMES = ['ex', 'px', 'exat', 'pxat'];

/**
 * Whether it concerns one database, and lets nothing expire: servers that carry out a change one after the other have other keys if one expires
 * in between.
 */
function isTimeless([name, ...args]: readonly string[]): boolean {
  return (
    ![...SEVERAL_DATABASES, ...WITH_TIMES].includes(name.toLowerCase()) &&
    !args.some((arg) => TIMES.includes(arg.toLowerCase()))
  );
}

/** What has times that are not over before the test is. */
const FAR = [
  ['SETEX', 'far:1', '1000', 'a'],
  ['SET', 'far:2', 'a', 'PX', '1000000'],
  ['MSET', 'far:3', 'a', 'far:4', 'a', 'far:5', 'a'],
  ['EXPIRE', 'far:3', '1000'],
  ['GETEX', 'far:4', 'EX', '1000'],
  ['GETEX', 'far:2', 'PERSIST'],
  ['PEXPIREAT', 'far:5', '1'],
  [
    'EVAL',
    "redis.call('SET', KEYS[1], 1, 'EX', 1000) return redis.call('INCRBY', KEYS[1], 5)",
    '1',
    'far:6',
  ],
];

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
