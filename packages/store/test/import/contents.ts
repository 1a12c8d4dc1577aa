/** A database with every form of every type that Redis 7.0 saves, and what a server has, key by key. */

import type { Target } from '../differential/target.js';
import { itemsOf, type Wire } from '../differential/wire.js';

type Command = readonly string[];

const many = (count: number, element: (i: number) => string[]): string[] =>
  Array.from({ length: count }, (_, i) => element(i)).flat();

const ELEMENTS = [
  ...['0', '1', '-1', '127', '128', '-128', '4096', '-32769', '8388607', '2147483648'],
  ...['-9223372036854775808', '', 'a', '\x00\xff\r\n', 'x'.repeat(64), 'long '.repeat(2_000)],
];
/** What LZF does not make much shorter. */
const NOISE = many(20_000, (i) => [String.fromCharCode((i * i * 31 + (i >> 3) * 7) & 255)]).join(
  '',
);

function collections(prefix: string): Command[] {
  return [
    ['RPUSH', `${prefix}:list`, ...ELEMENTS],
    ['RPUSH', `${prefix}:list:long`, ...many(3_000, (i) => [`element ${i}`])],
    ['RPUSH', `${prefix}:list:large`, NOISE, 'small', NOISE],
    ['SADD', `${prefix}:set:integers`, '1', '-5', '70000', '9223372036854775807'],
    ['SADD', `${prefix}:set`, ...ELEMENTS],
    ['SADD', `${prefix}:set:long`, ...many(2_000, (i) => [`member ${i}`])],
    ['HSET', `${prefix}:hash`, ...ELEMENTS.flatMap((element) => [element, element])],
    ['HSET', `${prefix}:hash:long`, ...many(2_000, (i) => [`field ${i}`, String(i)])],
    [
      'ZADD',
      `${prefix}:zset`,
      '1',
      'a',
      '-2.5',
      'b',
      'inf',
      'c',
      '-inf',
      'd',
      '1e300',
      'e',
      '0.1',
      '7',
    ],
    ['ZADD', `${prefix}:zset:long`, ...many(2_000, (i) => [String(i / 3), `member ${i}`])],
  ];
}

/** What makes Redis write even small collections in the forms of large ones, and does not compress. */
const IN_USUAL_FORMS: readonly Command[] = [
  ['CONFIG', 'SET', 'list-max-listpack-size', '-2', 'hash-max-listpack-entries', '128'],
  ['CONFIG', 'SET', 'zset-max-listpack-entries', '128', 'set-max-intset-entries', '512'],
  ['CONFIG', 'SET', 'rdbcompression', 'yes'],
];

const IN_LARGE_FORMS: readonly Command[] = [
  ['CONFIG', 'SET', 'list-max-listpack-size', '1', 'hash-max-listpack-entries', '0'],
  ['CONFIG', 'SET', 'zset-max-listpack-entries', '0', 'set-max-intset-entries', '0'],
  ['CONFIG', 'SET', 'rdbcompression', 'no'],
];

const STREAM: readonly Command[] = [
  ['XGROUP', 'CREATE', 'stream:empty', 'group', '$', 'MKSTREAM'],
  ...Array.from({ length: 350 }, (_, i) => [
    ...['XADD', 'stream', `${1_000 + Math.floor(i / 3)}-${(i % 3) * 5}`],
    ...(i % 10 === 0 ? ['other', 'x'.repeat(i), '77', '-5'] : ['field', String(i * 100)]),
  ]),
  ['XADD', 'stream', '18446744073709551615-1', 'f', 'z'.repeat(20_000)],
  ['XDEL', 'stream', '1005-5', '1050-0'],
  ['XTRIM', 'stream', 'MAXLEN', '330'],
  ['XGROUP', 'CREATE', 'stream', 'g', '1010'],
  ['XGROUP', 'CREATE', 'stream', 'h', '0', 'ENTRIESREAD', '3'],
  ['XREADGROUP', 'GROUP', 'g', 'alice', 'COUNT', '5', 'STREAMS', 'stream', '>'],
  ['XREADGROUP', 'GROUP', 'g', 'bob', 'COUNT', '150', 'STREAMS', 'stream', '>'],
  ['XGROUP', 'CREATECONSUMER', 'stream', 'g', 'carl'],
  ['XCLAIM', 'stream', 'g', 'alice', '0', '1020-5'],
  ['XACK', 'stream', 'g', '1011-0'],
];

export const LIBRARY =
  "#!lua name=words\nredis.register_function('hello', function() return 'world' end)";

/** Fills an empty Redis server. */
export async function fill(redis: Target): Promise<void> {
  const far = Date.now() + 3_600_000;
  const commands: Command[] = [
    ...IN_USUAL_FORMS,
    ...ELEMENTS.map((element, i) => ['SET', `string:${i}`, element]),
    ['SET', 'noise', NOISE],
    ['SET', `a key that is long enough for LZF ${'!'.repeat(100)}`, 'value'],
    ['SET', '', 'an empty key'],
    ['SET', '\x00\xff\r\n"', 'bytes in the key'],
    ...collections('small'),
    ...STREAM,
    ['PFADD', 'sketch', ...many(500, (i) => [`visitor ${i}`])],
    ['GEOADD', 'places', '13.361389', '38.115556', 'Palermo', '15.087269', '37.502669', 'Catania'],
    ['SETBIT', 'bits', '100000', '1'],
    ['SET', 'expires', 'soon', 'PXAT', String(far)],
    ['RPUSH', 'expires:list', 'a'],
    ['PEXPIREAT', 'expires:list', String(far + 1)],
    ['FUNCTION', 'LOAD', LIBRARY],
    ...IN_LARGE_FORMS,
    ...collections('large'),
  ];
  await requireOk(redis, commands);
}

export async function requireOk(target: Target, commands: readonly Command[]): Promise<void> {
  const replies = await target.run(commands, 2);
  const at = replies.findIndex(([type]) => type === '-');
  if (at >= 0) throw new Error(`${commands[at].slice(0, 3).join(' ')}: ${replies[at][1]}`);
}

const READS: Readonly<Record<string, (key: string) => Command>> = {
  string: (key) => ['GET', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  hash: (key) => ['HGETALL', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  stream: (key) => ['XINFO', 'STREAM', key, 'FULL', 'COUNT', '0'],
};

export interface Content {
  readonly type: string;
  /** -1: never. */
  readonly expiresAt: number;
  readonly value: unknown;
}

/** What a server has under each key, in a form that does not depend on its order. */
export async function contentsOf(target: Target): Promise<Map<string, Content>> {
  const [names] = await target.run([['KEYS', '*']], 2);
  const contents = new Map<string, Content>();
  for (const key of itemsOf(names)!
    .map(([, name]) => name as string)
    .toSorted()) {
    const [[, kind], [, time]] = await target.run(
      [
        ['TYPE', key],
        ['PEXPIRETIME', key],
      ],
      2,
    );
    const type = String(kind);
    const [value] = await target.run([READS[type](key)], 2);
    contents.set(key, { type, expiresAt: Number(time), value: inOrder(type, value) });
  }
  return contents;
}

function inOrder(type: string, value: Wire): unknown {
  const items = itemsOf(value);
  if (items === undefined || type === 'list' || type === 'zset') return value;
  // Without the keys and nodes of the radix tree.
  if (type === 'stream') return items.filter((_, i) => i < 2 || i > 5);
  if (type === 'set') return items.map(([, member]) => member).toSorted();
  return items
    .flatMap((field, i) =>
      i % 2 === 0 ? [`${field[1]?.length}:${field[1]}=${items[i + 1][1]}`] : [],
    )
    .toSorted();
}
