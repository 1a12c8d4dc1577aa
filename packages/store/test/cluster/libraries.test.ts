/** Libraries on top of Redis, each doing what its users do, against a store of several shards. */

import KeyvRedis from '@keyv/redis';
import { createAdapter } from '@socket.io/redis-adapter';
import { Queue, QueueEvents, Worker } from 'bullmq';
import { RedisStore } from 'connect-redis';
import { Redis } from 'ioredis';
import { Keyv } from 'keyv';
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { createClient } from 'redis';
import Redlock from 'redlock';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Store } from '../../src/index.js';

let store: Store;
let redis: Redis;

beforeAll(async () => {
  store = await Store.start({ port: 0, shards: 4 });
  redis = new Redis({ port: store.port!, lazyConnect: false });
});

afterAll(async () => {
  redis.disconnect();
  await store.close();
});

describe('scripts', () => {
  test('use keys of several shards as one', async () => {
    await redis.mset('from', '10', 'to', '0');
    const move = `local amount = tonumber(ARGV[1])
      if tonumber(redis.call('GET', KEYS[1])) < amount then return redis.error_reply('POOR not enough') end
      redis.call('DECRBY', KEYS[1], amount)
      return redis.call('INCRBY', KEYS[2], amount)`;
    expect(await redis.eval(move, 2, 'from', 'to', '7')).toBe(7);
    await expect(redis.eval(move, 2, 'from', 'to', '7')).rejects.toThrow('POOR not enough');
    expect(await redis.mget('from', 'to')).toEqual(['3', '7']);
  });

  test('use keys that they have not declared, of any shard', async () => {
    const script = `for i = 1, 20 do redis.call('SET', 'undeclared:' .. i, i) end
      return redis.call('GET', 'undeclared:' .. redis.call('GET', 'undeclared:5'))`;
    expect(await redis.eval(script, 0)).toBe('5');
    expect(await redis.eval(script, 2, 'from', 'to')).toBe('5');
    expect(await redis.get('undeclared:20')).toBe('20');
    expect(await redis.eval("return redis.call('GET', '{x}b')", 1, '{x}a')).toBeNull();
  });

  test('are known everywhere once they have run, until they are forgotten', async () => {
    const script = "return redis.call('INCR', KEYS[1])";
    await redis.eval(script, 1, 'first');
    const sha = (await redis.script('LOAD', script)) as string;
    for (let i = 0; i < 20; i++) expect(await redis.evalsha(sha, 1, `counter:${i}`)).toBe(1);
    expect(await redis.script('EXISTS', sha)).toEqual([1]);
    await redis.script('FLUSH');
    await expect(redis.evalsha(sha, 1, 'first')).rejects.toThrow('NOSCRIPT');
    await expect(redis.evalsha(sha, 0)).rejects.toThrow('NOSCRIPT');
  });

  test('are atomic, whatever keys they use and whether they declare them', async () => {
    const accounts = Array.from({ length: 8 }, (_, i) => `account:${i}`);
    await redis.mset(Object.fromEntries(accounts.map((account) => [account, '100'])));
    const transfer = `local from, to, sum = ARGV[1], ARGV[2], 0
      for _, balance in ipairs(redis.call('MGET', unpack(ARGV, 3))) do sum = sum + balance end
      redis.call('SET', from, redis.call('GET', from) - 1)
      redis.call('SET', to, redis.call('GET', to) + 1)
      return sum`;
    const clients = Array.from({ length: 6 }, () => redis.duplicate());
    const transfers = clients.map(async (client, c) => {
      for (let i = 0; i < 12; i++) {
        const [from, to] = [accounts[(c + i) % 8], accounts[(c * 3 + i * 5 + 1) % 8]];
        const declared = [[], [from], [from, to]][i % 3];
        const args = [...declared, from, to, ...accounts];
        expect(await client.eval(transfer, declared.length, ...args)).toBe(800);
        expect(await client.multi().decr(from).incr(to).exec()).toHaveLength(2);
      }
    });
    await Promise.all(transfers);
    for (const client of clients) client.disconnect();
  });

  test('publish to channels of other shards', async () => {
    const subscriber = redis.duplicate();
    const got: string[] = [];
    subscriber.on('message', (_channel, message: string) => got.push(message));
    await subscriber.subscribe('c1', 'c2', 'c3');
    await redis.eval("for i = 1, 3 do redis.call('PUBLISH', 'c' .. i, 'm' .. i) end", 0);
    await expect.poll(() => got.sort()).toEqual(['m1', 'm2', 'm3']);
    subscriber.disconnect();
  });

  test('are part of transactions', async () => {
    const replies = await redis
      .multi()
      .set('t1', '1')
      .eval("return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])", 2, 't1', 't2')
      .exec();
    expect(replies).toEqual([
      [null, 'OK'],
      [null, 3],
    ]);
  });

  test('can be functions', async () => {
    const library = `#!lua name=shop
      redis.register_function('sell', function(keys, args)
        return redis.call('DECRBY', keys[1], args[1]) + redis.call('INCRBY', keys[2], args[1])
      end)`;
    expect(await redis.call('FUNCTION', 'LOAD', library)).toBe('shop');
    expect(await redis.call('FCALL', 'sell', '2', 'stock', 'sold', '2')).toBe(0);
    expect(await redis.mget('stock', 'sold')).toEqual(['-2', '2']);
  });

  test('that do not end are stopped', async () => {
    await expect(redis.eval('while true do end', 1, 'k')).rejects.toThrow('took too long');
    expect(await redis.ping()).toBe('PONG');
  });
});

describe('bullmq', () => {
  test.for(['bull', '{bull}'])('runs jobs, with prefix %s', { timeout: 20_000 }, async (prefix) => {
    const connection = { port: store.port! };
    const queue = new Queue('mails', { connection, prefix });
    const events = new QueueEvents('mails', { connection, prefix });
    const completed: string[] = [];
    events.on('completed', ({ jobId, returnvalue }) => completed.push(`${jobId} ${returnvalue}`));
    await events.waitUntilReady();
    const attempts: string[] = [];
    const worker = new Worker<{ to: string }, string>(
      'mails',
      async (job) => {
        attempts.push(job.name);
        await job.updateProgress(50);
        if (job.name === 'flaky' && job.attemptsMade === 0) throw new Error('try again');
        return `sent to ${job.data.to}`;
      },
      { connection, prefix, concurrency: 4 },
    );
    try {
      await queue.add('welcome', { to: 'ann' });
      await queue.add('flaky', { to: 'bob' }, { attempts: 3, backoff: 20 });
      await queue.add('later', { to: 'cy' }, { delay: 100 });
      await queue.add('urgent', { to: 'di' }, { priority: 1 });
      await queue.addBulk([1, 2, 3].map((i) => ({ name: `bulk ${i}`, data: { to: `${i}` } })));
      await expect.poll(() => completed.length, { timeout: 15_000 }).toBe(7);
      expect(attempts.filter((name) => name === 'flaky')).toHaveLength(2);
      expect(await queue.getJobCounts('completed', 'failed', 'waiting', 'delayed')).toEqual({
        completed: 7,
        failed: 0,
        waiting: 0,
        delayed: 0,
      });
    } finally {
      await worker.close();
      await events.close();
      await queue.close();
    }
  });
});

test('rate-limiter-flexible counts points', async () => {
  const limiter = new RateLimiterRedis({ storeClient: redis, points: 3, duration: 10 });
  for (let left = 2; left >= 0; left--) {
    expect((await limiter.consume('10.0.0.1')).remainingPoints).toBe(left);
  }
  const refused = (await limiter.consume('10.0.0.1').catch((error) => error)) as RateLimiterRes;
  expect(refused.msBeforeNext).toBeGreaterThan(0);
  expect((await limiter.get('10.0.0.1'))?.consumedPoints).toBe(4);
  await limiter.delete('10.0.0.1');
  expect((await limiter.consume('10.0.0.1')).remainingPoints).toBe(2);
});

test('redlock locks resources of several shards', async () => {
  const locks = new Redlock([redis], { retryCount: 0 });
  const lock = await locks.lock(['lock:a', 'lock:b', 'lock:c'], 5000);
  await expect(locks.lock('lock:b', 1000)).rejects.toThrow();
  await lock.extend(5000);
  await lock.unlock();
  await (await locks.lock('lock:b', 1000)).unlock();
});

test('keyv caches values', async () => {
  const keyv = new Keyv(new KeyvRedis(`redis://127.0.0.1:${store.port}`), { namespace: 'cache' });
  await keyv.set('user', { name: 'Ann' }, 60_000);
  expect(await keyv.get('user')).toEqual({ name: 'Ann' });
  await keyv.setMany([
    { key: 'a', value: 1 },
    { key: 'b', value: 2 },
  ]);
  expect(await keyv.getMany(['a', 'b', 'none'])).toEqual([1, 2, undefined]);
  expect(await keyv.delete('user')).toBe(true);
  expect(await keyv.has('user')).toBe(false);
  await keyv.clear();
  expect(await keyv.get('a')).toBeUndefined();
  await keyv.disconnect();
});

test('connect-redis keeps sessions', async () => {
  const client = createClient({ socket: { port: store.port! } });
  await client.connect();
  const sessions = new RedisStore({ client, prefix: 'session:' });
  const session = { cookie: { originalMaxAge: 60_000 }, user: 'ann' };
  await sessions.set('id1', session);
  expect(await sessions.get('id1')).toEqual(session);
  await sessions.touch('id1', session);
  expect(await sessions.ids()).toEqual(['id1']);
  expect(await sessions.length()).toBe(1);
  await sessions.destroy('id1');
  expect(await sessions.get('id1')).toBeNull();
  await client.close();
});

test('the adapter of socket.io connects servers', async () => {
  const subscribers = [redis.duplicate(), redis.duplicate()];
  const got: unknown[][] = [[], []];
  const [first, second] = subscribers.map((subscriber, i) => {
    const namespace = {
      name: '/',
      server: { encoder: undefined },
      sockets: new Map(),
      _onServerSideEmit: (packet: unknown) => got[i].push(packet),
    };
    return createAdapter(redis, subscriber)(namespace);
  });
  await expect.poll(() => first.serverCount()).toBe(2);
  first.serverSideEmit(['hello', 1]);
  second.serverSideEmit(['bye', 2]);
  await expect.poll(() => got).toEqual([[['bye', 2]], [['hello', 1]]]);
  first.close();
  second.close();
  for (const subscriber of subscribers) await subscriber.quit();
});
