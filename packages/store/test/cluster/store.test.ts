/** The store as a whole: clients of Redis, a gateway, and shards that TRAM replicates. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Store, type StoreOptions } from '../../src/index.js';

test('a store with a limit refuses writes beyond it, and goes on reading', async () => {
  const store = await Store.start({ port: 0, shards: 2, replicas: 1, maxmemory: 200_000 });
  const redis = new Redis({ port: store.port! });
  const large = 'x'.repeat(10_000);
  const writes = Array.from({ length: 60 }, (_, i) => redis.set(`key:${i}`, large));
  const outcomes = await Promise.allSettled(writes);
  const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  expect(refused.length).toBeGreaterThan(30);
  expect(String(refused[0].reason)).toContain('OOM command not allowed');
  expect(await redis.get('key:0')).toBe(large);
  expect(await redis.del(...Array.from({ length: 60 }, (_, i) => `key:${i}`))).toBeGreaterThan(10);
  expect(await redis.set('key', large)).toBe('OK');
  redis.disconnect();
  await store.close();
});

test.each([
  [{ maxmemory: -1 }, 'maxmemory is -1'],
  [{ maxmemory: 1.5 }, 'maxmemory is 1.5'],
  [{ maxmemoryPolicy: 'lru' as 'allkeys-lru' }, "there is no maxmemoryPolicy 'lru'"],
])('a store does not start with %j', async (options, message) => {
  await expect(Store.start({ port: 0, ...options })).rejects.toThrow(message);
});

test('a store that recovers keeps its settings of memory, unless it is started with others', async () => {
  const journal = mkdtempSync(join(tmpdir(), 'tram-store-'));
  const options = { port: 0, shards: 2, replicas: 1, durability: 'always', journal } as const;
  /** @returns the settings that it begins with */
  const settingsOf = async (
    more: StoreOptions,
    then: (redis: Redis) => Promise<unknown>,
  ): Promise<unknown> => {
    const store = await Store.start({ ...options, ...more });
    const redis = new Redis(store.port!);
    try {
      const settings = await redis.config('GET', 'maxmemory*');
      await then(redis);
      return settings;
    } finally {
      redis.disconnect();
      await store.close();
    }
  };
  const settings = (bytes: number, policy: string, samples: number): unknown[] => [
    ...['maxmemory', String(bytes), 'maxmemory-policy', policy],
    ...['maxmemory-samples', String(samples)],
  ];
  try {
    const fill = async (redis: Redis): Promise<void> => {
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lfu', 'maxmemory-samples', '7');
      for (let i = 0; i < 60; i++) await redis.set(`key:${i}`, 'x'.repeat(1000));
      expect(await redis.info('stats')).toMatch(/\nevicted_keys:[1-9]/);
    };
    const first = await settingsOf({ maxmemory: 40_000 }, fill);
    expect(first).toEqual(settings(40_000, 'noeviction', 5));
    const audit = async (redis: Redis): Promise<void> => {
      expect(await redis.info('stats')).toMatch(/\nevicted_keys:[1-9]/);
      expect(await redis.dbsize()).toBeLessThan(40);
    };
    expect(await settingsOf({}, audit)).toEqual(settings(40_000, 'allkeys-lfu', 7));
    const third = await settingsOf({ maxmemory: 0, maxmemoryPolicy: 'volatile-lru' }, audit);
    expect(third).toEqual(settings(0, 'volatile-lru', 7));
  } finally {
    rmSync(journal, { recursive: true });
  }
});

describe('a store on threads', () => {
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

  test('sets and gets keys of all shards', async () => {
    const keys = Array.from({ length: 100 }, (_, i) => `key:${i}`);
    await redis.mset(Object.fromEntries(keys.map((key, i) => [key, `value ${i}`])));
    expect(await redis.mget(keys)).toEqual(keys.map((_, i) => `value ${i}`));
    expect(await redis.get('key:7')).toBe('value 7');
    expect(await redis.dbsize()).toBe(100);
    expect(await redis.del(keys)).toBe(100);
  });

  test('moves data between shards', async () => {
    await redis.rpush('from', 'a', 'b', 'c');
    expect(await redis.lmove('from', 'to', 'LEFT', 'RIGHT')).toBe('a');
    await redis.sadd('s1', '1', '2', '3');
    await redis.sadd('s2', '2', '3', '4');
    expect(await redis.sinterstore('s3', 's1', 's2')).toBe(2);
    expect((await redis.smembers('s3')).sort()).toEqual(['2', '3']);
    await redis.set('old', 'x');
    await redis.rename('old', 'new');
    expect(await redis.get('new')).toBe('x');
  });

  test('runs a transaction over shards as one', async () => {
    await redis.mset('stock', '3', 'sold', '0');
    const replies = await redis.multi().decr('stock').incr('sold').mget('stock', 'sold').exec();
    expect(replies).toEqual([
      [null, 2],
      [null, 1],
      [null, ['2', '1']],
    ]);
  });

  test('gives up a transaction if a watched key of any shard has changed', async () => {
    const other = redis.duplicate();
    await redis.watch('stock', 'sold', 'unrelated');
    await other.set('sold', '17');
    expect(await redis.multi().set('stock', '100').exec()).toBeNull();
    await redis.watch('stock', 'sold', 'absent');
    expect(await redis.multi().set('stock', '100').exec()).toEqual([[null, 'OK']]);
    other.disconnect();
  });

  test('lets clients wait for keys of several shards', async () => {
    const waiting = redis.duplicate();
    const popped = waiting.blpop('q1', 'q2', 'q3', 10);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await redis.rpush('q2', 'job');
    expect(await popped).toEqual(['q2', 'job']);
    expect(await waiting.blpop('q1', 'q2', 0.05)).toBeNull();
    waiting.disconnect();
  });

  test('lets clients wait for new entries of streams of several shards', async () => {
    const waiting = redis.duplicate();
    const read = waiting.xread('BLOCK', 10_000, 'STREAMS', 'x1', 'x2', '$', '$');
    await new Promise((resolve) => setTimeout(resolve, 50));
    await redis.xadd('x2', '1-1', 'field', 'value');
    expect(await read).toEqual([['x2', [['1-1', ['field', 'value']]]]]);
    waiting.disconnect();
  });

  test('keeps values that are larger than a message', async () => {
    const large = Buffer.alloc(1_000_000, 'abc');
    await redis.set('large', large);
    expect((await redis.getBuffer('large'))?.equals(large)).toBe(true);
    await redis.rename('large', 'larger');
    expect(await redis.strlen('larger')).toBe(1_000_000);
    await redis.mset('large', large, 'small', 'x', 'larger', large);
    expect((await redis.mgetBuffer('small', 'large')).map((value) => value?.length)).toEqual([
      1, 1_000_000,
    ]);
  });

  test('passes messages of channels on, in both protocols', async () => {
    const subscriber = createClient({ RESP: 3, socket: { port: store.port! } });
    await subscriber.connect();
    const got: string[] = [];
    await subscriber.subscribe('news', (message) => got.push(message));
    await subscriber.pSubscribe('n*', (message) => got.push(`pattern ${message}`));
    expect(await redis.publish('news', 'hello')).toBe(2);
    await expect.poll(() => got.length).toBe(2);
    expect(got.sort()).toEqual(['hello', 'pattern hello']);
    const sent = await redis
      .multi()
      .lmove('none', 'of these', 'LEFT', 'LEFT')
      .publish('news', 'x')
      .exec();
    expect(sent).toEqual([
      [null, null],
      [null, 2],
    ]);
    await subscriber.close();
  });

  test('removes keys that have expired', async () => {
    await redis.set('short', 'x', 'PX', 30);
    await redis.set('long', 'x', 'EX', 1000);
    await expect.poll(() => redis.exists('short')).toBe(0);
    expect(await redis.ttl('long')).toBeGreaterThan(900);
  });
});

test('a gateway hears from all shards, however many there are', async () => {
  const store = await Store.start({ port: 0, shards: 64, replicas: 1 });
  const redis = new Redis(store.port!);
  const listening = new Redis(store.port!);
  try {
    const channels = Array.from({ length: 300 }, (_, i) => `channel ${i}`);
    const heard = new Set<string>();
    listening.on('message', (channel) => heard.add(channel));
    await listening.subscribe(...channels);
    await Promise.all(channels.map((channel) => redis.publish(channel, 'hello')));
    await expect.poll(() => heard.size, { timeout: 30_000 }).toBe(channels.length);
    // It ends although all shards are listened to.
    await redis.set('from', 'x');
    expect(await redis.rename('from', 'to')).toBe('OK');
  } finally {
    for (const client of [redis, listening]) client.disconnect();
    await store.close();
  }
});
