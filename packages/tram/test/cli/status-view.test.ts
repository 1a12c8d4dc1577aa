/** How the commands show trees and durations. */
import { describe, expect, test } from 'vitest';
import { duration, treeOf } from '../../src/cli/status-view.js';

describe('a tree', () => {
  const labels = (parents: number[]): string[] => treeOf(parents).map(({ label }) => label);

  test('is drawn in the order of a walk through it', () => {
    expect(labels([-1, 0, 0, 1])).toEqual(['g0', '├─ g1', '│  └─ g3', '└─ g2']);
    expect(treeOf([1, -1]).map(({ group }) => group)).toEqual([1, 0]);
  });

  test('is a list where it would get too deep', () => {
    const chain = Array.from({ length: 12 }, (_, group) => group - 1);
    expect(labels(chain).slice(0, 3)).toEqual(['g0', 'g1 under g0', 'g2 under g1']);
  });
});

test.each([
  [999, '999 ns'],
  [1500, '1.5 µs'],
  [45_400, '45 µs'],
  [2_500_000, '2.5 ms'],
  [12_000_000_000, '12 s'],
])('%d ns is %s', (ns, text) => {
  expect(duration(ns)).toBe(text);
});
