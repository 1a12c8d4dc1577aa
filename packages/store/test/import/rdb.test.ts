/** RDB files: what older versions of Redis wrote, and damaged ones. */

import { describe, expect, it, test } from 'vitest';
import { crc64 } from '../../src/engine/rdb/crc64.js';
import { dumpOfForm } from '../../src/engine/rdb/dump.js';
import { Listpack } from '../../src/engine/rdb/packed.js';
import { Input } from '../../src/import/input.js';
import { type RdbKey, type RdbSink, readRdb } from '../../src/import/rdb.js';
import { EngineTarget } from '../differential/engine-target.js';
import { hasRedisServer, MISSING, startRedisServer } from '../differential/redis-server.js';
import type { Target } from '../differential/target.js';
import { contentsOf } from './contents.js';
import {
  bytesOf,
  intsetOf,
  lengthOf,
  type Part,
  packed,
  rdbOf,
  uint32,
  uint64,
  withSum,
  ziplistOf,
  zipmapOf,
} from './rdb-bytes.js';

/** Keeps everything. */
class Everything implements RdbSink {
  readonly keys: (RdbKey & { readonly bytes: Buffer })[] = [];
  readonly libraries: string[] = [];
  readonly long: string[] = [];

  key(): boolean {
    return true;
  }

  value(key: RdbKey, bytes: Buffer): undefined {
    this.keys.push({ ...key, bytes: Buffer.from(bytes) });
  }

  tooLong({ name }: RdbKey): void {
    this.long.push(name);
  }

  library(code: string): undefined {
    this.libraries.push(code);
  }
}

async function* pieces(bytes: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    yield Buffer.from(bytes.subarray(at, at + pieceBytes));
  }
}

interface Options {
  readonly pieceBytes?: number;
  readonly valueBytesMax?: number;
  readonly isSizeKnown?: boolean;
}

async function contentOf(file: Buffer, options: Options = {}): Promise<Everything> {
  const { pieceBytes = 1 << 16, valueBytesMax = 1 << 20, isSizeKnown = true } = options;
  const sink = new Everything();
  const input = new Input(pieces(file, pieceBytes), isSizeKnown ? file.length : Infinity);
  await readRdb(input, sink, 'dump.rdb', valueBytesMax);
  expect(input.offset).toBe(file.length);
  return sink;
}

const DATABASE: Part = [254, 0];
const listpackOf = (...elements: readonly string[]): string => {
  const pack = new Listpack();
  for (const element of elements) pack.addText(element);
  return pack.bytes();
};
const LONG = 'x'.repeat(300);

const id = (ms: number, sequence: number): Buffer =>
  Buffer.concat([uint64(ms), uint64(sequence)].map((part) => part.reverse()));

/** Two entries, 5-1 and 5-2, and a group with one pending. @param version  of the form */
function streamOf(version: 1 | 2 | 3): Part {
  const pack = new Listpack();
  for (const count of [2, 0, 1]) pack.addInteger(BigInt(count));
  pack.addText('field');
  pack.addInteger(0n);
  for (const sequence of [0, 1]) {
    for (const part of [2, 0, sequence]) pack.addInteger(BigInt(part));
    pack.addText(`value ${sequence}`);
    pack.addInteger(4n);
  }
  return [
    ...[1, [16, id(5, 1)], pack.bytes(), 2, 5, 2],
    ...(version > 1 ? [5, 1, 0, 0, 2] : []),
    ...[1, 'group', 5, 1, ...(version > 1 ? [1] : [])],
    ...[1, id(5, 1), uint64(1_000), 1],
    ...[1, 'alice', uint64(2_000), ...(version === 3 ? [uint64(2_000)] : []), 1, id(5, 1)],
  ];
}

/** A value in each form that some version has written. */
const FORMS: readonly (readonly [name: string, type: number, value: Part])[] = [
  ['string', 0, 'text'],
  ['string:8', 0, [0xc0, 0x80]],
  ['string:16', 0, [0xc1, 0x00, 0x80]],
  ['string:32', 0, [0xc2, 0xff, 0xff, 0xff, 0x7f]],
  ['string:lzf', 0, [0xc3, 5, 20, Buffer.from([0, 97, 0xe0, 10, 0])]],
  ['list', 1, [2, 'a', 'b']],
  ['set', 2, [2, 'a', 'b']],
  [
    'zset:texts',
    3,
    [4, 'a', [3, Buffer.from('1.5')], 'b', [1, Buffer.from('7')], 'c', 254, 'd', 255],
  ],
  ['hash', 4, [1, 'field', 'value']],
  ['hash:zipmap', 9, packed(zipmapOf({ field: 'value', empty: '', long: LONG }))],
  ['hash:zipmap:unused', 9, packed(zipmapOf({ field: 'value', other: '7' }, 3))],
  ['list:ziplist', 10, packed(ziplistOf('a', 5, 'b'))],
  ['set:intset', 11, packed(intsetOf(-5, 1, 100_000))],
  ['zset:ziplist', 12, packed(ziplistOf('a', 1, 'b', '2.5'))],
  ['hash:ziplist', 13, packed(ziplistOf('field', 'value', 'n', 12))],
  ['list:quicklist', 14, [2, packed(ziplistOf('a', 'b')), packed(ziplistOf('c'))]],
  ['hash:listpack', 16, listpackOf('field', 'value')],
  ['zset:listpack', 17, listpackOf('a', '1', 'b', '2.5')],
  ['list:quicklist2', 18, [2, [2, listpackOf('a', 'b')], [1, LONG]]],
  ['stream:1', 15, streamOf(1)],
  ['stream:2', 19, streamOf(2)],
];

/** Those that Redis 7.0 cannot read. */
const LATER_FORMS: readonly (readonly [name: string, type: number, value: Part])[] = [
  ['set:listpack', 20, listpackOf('a', '1', 'b')],
  ['stream:3', 21, streamOf(3)],
];

const ALL_FORMS: typeof FORMS = [...FORMS, ...LATER_FORMS];
const keysOf = (forms: typeof FORMS): Part =>
  forms.map(([name, type, value]) => [type, name, value]);

async function restored(target: Target, keys: Everything['keys']): Promise<Map<string, unknown>> {
  await target.run([['FLUSHALL']], 2);
  for (const { name, type, bytes } of keys) {
    const dump = dumpOfForm(type, bytes).toString('latin1');
    expect(await target.run([['RESTORE', name, '0', dump]], 2), name).toEqual([['+', 'OK']]);
  }
  return contentsOf(target);
}

describe('values in all forms', () => {
  const file = rdbOf(11, DATABASE, keysOf(ALL_FORMS));

  it.each([1, 7, 100, 1 << 16])('in pieces of %i bytes', async (pieceBytes) => {
    const { keys } = await contentOf(file, { pieceBytes });
    expect(keys.map(({ name, type, bytes }) => [name, type, bytes])).toEqual(
      ALL_FORMS.map(([name, type, value]) => [name, type, bytesOf(value)]),
    );
  });

  it('have the elements that they should have', async () => {
    const { keys } = await contentOf(file);
    const contents = await restored(new EngineTarget(), keys);
    const elementsOf = (name: string): unknown => (contents.get(name) as { value: unknown }).value;
    expect(elementsOf('string:16')).toEqual(['$', '-32768']);
    expect(elementsOf('string:lzf')).toEqual(['$', 'a'.repeat(20)]);
    expect(elementsOf('hash:zipmap')).toEqual(
      [`4:long=${LONG}`, '5:field=value', '5:empty='].toSorted(),
    );
    expect(elementsOf('set:listpack')).toEqual(['1', 'a', 'b']);
    expect(elementsOf('stream:3')).toEqual(elementsOf('stream:2'));
  });

  it('are what Redis takes them for', async (context) => {
    if (!hasRedisServer()) {
      if (process.env['CI']) throw new Error(MISSING);
      context.skip(true, MISSING);
    }
    const redis = await startRedisServer();
    try {
      const { keys } = await contentOf(rdbOf(10, DATABASE, keysOf(FORMS)));
      expect(await restored(new EngineTarget(), keys)).toEqual(
        await restored(redis.connection, keys),
      );
    } finally {
      await redis.stop();
    }
  });
});

const KEY: Part = [0, 'key', 'value'];

describe('what precedes a value', () => {
  it.each([1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])('in version %i', async (version) => {
    const { keys } = await contentOf(rdbOf(version, DATABASE, 253, uint32(2_000_000_000), KEY));
    expect(keys).toMatchObject([{ name: 'key', database: 0, expiresAtMs: 2_000_000_000_000 }]);
  });

  it('are times, idleness, databases, sizes, and facts', async () => {
    const { keys, libraries } = await contentOf(
      rdbOf(
        ...[10, [250, 'redis-ver', '7.0.15'], [250, 'redis-bits', [0xc0, 64]]],
        ...[[245, 'code'], DATABASE, [251, lengthOf(20_000), 1], [244, 1, 2, 3]],
        ...[[252, uint64(1_234_567_890_123), 248, lengthOf(100), KEY]],
        ...[[249, 200, KEY], [254, 15], KEY],
      ),
    );
    expect(libraries).toEqual(['code']);
    const facts = keys.map(({ name, type, bytes, ...rest }) => rest);
    expect(facts).toEqual([
      { database: 0, expiresAtMs: 1_234_567_890_123, idleSeconds: 100 },
      { database: 0, frequency: 200 },
      { database: 15 },
    ]);
  });

  it('is a key that may be compressed', async () => {
    const name = [0xc3, 5, 20, Buffer.from([0, 97, 0xe0, 10, 0])];
    const { keys } = await contentOf(rdbOf(10, DATABASE, 0, name, 'value'));
    expect(keys[0].name).toBe('a'.repeat(20));
  });
});

test('a value that is too long is not kept, and what follows is read', async () => {
  const long: Part = [
    1,
    'long',
    lengthOf(1_000),
    ...Array.from({ length: 1_000 }, () => 'element'),
  ];
  const file = rdbOf(10, DATABASE, KEY, long, KEY);
  const { keys, long: left } = await contentOf(file, { valueBytesMax: 5_000, pieceBytes: 100 });
  expect(left).toEqual(['long']);
  expect(keys).toHaveLength(2);
});

test('a file without a checksum, and one whose checksum is off', async () => {
  const file = rdbOf(10, DATABASE, KEY);
  expect((await contentOf(withSum(file, 0n))).keys).toHaveLength(1);
  await expect(contentOf(withSum(file, 1n))).rejects.toThrow(
    `damaged at byte ${file.length}: the checksum`,
  );
});

describe('refused, with the reason and what to do', () => {
  const jsonModule = [0x81, Buffer.from([0x44, 0x95, 0xcb, 0xf0, 0x95, 0x5b, 0x5d, 0x01])];

  it.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'damaged at byte 0: it ends too early'],
    ['another file', Buffer.from('not an RDB file'), 'it is not an RDB file'],
    ['a later version', rdbOf(13, KEY), 'version 13'],
    ['no version', rdbOf(0, KEY), 'version 0'],
    [
      'a value of a module',
      rdbOf(10, DATABASE, 7, 'json', jsonModule),
      'the key "json" has a value of the module',
    ],
    ['data of a module', rdbOf(10, 247, jsonModule), 'data of the module'],
    [
      'fields that expire',
      rdbOf(12, 25, 'hash', uint64(1)),
      'fields of the hash "hash" have times to live',
    ],
    ['early functions', rdbOf(10, 246, 'code'), 'release candidate'],
    ['an append-only file', rdbOf(9, [250, 'aof-preamble', [0xc0, 1]], KEY), 'append-only file'],
    [
      'an unknown type',
      rdbOf(10, DATABASE, 8, 'key'),
      'damaged at byte 11: no value has the type 8',
    ],
    [
      'a length that is none',
      rdbOf(10, DATABASE, 1, 'key', 0xc0),
      'damaged at byte 16: there is no length',
    ],
    [
      'a text that is none',
      rdbOf(10, DATABASE, 0, 'key', 0xc5),
      'damaged at byte 16: there is no text',
    ],
    [
      'a text that is too long',
      rdbOf(10, DATABASE, 0, 'key', [0x80, 0, 1, 0, 0]),
      'goes beyond the end',
    ],
    [
      'an endless text',
      rdbOf(10, DATABASE, 0, 'key', [0x81, 255, uint64(-1)]),
      'goes beyond the end',
    ],
    [
      'too many elements',
      rdbOf(10, DATABASE, 1, 'key', [0x80, 127, 0, 0, 0], 'a'),
      'goes beyond the end',
    ],
    [
      'a bomb',
      rdbOf(10, DATABASE, 0, 'key', 0xc3, 5, [0x80, 31, 0, 0, 0], Buffer.alloc(5)),
      'longer than it can be',
    ],
    [
      'a bomb in a key',
      rdbOf(10, DATABASE, 0, 0xc3, 5, [0x80, 31, 0, 0, 0], Buffer.alloc(5)),
      'longer than it can be',
    ],
  ])('%s', async (_, file, message) => {
    const error = await contentOf(file).catch((reason: Error) => reason);
    expect(error).toMatchObject({ name: 'StoreError', message: expect.stringContaining(message) });
    expect((error as { hint?: string }).hint).toMatch(/\.$/);
  });
});

const SMALL = rdbOf(11, [250, 'redis-ver', '7.0.15'], DATABASE, [251, 1, 1], keysOf(ALL_FORMS));

test('a file that is cut off anywhere is damaged', async () => {
  for (let length = 0; length < SMALL.length; length++) {
    for (const isSizeKnown of [true, false]) {
      const cut = contentOf(SMALL.subarray(0, length), { isSizeKnown });
      await expect(cut, String(length)).rejects.toThrow(/damaged at byte \d+: /);
    }
  }
});

/** Numbers that look random, and are the same in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('files with flipped bits are refused, or make values that are restored or refused', async () => {
  const engine = new EngineTarget();
  const outcomes = { refused: 0, restored: 0, bad: 0 };
  for (let seed = 1; seed <= 1_500; seed++) {
    const random = numbers(seed);
    const body = Buffer.from(SMALL.subarray(0, -8));
    for (let flips = 1 + random(3); flips > 0; flips--) {
      body[9 + random(body.length - 9)] ^= 1 << random(8);
    }
    const file = Buffer.concat([body, crc64(body)]);
    const pieceBytes = 1 + random(2_000);
    const content = await contentOf(file, { pieceBytes, isSizeKnown: seed % 2 === 0 }).catch(
      (error) => error,
    );
    if (content instanceof Error) {
      expect(content, `seed ${seed}`).toMatchObject({ name: 'StoreError' });
      outcomes.refused++;
      continue;
    }
    for (const { name, type, bytes } of content.keys) {
      const dump = dumpOfForm(type, bytes).toString('latin1');
      const [reply] = await engine.run([['RESTORE', name, '0', dump, 'REPLACE']], 2);
      expect(['+OK', '-ERR Bad data format'], `seed ${seed}`).toContain(`${reply[0]}${reply[1]}`);
      if (reply[0] === '+') outcomes.restored++;
      else outcomes.bad++;
    }
  }
  // Each of them has happened.
  expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(50);
});
