/** Forms of dumps that Redis 7 does not write any more. The others are tested with the real server. */

import { expect, test } from 'vitest';
import { decompressed } from '../../src/engine/rdb/lzf.js';
import { ziplistElements } from '../../src/engine/rdb/packed.js';

/** @param entries  without the lengths of the entries before them, which are not read */
function ziplist(...entries: number[][]): Buffer {
  return Buffer.from([
    ...new Array(10).fill(0),
    ...entries.flatMap((entry) => [0, ...entry]),
    0xff,
  ]);
}

test('all entries of a ziplist', () => {
  const text = Array.from(Buffer.from('x'.repeat(70)));
  const bytes = ziplist(
    [2, 97, 98],
    [0x40, 70, ...text],
    [0x80, 0, 0, 0, 3, 97, 98, 99],
    [0xc0, 0x00, 0x80],
    [0xd0, 0xff, 0xff, 0xff, 0x7f],
    [0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80],
    [0xf0, 0xff, 0xff, 0xff],
    [0xfe, 0x80],
    [0xf1],
    [0xfd],
  );
  expect(ziplistElements(bytes)).toEqual([
    'ab',
    'x'.repeat(70),
    'abc',
    '-32768',
    '2147483647',
    '-9223372036854775808',
    '-1',
    '-128',
    '0',
    '12',
  ]);
});

test('a ziplist that has no end is refused', () => {
  expect(() => ziplistElements(ziplist([2, 97, 98]).subarray(0, -1))).toThrow(RangeError);
  expect(() => ziplistElements(ziplist([0x90]))).toThrow(RangeError);
});

test('LZF: runs, repetitions, and repetitions of themselves', () => {
  expect(decompressed(Buffer.from([1, 97, 98, 0x20, 1]), 5).toString()).toBe('ababa');
  expect(decompressed(Buffer.from([0, 97, 0xe0, 10, 0]), 20).toString()).toBe('a'.repeat(20));
  expect(() => decompressed(Buffer.from([0, 97, 0x20, 5]), 4)).toThrow(RangeError);
  expect(() => decompressed(Buffer.from([5, 97]), 6)).toThrow(RangeError);
});
