/** Durations, sizes and columns. */
import { expect, test } from 'vitest';
import { duration, inColumns, size } from '../../src/cli/texts.js';

test.each([
  [999, '999 ns'],
  [1500, '1.5 µs'],
  [45_400, '45 µs'],
  [2_500_000, '2.5 ms'],
  [12_000_000_000, '12 s'],
])('%d ns is %s', (ns, text) => {
  expect(duration(ns)).toBe(text);
});

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [67_108_864, '64 MiB'],
  [2 ** 55, '32,768 TiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(size(bytes)).toBe(text);
});

test('texts stand side by side while there is room', () => {
  expect(inColumns('hosts', ['0 up', '1 down', '2 up'], 30)).toEqual([
    'hosts    0 up     1 down',
    '         2 up',
  ]);
  expect(inColumns('hosts', ['0 up', '1 up'], 0)).toEqual(['hosts    0 up', '         1 up']);
});
