/** Corner cases of strings, counters, bits and hashes. The differential test compares the rest with Redis. */

import { describe, expect, test } from 'vitest';
import { ErrorReply, MapReply, OK, type Reply } from '../../src/resp/reply.js';
import { Engine } from './engine.js';

const SETUP = ['SET s hello', 'SET n 10', 'SET t 1 PXAT 5000', 'HSET h a 1 b 2', 'RPUSH l a'];

function engine(): Engine {
  const engine = new Engine();
  for (const line of SETUP) engine.run(line);
  return engine;
}

function error(message: string): ErrorReply {
  return new ErrorReply(message);
}

describe('a client that watches', () => {
  test.each([
    'SET s x NX',
    'SET absent x XX',
    'SETNX s x',
    'GETEX s',
    'GETEX s PERSIST',
    'GETDEL absent',
    'MSETNX new 1 s 2',
    'SETRANGE s 0 ',
    'INCR s',
    'INCRBYFLOAT s 1',
    'HSETNX h a 5',
    'HDEL h x',
    'HINCRBY h a x',
    'BITFIELD s GET u8 0',
    'GET s',
    'HGETALL h',
  ])('is not told of %s', (line) => {
    expect(engine().changesOf(line)).toEqual([]);
  });

  test.each([
    ['SET s hello', ['s']],
    ['MSET a 1 b 2', ['a', 'b']],
    ['APPEND s x', ['s']],
    ['GETEX s PXAT 5000', ['s']],
    ['GETEX t PERSIST', ['t']],
    ['GETEX s EXAT 0', []],
    ['SETBIT s 0 0', ['s']],
    ['BITFIELD s SET u8 0 1', ['s']],
    ['BITOP NOT dest s', ['dest']],
    ['BITOP AND s absent', ['s']],
    ['HSET h a 1', ['h']],
    ['HDEL h a b', ['h']],
  ])('is told of %s', (line, changed) => {
    expect(engine().changesOf(line)).toEqual(changed);
  });
});

describe('replies', () => {
  test.each<[string, Reply]>([
    ['SET s x GET', 'hello'],
    ['SET new x GET', null],
    ['SET s x NX GET', 'hello'],
    ['SET s x EX 0', error("ERR invalid expire time in 'set' command")],
    ['SET s x EX 9223372036854776', error("ERR invalid expire time in 'set' command")],
    ['SET s x PXAT 9223372036854775807', OK],
    ['SET s x EX 10 KEEPTTL', error('ERR syntax error')],
    ['GETRANGE s -3 -1', 'llo'],
    ['GETRANGE s 3 100', 'lo'],
    ['INCRBY n 9223372036854775797', 9223372036854775807n],
    ['INCRBY n 9223372036854775798', error('ERR increment or decrement would overflow')],
    ['DECRBY n -9223372036854775808', error('ERR decrement would overflow')],
    ['DECRBY n 10', 0],
    ['INCRBYFLOAT n 0.1', '10.1'],
    ['INCRBYFLOAT n 1e-17', '10.00000000000000001'],
    ['INCRBYFLOAT n 1e5000', error('ERR value is not a valid float')],
    ['SETRANGE s 6 world', 11],
    [
      'SETRANGE absent 536870912 x',
      error('ERR string exceeds maximum allowed size (proto-max-bulk-len)'),
    ],
    ['LCS s n', ''],
    ['BITCOUNT s', 21],
    ['BITCOUNT s 1 1', 4],
    ['BITCOUNT s 0 3 BIT', 2],
    ['BITPOS s 0 0 -1 BIT', 0],
    ['BITFIELD s GET u4 #0 INCRBY i8 8 100', [6, -55]],
    ['BITFIELD s OVERFLOW FAIL INCRBY i8 0 100', [null]],
    ['BITFIELD s OVERFLOW SAT INCRBY i8 0 100', [127]],
    ['GETBIT s 100', 0],
    ['HSET h a 5 c 1', 1],
    ['HMGET h a x b', ['1', null, '2']],
    ['HINCRBYFLOAT h a 0.5', '1.5'],
    ['HRANDFIELD h 0', []],
    ['HSET h a', error("ERR wrong number of arguments for 'hset' command")],
    ['GET h', error('WRONGTYPE Operation against a key holding the wrong kind of value')],
  ])('%s', (line, reply) => {
    expect(engine().run(line)).toEqual(reply);
  });

  test('LCS with indexes', () => {
    const { run } = bound(engine());
    run('MSET a ohmytext b mynewtext');
    expect(run('LCS a b')).toBe('mytext');
    expect(run('LCS a b LEN')).toBe(6);
    expect(run('LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN')).toEqual(
      new MapReply([
        ['matches', [[[4, 7], [5, 8], 4]]],
        ['len', 6],
      ]),
    );
  });
});

function bound(engine: Engine) {
  return { run: (line: string) => engine.run(line), engine };
}

describe('values that are changed in place', () => {
  test('a string that grows keeps its bytes', () => {
    const { run } = bound(engine());
    let expected = 'hello';
    for (let i = 0; i < 300; i++) {
      run(`APPEND s ${i}`);
      expected += i;
    }
    expect(run('GET s')).toBe(expected);
    expect(run('STRLEN s')).toBe(expected.length);
    expect(run('OBJECT|ENCODING s')).toBe('raw');
  });

  test('a copy does not share them', () => {
    const { run } = bound(engine());
    run('APPEND s x');
    run('COPY s s2');
    run('COPY h h2');
    run('SETRANGE s 0 J');
    run('HSET h a 9');
    expect(run('GET s2')).toBe('hellox');
    expect(run('HGET h2 a')).toBe('1');
  });

  test('a hash is deleted with its last field, and has the form that Redis would have', () => {
    const { run } = bound(engine());
    expect(run('OBJECT|ENCODING h')).toBe('listpack');
    run(`HSET h long ${'x'.repeat(65)}`);
    run('HDEL h long');
    expect(run('OBJECT|ENCODING h')).toBe('hashtable');
    expect(run('HDEL h a b')).toBe(2);
    expect(run('EXISTS h')).toBe(0);
    for (let i = 0; i < 513; i++) run(`HSET many ${i} ${i}`);
    expect(run('OBJECT|ENCODING many')).toBe('hashtable');
  });
});
