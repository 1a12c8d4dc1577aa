/** Commands on keys of any type, also where several shards carry them out. */

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COMMANDS_BY_NAME, keyPositions } from '../../src/commands/table.js';
import { ErrorReply, OK, type Reply } from '../../src/resp/reply.js';
import { Engine } from './engine.js';

const NOW_MS = 1_000_000;

function engine(): Engine {
  const engine = new Engine();
  engine.keyspace.nowMs = NOW_MS;
  for (const line of ['SET s 1', 'SET t 1 PX 5000', 'HSET h a 1', 'RPUSH l 3 1 2', 'SADD i 2 9 10'])
    engine.run(line);
  return engine;
}

describe('replies', () => {
  test.each<[string, Reply]>([
    ['DEL s s absent t', 2],
    ['EXISTS s s absent', 2],
    ['EXPIRE s 100 GT', 0],
    ['EXPIRE s 100 LT', 1],
    ['EXPIRE t 5', 1],
    ['EXPIRE t 5 GT', 0],
    ['EXPIRE t 4 GT', 0],
    ['EXPIRE t 6 GT', 1],
    ['EXPIRE t 6 LT', 0],
    ['EXPIRE s 0', 1],
    ['EXPIRE s 9223372036854775807', new ErrorReply("ERR invalid expire time in 'expire' command")],
    [
      'EXPIRE s 1 NX GT',
      new ErrorReply('ERR NX and XX, GT or LT options at the same time are not compatible'),
    ],
    ['TTL t', 5],
    ['PTTL t', 5000],
    ['PEXPIRETIME t', NOW_MS + 5000],
    ['EXPIRETIME s', -1],
    ['TTL absent', -2],
    ['PEXPIREAT s 9223372036854775807', 1],
    ['PERSIST t', 1],
    ['PERSIST s', 0],
    ['RENAME absent s', new ErrorReply('ERR no such key')],
    ['RENAMENX s h', 0],
    ['COPY s h', 0],
    ['COPY s h REPLACE', 1],
    ['SORT l DESC LIMIT 0 2', ['3', '2']],
    ['SORT l BY nosort', ['3', '1', '2']],
    ['SORT i BY nosort', ['10', '2', '9']],
    ['SORT i BY nosort DESC', ['9', '2', '10']],
    ['SORT h', new ErrorReply('WRONGTYPE Operation against a key holding the wrong kind of value')],
    ['SORT_RO l STORE x', new ErrorReply('ERR syntax error')],
    ['SORT l STORE sorted', 3],
    ['OBJECT|ENCODING s', 'int'],
    ['OBJECT|ENCODING absent', null],
    ['FLUSHALL x', new ErrorReply('ERR syntax error')],
    ['RESTORE s 0 x', new ErrorReply('BUSYKEY Target key name already exists.')],
    ['RESTORE new 0 x', new ErrorReply('ERR DUMP payload version or checksum are wrong')],
  ])('%s', (line, reply) => {
    expect(engine().run(line)).toEqual(reply);
  });

  test('SORT by other keys, and what they have', () => {
    const e = engine();
    e.run('MSET w1 30 w2 20 w3 10');
    e.run('HSET o1 name one');
    expect(e.run('SORT l BY w* GET # GET o*->name GET w*')).toEqual([
      ...['3', null, '10'],
      ...['2', null, '20'],
      ...['1', 'one', '30'],
    ]);
  });

  test('a dump brings back the value, but not the expiry time', () => {
    const e = engine();
    const dump = e.run('DUMP l') as string;
    expect(e.runner.start('restore', ['copy', '5000', dump], 1, false)).toBe(OK);
    expect(e.run('LRANGE copy 0 -1')).toEqual(['3', '1', '2']);
    expect(e.run('PTTL copy')).toBe(5000);
  });
});

test.each([
  ['object|encoding', ['k'], [0]],
  ['memory|usage', ['k', 'SAMPLES', '5'], [0]],
  ['sort', ['k', 'BY', 'store', 'LIMIT', '0', '1', 'STORE', 'dest'], [0, 7]],
  ['sort', ['k', 'GET', 'STORE'], [0]],
  ['bitop', ['AND', 'dest', 'a', 'b'], [1, 2, 3]],
  ['mset', ['a', '1', 'b', '2'], [0, 2]],
])('keys of %s %j', (name, args, positions) => {
  expect(keyPositions(COMMANDS_BY_NAME.get(name)!, args)).toEqual(positions);
});

/** Several keyspaces that a gateway would ask. */
class Shards {
  readonly engines = Array.from({ length: 3 }, () => new Engine());
  readonly shardOf = (key: string): number => key.charCodeAt(key.length - 1) % 3;

  run(line: string): Reply {
    const [name, ...args] = line.split(' ');
    const { spread } = COMMANDS_BY_NAME.get(name.toLowerCase())!;
    const parts = spread!.split(args, this.shardOf, 3).map((part) => ({
      ...part,
      reply: this.engines[part.shard].run([name, ...part.args].join(' ')),
    }));
    return spread!.merge(parts, args, this.shardOf, 3);
  }
}

describe('several shards', () => {
  test('count, list and delete all keys', () => {
    const shards = new Shards();
    expect(shards.run('RANDOMKEY')).toBeNull();
    shards.run('MSET a 1 b 2 c 3 d 4');
    expect(shards.run('MGET d c x b a')).toEqual(['4', '3', null, '2', '1']);
    expect(shards.run('DBSIZE')).toBe(4);
    expect([...(shards.run('KEYS *') as string[])].sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(['a', 'b', 'c', 'd']).toContain(shards.run('RANDOMKEY'));
    expect(shards.run('DEL a b x')).toBe(2);
    expect(shards.run('FLUSHALL')).toBe(OK);
    expect(shards.run('DBSIZE')).toBe(0);
    expect(() => shards.run('MSET a 1 b')).toThrow("wrong number of arguments for 'mset'");
    expect(() => shards.run('SCAN x')).toThrow('invalid cursor');
  });

  test('SCAN visits every key that is there from its beginning to its end', () => {
    const key = fc.integer({ min: 0, max: 60 }).map((n) => `key${n}`);
    const change = fc.record({ key, isSet: fc.boolean() });
    fc.assert(
      fc.property(
        fc.uniqueArray(key, { maxLength: 60 }),
        fc.array(fc.array(change, { maxLength: 8 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 7 }),
        (keys, changes, count) => {
          const shards = new Shards();
          for (const name of keys) shards.run(`MSET ${name} 1`);
          const stayed = new Set(keys);
          const seen = new Set<string>();
          let cursor = '0';
          let steps = 0;
          do {
            const [next, found] = shards.run(`SCAN ${cursor} COUNT ${count}`) as [string, string[]];
            for (const name of found) seen.add(name);
            cursor = next;
            for (const { key: name, isSet } of changes[steps++] ?? []) {
              shards.run(isSet ? `MSET ${name} 2` : `DEL ${name}`);
              if (!isSet && cursor !== '0') stayed.delete(name);
            }
          } while (cursor !== '0');
          for (const name of stayed) expect(seen).toContain(name);
        },
      ),
    );
  });
});
