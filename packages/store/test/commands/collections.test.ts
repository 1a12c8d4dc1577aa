import { describe, expect, test } from 'vitest';
import { BLOCKED } from '../../src/commands/runner.js';
import { COMMANDS_BY_NAME, keyPositions } from '../../src/commands/table.js';
import { ByteReader, ByteWriter } from '../../src/engine/bytes.js';
import { decodeEntry, encodeEntry } from '../../src/engine/codec.js';
import { Double, ErrorReply, NullArray, Pairs, SetReply } from '../../src/resp/reply.js';
import { Engine } from './engine.js';

const SETUP = [
  'RPUSH list a b c a',
  'SADD set a b c',
  'SADD other b c d',
  'ZADD zset 1 a 2 b 3 c',
  'ZADD lex 0 a 0 b',
];

function engine(): Engine {
  const engine = new Engine();
  for (const line of SETUP) engine.run(line);
  return engine;
}

describe('watched keys', () => {
  test.each([
    'LPUSHX absent x',
    'LPOP list 0',
    'LREM list 0 x',
    'LINSERT list BEFORE x y',
    'LMOVE absent list LEFT LEFT',
    'SADD set a b',
    'SREM set x',
    'SPOP set 0',
    'SMOVE set other x',
    'SMOVE set set a',
    'SINTERSTORE absent set nothing',
    'ZADD zset 1 a',
    'ZADD zset NX 5 a',
    'ZADD zset XX 5 x',
    'ZADD zset GT 0 b',
    'ZADD absent XX 5 x',
    'ZREM zset x',
    'ZPOPMIN zset 0',
    'ZREMRANGEBYSCORE zset 10 20',
    'ZRANGESTORE absent zset 5 9',
    'LRANGE list 0 -1',
    'ZRANGE zset 0 -1',
    'PFCOUNT absent',
  ])('%s changes nothing', (line) => {
    expect(engine().changesOf(line)).toEqual([]);
  });

  test.each([
    ['LPUSH list x', ['list']],
    ['LMOVE list new LEFT RIGHT', ['new', 'list']],
    ['LMOVE list list LEFT RIGHT', ['list']],
    ['SADD set x', ['set']],
    ['SMOVE set other a', ['set', 'other']],
    ['SMOVE set other b', ['set']],
    ['ZADD zset 4 a', ['zset']],
    ['ZRANGESTORE list zset 0 0', ['list']],
    ['SUNIONSTORE list absent', ['list']],
    ['PFADD new a', ['new']],
  ] as const)('%s changes %j', (line, keys) => {
    expect(engine().changesOf(line)).toEqual(keys);
  });

  test.each([
    'LPOP list 9',
    'LTRIM list 5 9',
    'LREM list 0 a;LPOP list 9',
    'SREM set a b c',
    'SPOP set 3',
    'ZREM zset a b c',
    'ZPOPMAX zset 3',
    'ZREMRANGEBYRANK zset 0 -1',
  ])('%s leaves no empty collection', (lines) => {
    const tested = engine();
    const key = lines.split(' ')[1];
    for (const line of lines.split(';')) tested.run(line);
    expect(tested.keyspace.find(key)).toBeUndefined();
  });
});

describe('commands that wait', () => {
  test.each([
    ['BLPOP none nil 1.5', ['none', 'nil'], 1500, 'RPUSH nil x y', ['nil', 'x']],
    ['BRPOP none 0', ['none'], 0, 'RPUSH none x y', ['none', 'y']],
    ['BLMOVE none to LEFT LEFT 2', ['none'], 2000, 'RPUSH none x', 'x'],
    ['BRPOPLPUSH none to 2', ['none'], 2000, 'RPUSH none x y', 'y'],
    ['BLMPOP 1 1 none LEFT COUNT 2', ['none'], 1000, 'RPUSH none x y z', ['none', ['x', 'y']]],
  ] as const)('%s', (line, keys, timeoutMs, write, reply) => {
    const tested = engine();
    expect(tested.runBlocking(line)).toBe(BLOCKED);
    expect(tested.runner.wait).toEqual({ keys, timeoutMs, timedOut: NullArray.instance });
    // Another type is no reason to stop waiting.
    tested.run(`MSET ${keys[0]} text`);
    expect(tested.resume(line)).toBe(BLOCKED);
    tested.keyspace.delete(keys[0]);
    tested.run(write);
    expect(tested.resume(line)).toEqual(reply);
  });

  test.each([
    ['BZPOPMIN none 0', ['none', 'a', new Double(1)]],
    ['BZPOPMAX none 0', ['none', 'b', new Double(2)]],
    ['BZMPOP 0 1 none MIN', ['none', [['a', new Double(1)]]]],
  ] as const)('%s', (line, reply) => {
    const tested = engine();
    expect(tested.runBlocking(line)).toBe(BLOCKED);
    expect(tested.run(line)).toBe(NullArray.instance);
    tested.run('ZADD none 1 a 2 b');
    expect(tested.resume(line)).toEqual(reply);
  });

  test('a key of another type is an error at first', () => {
    expect(engine().runBlocking('BLPOP set 0')).toBeInstanceOf(ErrorReply);
    expect(engine().runBlocking('BZPOPMIN list 0')).toBeInstanceOf(ErrorReply);
  });

  test('the target of a move has to be a list when something is moved', () => {
    const tested = engine();
    expect(tested.runBlocking('BLMOVE none set LEFT LEFT 0')).toBe(BLOCKED);
    tested.run('RPUSH none x');
    expect(tested.resume('BLMOVE none set LEFT LEFT 0')).toBeInstanceOf(ErrorReply);
    expect(tested.run('LLEN none')).toBe(1);
  });
});

describe('random picks', () => {
  function membersOf(reply: unknown): readonly string[] {
    if (reply instanceof SetReply) return reply.members as string[];
    if (reply instanceof Pairs) return reply.pairs.map(([member]) => member as string);
    return reply as string[];
  }

  function filled(count: number): Engine {
    const tested = new Engine();
    for (let i = 0; i < count; i++) tested.run(`SADD set m${i}`);
    for (let i = 0; i < count; i++) tested.run(`ZADD zset ${i % 7} m${i}`);
    return tested;
  }

  test.each(['SRANDMEMBER set 40', 'ZRANDMEMBER zset 40', 'ZRANDMEMBER zset 40 WITHSCORES'])(
    '%s returns different members',
    (line) => {
      const picked = membersOf(filled(100).run(line, 7));
      expect(new Set(picked).size).toBe(40);
    },
  );

  test.each(['SRANDMEMBER set -40', 'ZRANDMEMBER zset -40'])('%s repeats members', (line) => {
    const picked = membersOf(filled(5).run(line, 7));
    expect(picked).toHaveLength(40);
    expect(new Set(picked)).toEqual(new Set(['m0', 'm1', 'm2', 'm3', 'm4']));
  });

  test('SPOP returns what it removes', () => {
    const tested = filled(100);
    const popped = membersOf(tested.run('SPOP set 30', 3));
    expect(new Set(popped).size).toBe(30);
    expect(tested.run('SCARD set')).toBe(70);
    for (const member of popped) expect(tested.run(`SISMEMBER set ${member}`)).toBe(0);
  });

  test('every member has its chance', () => {
    const tested = filled(10);
    const seen = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      seen.add(tested.run('SRANDMEMBER set', seed * 7919) as string);
      seen.add(membersOf(tested.run('SRANDMEMBER set 1', seed * 104_729))[0]);
    }
    expect(seen.size).toBe(10);
  });

  test.each(['SPOP set 20', 'SRANDMEMBER set 20', 'ZRANDMEMBER zset 20', 'SSCAN set 0 COUNT 20'])(
    '%s is the same at a replica that has read a snapshot',
    (line) => {
      const first = filled(200);
      first.run('SREM set m3 m150 m70');
      first.run('ZREM zset m3 m150 m70');
      const second = new Engine();
      for (const key of ['set', 'zset']) {
        const out = new ByteWriter();
        encodeEntry(first.keyspace.find(key)!, out);
        second.keyspace.set(key, decodeEntry(new ByteReader(out.written())).value);
      }
      expect(second.run(line, 5)).toEqual(first.run(line, 5));
    },
  );

  test('too many picks are refused', () => {
    expect(filled(3).run('SRANDMEMBER set -9999999999')).toBeInstanceOf(ErrorReply);
    expect(filled(3).run('ZRANDMEMBER zset -9999999999')).toBeInstanceOf(ErrorReply);
  });
});

describe('scans', () => {
  test.each(['SSCAN set', 'ZSCAN zset'])('%s visits what stays', (name) => {
    const tested = new Engine();
    for (let i = 0; i < 1_000; i++) tested.run(`SADD set m${i}`);
    for (let i = 0; i < 1_000; i++) tested.run(`ZADD zset ${i} m${i}`);
    const seen = new Set<string>();
    let cursor = '0';
    let removed = 0;
    do {
      const [next, found] = tested.run(`${name} ${cursor} COUNT 10`) as [string, string[]];
      for (const member of found) seen.add(member);
      cursor = next;
      // Every third member goes while the scan is under way.
      for (let i = 0; i < 3; i++, removed += 3) {
        tested.run(`SREM set m${removed}`);
        tested.run(`ZREM zset m${removed}`);
      }
    } while (cursor !== '0');
    for (let i = 0; i < 1_000; i++) if (i % 3 !== 0) expect(seen).toContain(`m${i}`);
  });
});

describe('several shards', () => {
  const shardOf = (key: string) => key.charCodeAt(key.length - 1) % 3;

  test.each(['sunion', 'sinter', 'sdiff'])('%s is put together', (name) => {
    const whole = new Engine();
    const shards = [new Engine(), new Engine(), new Engine()];
    const keys = ['s1', 's2', 's3', 's4', 's5'];
    keys.forEach((key, i) => {
      const line = `SADD ${key} common x${i} y${i % 2}`;
      whole.run(line);
      shards[shardOf(key)].run(line);
    });
    const spread = COMMANDS_BY_NAME.get(name)!.spread!;
    const parts = spread.split(keys, shardOf, 3).map((part) => ({
      ...part,
      reply: shards[part.shard].run(`${part.name ?? name} ${part.args.join(' ')}`),
    }));
    expect(parts).toHaveLength(3);
    const merged = spread.merge(parts, keys, shardOf, 3) as SetReply;
    const expected = whole.run(`${name} ${keys.join(' ')}`) as SetReply;
    expect([...merged.members].sort()).toEqual([...expected.members].sort());
  });

  test.each([
    ['lmpop 2 a b LEFT', [1, 2]],
    ['blmpop 0 2 a b LEFT COUNT 1', [2, 3]],
    ['zunionstore to 2 a b WEIGHTS 1 2', [0, 2, 3]],
    ['zinter 1 a', [1]],
    ['sintercard 9 a b', [1, 2]],
    ['zdiff x a', []],
    ['zdiff -1 a', []],
    ['blpop a b 0', [0, 1]],
    ['georadius a 1 2 3 km STORE b', [0, 6]],
    ['georadius a 1 2 3 km ASC STOREDIST b STORE c', [0, 7, 9]],
    ['georadiusbymember a m 3 km COUNT 1', [0]],
    ['geosearchstore a b FROMMEMBER m BYRADIUS 1 km', [0, 1]],
  ])('the keys of %s', (line, positions) => {
    const [name, ...args] = line.split(' ');
    expect(keyPositions(COMMANDS_BY_NAME.get(name)!, args)).toEqual(positions);
  });
});
