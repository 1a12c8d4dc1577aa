/** Limits of memory, as clients see them: like Redis where that is comparable, and over several shards. */

import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ErrorReply, NullArray, OK, QUEUED, type Reply } from '../../src/resp/reply.js';
import { hasRedisServer, startRedisServer } from '../differential/redis-server.js';
import { PlainClient, type Started, startGateway } from './started.js';

const OOM = new ErrorReply("OOM command not allowed when used memory > 'maxmemory'.");
const EXECABORT = new ErrorReply(`EXECABORT Transaction discarded because of: ${OOM.message}`);

/** Each line is one command of the first client, or with `other:` of another one. DUMP stands for a dumped string. */
const LIKE_REDIS = String.raw`
  CONFIG GET maxmemory
  CONFIG GET maxmemory-policy
  CONFIG GET maxmemory-s*
  CONFIG GET lfu-l*
  CONFIG GET lfu-decay-time
  CONFIG SET maxmemory x
  CONFIG SET maxmemory-policy lru
  CONFIG SET lfu-decay-time -1
  CONFIG SET maxmemory 100mb maxmemory-policy nothing
  CONFIG SET maxmemory 100mb maxmemory 200mb
  CONFIG GET maxmemory
  CONFIG SET maxmemory 100mb maxmemory-policy VOLATILE-LRU hz 20
  CONFIG GET maxmemory
  CONFIG GET maxmemory-policy
  CONFIG GET hz
  MULTI
  CONFIG SET maxmemory 0
  CONFIG SET maxmemory x
  SET k v
  CONFIG GET maxmemory
  EXEC
  other:CONFIG GET maxmemory

  OBJECT IDLETIME k
  OBJECT IDLETIME absent
  OBJECT FREQ absent
  OBJECT FREQ k
  RESTORE d 0 DUMP REPLACE IDLETIME 1000
  OBJECT IDLETIME d
  RESTORE e 0 DUMP REPLACE FREQ 200
  OBJECT IDLETIME e
  COPY d e REPLACE
  OBJECT IDLETIME e
  TYPE d
  EXISTS d
  PTTL d
  OBJECT IDLETIME d
  TOUCH d
  OBJECT IDLETIME d
  RESTORE d 0 DUMP REPLACE IDLETIME 1000
  GET d
  OBJECT IDLETIME d
  CONFIG SET maxmemory-policy allkeys-lfu
  OBJECT IDLETIME k
  OBJECT IDLETIME absent
  SET new v
  OBJECT FREQ new
  OBJECT FREQ new
  EXISTS new
  TYPE new
  TTL new
  OBJECT FREQ new
  RESTORE d 0 DUMP REPLACE FREQ 200
  OBJECT FREQ d
  RESTORE e 0 DUMP REPLACE IDLETIME 1000
  OBJECT FREQ e
  CONFIG SET lfu-log-factor 0
  TOUCH new
  OBJECT FREQ new
  GET new
  OBJECT FREQ new
  RENAME new renamed
  OBJECT FREQ renamed
  SET renamed w
  OBJECT FREQ renamed
  OBJECT FREQ absent

  CONFIG SET maxmemory-policy noeviction
  SET k v
  RPUSH l a
  WATCH k
  MULTI
  SET m 1
  other:CONFIG SET maxmemory 1
  EXEC
  GET m
  SET k w
  GET k
  LPOP l
  RENAME k m
  EVAL "return redis.call('set', 'k', 'v')" 1 k
  EVAL "return redis.pcall('set', 'k', 'v').err" 1 k
  EVAL "redis.call('del', 'k') return redis.call('set', 'k', 'v')" 1 k
  EVAL "return redis.call('get', 'k')" 1 k
  EVAL "#!lua\nreturn redis.call('get', 'k')" 1 k
  EVAL "#!lua flags=no-writes\nreturn redis.call('get', 'k')" 1 k
  EVAL "#!lua flags=allow-oom\nreturn redis.call('set', 'k', 'w')" 1 k
  CLIENT NO-EVICT on
  CONFIG SET maxmemory 0
  MULTI
  GET k
  DEL l
  other:CONFIG SET maxmemory 1
  EXEC
  CONFIG SET maxmemory 0
  SET k v
  FUNCTION LOAD "#!lua name=one\nredis.register_function('w', function() return redis.call('set', 'k', 'f') end) redis.register_function{function_name='o', callback=function() return redis.call('set', 'k', 'o') end, flags={'allow-oom'}}"
  CONFIG SET maxmemory 1
  FUNCTION LOAD "#!lua name=two\nredis.register_function('x', function() return 1 end)"
  FCALL w 1 k
  FCALL o 1 k
  GET k
  CONFIG SET maxmemory 0
  MULTI
  EVAL "redis.call('del', 'k') return redis.call('set', 'k', 'v')" 1 k
  other:CONFIG SET maxmemory 1
  EXEC
  CONFIG SET maxmemory 0
  BRPOPLPUSH absent l 0.01
  CONFIG SET maxmemory 1
  BRPOPLPUSH absent l 0.01
  APPEND k x
  EXPIRE k 100
  CONFIG SET maxmemory-policy volatile-ttl
  GET k
  SET k v
`;

describe.skipIf(!hasRedisServer())('with one shard', () => {
  it('replies are those of Redis', async () => {
    const redis = await startRedisServer();
    const ours = await startGateway({}, { port: 0 }, 1);
    try {
      const store = [await PlainClient.connect(ours.port), await PlainClient.connect(ours.port)];
      const real = [redis.path, redis.path].map((path) => PlainClient.of(connect(path)));
      await real[0].ask('SET k v');
      const dump = (await real[0].ask('DUMP k')) as string;
      const escaped = Buffer.from(dump, 'latin1').toString('hex').replace(/../g, '\\x$&');
      const lines = LIKE_REDIS.replaceAll('DUMP', `"${escaped}"`)
        .split('\n')
        .flatMap((line) => line.trim() || []);
      const both: [string, Reply, Reply][] = [];
      for (const line of lines) {
        const isOther = line.startsWith('other:');
        const request = `${line.replace('other:', '')}\r\n`;
        const at = isOther ? 1 : 0;
        real[at].sendRaw(request);
        store[at].sendRaw(request);
        both.push([line, await real[at].read(), await store[at].read()]);
      }
      expect(both.map(([line, , own]) => [line, own])).toEqual(
        both.map(([line, redis]) => [line, redis]),
      );
      for (const client of [...store, ...real]) client.close();
    } finally {
      await ours.close();
      await redis.stop();
    }
  });
});

describe('with four shards', () => {
  let started: Started;
  let beside: Started;
  let client: PlainClient;
  let other: PlainClient;

  beforeEach(async () => {
    started = await startGateway();
    beside = await startGateway({}, { port: 0 }, 4, started);
    client = await PlainClient.connect(started.port);
    other = await PlainClient.connect(beside.port);
  });

  afterEach(async () => {
    client.close();
    other.close();
    await beside.close();
    await started.close();
  });

  /** The shard of `a` has no room for more, those of `b`, `c` and `d` have. */
  async function fillOne(): Promise<void> {
    expect(await client.ask('config set maxmemory 8000')).toEqual(OK);
    for (let reply: Reply = 0; !(reply instanceof ErrorReply); ) {
      reply = await client.ask(`append {a}large ${'x'.repeat(500)}`);
    }
    const shards = ['a', 'b', 'c', 'd'].map((key) => started.gateway.router.shardOf(key));
    expect(new Set(shards).size).toBe(4);
  }

  it('any gateway sets the limits of all shards, and tells them', async () => {
    const asked = 'config get maxmemory maxmemory-policy hz';
    expect(await client.ask('config set maxmemory 1gb maxmemory-policy allkeys-lru hz 20')).toEqual(
      OK,
    );
    const settings = ['maxmemory', '1073741824', 'maxmemory-policy', 'allkeys-lru'];
    expect(await client.ask(asked)).toEqual(['hz', '20', ...settings]);
    expect(await other.ask(asked)).toEqual(['hz', '10', ...settings]);
    const info = String(await other.ask('info memory'));
    expect(info).toContain('\r\nmaxmemory:1073741824\r\nmaxmemory_human:1.00G\r\n');
    expect(info).toContain('\r\nmaxmemory_policy:allkeys-lru\r\n');
    const wrong = await other.ask('config set maxmemory 5 maxmemory-policy x');
    expect(wrong).toBeInstanceOf(ErrorReply);
    expect(await client.ask('config get maxmemory')).toEqual(['maxmemory', '1073741824']);
  });

  it('keys are evicted in all of them, and counted; who watches them notices', async () => {
    await client.ask('config set maxmemory 20000 maxmemory-policy allkeys-random');
    await client.ask('mset a x b x c x d x');
    await other.ask('watch a b c d');
    for (let i = 0; i < 400; i++) await client.ask(`set key:${i} ${'x'.repeat(50)}`);
    const info = String(await other.ask('info'));
    const of = (field: string): number => Number(info.match(`\r\n${field}:(\\d+)\r\n`)![1]);
    expect(of('used_memory')).toBeLessThanOrEqual(20_000);
    expect(of('evicted_keys')).toBeGreaterThan(100);
    expect(await client.ask('dbsize')).toBe(404 - of('evicted_keys'));
    await other.ask('multi');
    await other.ask('ping');
    expect(await other.ask('exec')).toBe(NullArray.instance);
  });

  it('MSET is refused by all shards or by none', async () => {
    await fillOne();
    expect(await client.ask('mset b 1 a 1 c 1')).toEqual(OOM);
    expect(await client.ask('mget a b c')).toEqual([null, null, null]);
    // This gateway has not heard of it yet: all of it is done.
    expect(await other.ask('mset b 2 a 2 c 2')).toEqual(OK);
    expect(await client.ask('mget a b c')).toEqual(['2', '2', '2']);
    expect(await other.ask('mset b 3 a 3 c 3')).toEqual(OOM);
    expect(await client.ask('mget a b c')).toEqual(['2', '2', '2']);
    // Those that have room go on, and reads of all.
    expect(await client.ask('mset b 4 c 4')).toEqual(OK);
    // Room that somebody else has made counts at once.
    await other.ask('del {a}large');
    expect(await client.ask('mset b 5 a 5 c 5')).toEqual(OK);
    expect(await client.ask('mget a b c')).toEqual(['5', '5', '5']);
  });

  it('a transaction is refused by all shards or by none', async () => {
    await client.ask('sadd b x y');
    await client.ask('sadd c y z');
    await fillOne();
    const exec = async (...lines: string[]): Promise<Reply> => {
      await client.ask('multi');
      for (const line of lines) expect(await client.ask(line)).toEqual(QUEUED);
      return client.ask('exec');
    };
    expect(await exec('set a 1')).toEqual(EXECABORT);
    expect(await exec('del d', 'set a 1')).toEqual(EXECABORT);
    expect(await exec('set d 1', 'get a')).toEqual(EXECABORT);
    await client.ask('watch a d');
    expect(await exec('set d 1', 'get a')).toEqual(EXECABORT);
    expect(await exec('sinterstore d b c', 'get a')).toEqual(EXECABORT);
    expect(await client.ask('exists a d')).toBe(0);
    expect(await exec('del d', 'get a')).toEqual([0, null]);
    expect(await exec('rename b d', 'get a')).toEqual([OK, null]);
  });

  it('a coordinated command is refused if it may need memory and one of its shards is full', async () => {
    await client.ask('sadd b x y');
    await client.ask('sadd c y z');
    await client.ask('rpush d 1');
    await fillOne();
    expect(await client.ask('sinterstore a b c')).toEqual(OOM);
    expect(await client.ask('msetnx a 1 e 1')).toEqual(OOM);
    expect(await client.ask('blmove d a left left 0')).toEqual(OOM);
    expect(await client.ask('exists a e')).toBe(0);
    expect(await client.ask('sinterstore d b c')).toBe(1);
    expect(await client.ask('rename b a')).toEqual(OK);
    expect(await client.ask('copy a c replace')).toEqual(OOM);
  });

  it('a coordinated command takes along how often a key was used', async () => {
    await client.ask('config set maxmemory-policy allkeys-lfu lfu-log-factor 0');
    await client.ask('set a x');
    for (let i = 0; i < 50; i++) await client.ask('get a');
    expect(await client.ask('object freq a')).toBe(55);
    await client.ask('rename a b');
    expect(await client.ask('object freq b')).toBeGreaterThan(54);
    await client.ask('multi');
    await client.ask('rename b c');
    await client.ask('object freq c');
    const [, frequency] = (await client.ask('exec')) as [Reply, number];
    expect(frequency).toBeGreaterThan(54);
  });
});
