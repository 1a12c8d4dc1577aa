/** Dumps of redis-server can be restored here, and those made here by redis-server. */

import { expect, test } from 'vitest';
import { crc64 } from '../../src/engine/rdb/crc64.js';
import { unordered, unorderedPairs } from './comparisons.js';
import { EngineTarget } from './engine-target.js';
import { hasRedisServer, MISSING, startRedisServer } from './redis-server.js';
import type { Target } from './target.js';
import type { Wire } from './wire.js';

const many = (count: number, element: (i: number) => string[]): string[] =>
  Array.from({ length: count }, (_, i) => element(i)).flat();

const INTEGERS = [
  '0',
  '1',
  '-1',
  '63',
  '127',
  '128',
  '-128',
  '4095',
  '-4096',
  '4096',
  '32767',
  '-32769',
];
const LARGE = [
  '8388607',
  '-8388609',
  '2147483647',
  '2147483648',
  '-2147483649',
  '9223372036854775807',
];
const TEXTS = ['', 'a', '\x00\xff\r\n', 'x'.repeat(63), 'y'.repeat(64), 'z'.repeat(5_000)];
const ELEMENTS = [...INTEGERS, ...LARGE, ...TEXTS, '01', '1.5'];

/** Commands that make a value of each form that Redis has. */
const VALUES: readonly (readonly string[])[] = [
  ...ELEMENTS.map((element) => ['SET', 'k', element]),
  ['SET', 'k', many(1_000, (i) => [`word ${i % 7} and more`]).join(' ')],
  ['RPUSH', 'k', ...ELEMENTS],
  ['RPUSH', 'k', ...many(5_000, (i) => [`element ${i}`])],
  ['RPUSH', 'k', 'x'.repeat(100_000), 'a'],
  ['HSET', 'k', ...ELEMENTS.slice(0, 18).flatMap((element) => [element, element])],
  ['HSET', 'k', ...ELEMENTS.flatMap((element) => [element, element])],
  ['HSET', 'k', ...many(2_000, (i) => [`field ${i}`, String(i)])],
  ['SADD', 'k', '1', '-5', '100'],
  ['SADD', 'k', ...INTEGERS, '70000'],
  ['SADD', 'k', ...INTEGERS, ...LARGE],
  ['SADD', 'k', ...ELEMENTS],
  ['ZADD', 'k', '1', 'a', '-2.5', 'b', 'inf', 'c', '-inf', 'd', '1e300', 'e', '0.1', '7'],
  ['ZADD', 'k', ...many(500, (i) => [String(i / 3), `member ${i}`])],
];

const READ: Readonly<Record<string, readonly string[]>> = {
  SET: ['GET', 'k'],
  RPUSH: ['LRANGE', 'k', '0', '-1'],
  HSET: ['HGETALL', 'k'],
  SADD: ['SMEMBERS', 'k'],
  ZADD: ['ZRANGE', 'k', '0', '-1', 'WITHSCORES'],
};

async function copied(from: Target, to: Target, create: readonly string[]): Promise<[Wire, Wire]> {
  const read = READ[create[0]];
  const [, , [, dump], before] = await from.run([['DEL', 'k'], create, ['DUMP', 'k'], read], 2);
  const [, restored, after] = await to.run(
    [['DEL', 'k'], ['RESTORE', 'k', '0', dump as string], read],
    2,
  );
  expect(restored, `${create[0]} ${create[2].slice(0, 20)}`).toEqual(['+', 'OK']);
  return [before, after];
}

test('the CRC is that of the catalogue', () => {
  expect(crc64(Buffer.from('123456789')).reverse().toString('hex')).toBe('e9c6d914c4b8d9ca');
});

test('dumps go both ways', { timeout: 120_000 }, async (context) => {
  if (!hasRedisServer()) {
    if (process.env['CI']) throw new Error(MISSING);
    context.skip(true, MISSING);
  }
  const server = await startRedisServer();
  try {
    const ours = new EngineTarget();
    for (const create of VALUES) {
      const compare =
        create[0] === 'HSET' ? unorderedPairs : create[0] === 'SADD' ? unordered : undefined;
      for (const [from, to] of [
        [server.connection, ours],
        [ours, server.connection],
      ]) {
        const [before, after] = await copied(from, to, create);
        if (compare) expect(compare(before, after, create)).toBe(true);
        else expect(after).toEqual(before);
      }
    }
  } finally {
    await server.stop();
  }
});

test('a dump that is damaged is refused, wherever', async () => {
  const ours = new EngineTarget();
  for (const create of VALUES.filter((value) => value.join('').length < 3_000)) {
    const [, , [, dump]] = await ours.run([['DEL', 'k'], create, ['DUMP', 'k']], 2);
    const body = Buffer.from(dump as string, 'latin1').subarray(0, -8);
    for (let at = 0; at < Math.min(body.length - 2, 60); at++) {
      for (const change of [1, 0x40, 0x80, 0xff]) {
        const damaged = Buffer.from(body);
        damaged[at] ^= change;
        const payload = Buffer.concat([damaged, crc64(damaged)]).toString('latin1');
        const [reply] = await ours.run([['RESTORE', 'k', '0', payload, 'REPLACE']], 2);
        // It can be another value, or none; but never an internal error.
        expect(['+OK', '-ERR Bad data format']).toContain(`${reply[0]}${reply[1]}`);
      }
    }
  }
});

/** Commands that make a stream. The longest has more than one node, entries with other fields, and gaps. */
const STREAMS: readonly (readonly (readonly string[])[])[] = [
  [['XGROUP', 'CREATE', 'k', 'g', '$', 'MKSTREAM']],
  [['XADD', 'k', '5-7', 'f', '']],
  [
    ...Array.from({ length: 350 }, (_, i) => [
      'XADD',
      'k',
      `${1_000 + Math.floor(i / 3)}-${(i % 3) * 5}`,
      ...(i % 10 === 0 ? ['other', 'x'.repeat(i), '77', '-5'] : ['field', String(i * 100)]),
    ]),
    ['XADD', 'k', '18446744073709551615-1', 'f', 'z'.repeat(20_000)],
    ['XDEL', 'k', '1005-5', '1050-0'],
    ['XTRIM', 'k', 'MAXLEN', '330'],
    ['XGROUP', 'CREATE', 'k', 'g', '1010'],
    ['XGROUP', 'CREATE', 'k', 'h', '0', 'ENTRIESREAD', '3'],
    ['XREADGROUP', 'GROUP', 'g', 'alice', 'COUNT', '5', 'STREAMS', 'k', '>'],
    ['XREADGROUP', 'GROUP', 'g', 'bob', 'COUNT', '150', 'STREAMS', 'k', '>'],
    ['XGROUP', 'CREATECONSUMER', 'k', 'g', 'carl'],
    ['XCLAIM', 'k', 'g', 'alice', '0', '1020-5'],
    ['XACK', 'k', 'g', '1011-0'],
  ],
];

test('dumps of streams go both ways', { timeout: 120_000 }, async (context) => {
  if (!hasRedisServer()) {
    if (process.env['CI']) throw new Error(MISSING);
    context.skip(true, MISSING);
  }
  const server = await startRedisServer();
  const read = ['XINFO', 'STREAM', 'k', 'FULL', 'COUNT', '0'];
  try {
    const ours = new EngineTarget();
    for (const create of STREAMS) {
      for (const [from, to] of [
        [server.connection, ours],
        [ours, server.connection],
      ]) {
        await from.run([['DEL', 'k'], ...create], 3);
        const [[, dump], before] = await from.run([['DUMP', 'k'], read], 3);
        const restore = ['RESTORE', 'k', '0', dump as string];
        const [, restored, after] = await to.run([['DEL', 'k'], restore, read], 3);
        expect(restored).toEqual(['+', 'OK']);
        expect(withoutNodes(after)).toEqual(withoutNodes(before));
      }
    }
  } finally {
    await server.stop();
  }
});

/** What FULL replies, without the keys and nodes of the radix tree. */
function withoutNodes([type, content]: Wire): Wire {
  return [type, (content as readonly Wire[]).filter((_, i) => i < 2 || i > 5)];
}

test('a damaged dump of a stream is refused or restored, but nothing breaks', async () => {
  const ours = new EngineTarget();
  await ours.run([['DEL', 'k'], ...STREAMS[2]], 2);
  const [[, dump]] = await ours.run([['DUMP', 'k']], 2);
  const body = Buffer.from(dump as string, 'latin1').subarray(0, -8);
  for (let i = 1; i < body.length; i += 41) {
    const damaged = Buffer.from(body);
    damaged[i] ^= 1 << (i % 8);
    const payload = Buffer.concat([damaged, crc64(damaged)]).toString('latin1');
    const [[type, text]] = await ours.run([['RESTORE', 'other', '0', payload, 'REPLACE']], 2);
    if (type === '-') expect(text).not.toContain('internal');
  }
});
