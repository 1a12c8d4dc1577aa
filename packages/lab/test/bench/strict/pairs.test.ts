/** The order in which pairs are measured, and how their figures are compared. */
import { expect, test } from 'vitest';
import { compare, inPairs } from '../../../src/bench/strict/pairs.js';

test('each order comes first in every other pair', async () => {
  const measured: string[] = [];
  const pairs = await inPairs(3, async (order) => `${order} ${measured.push(order)}`);
  expect(measured).toEqual(['multicast', 'strict', 'strict', 'multicast', 'multicast', 'strict']);
  expect(pairs).toEqual([
    { multicast: 'multicast 1', strict: 'strict 2' },
    { multicast: 'multicast 4', strict: 'strict 3' },
    { multicast: 'multicast 5', strict: 'strict 6' },
  ]);
});

test('the ratio is the median of the ratios of the pairs, not the ratio of the medians', () => {
  const pairs = [
    { multicast: { figure: 10 }, strict: { figure: 20 } },
    { multicast: { figure: 20 }, strict: { figure: 20 } },
    { multicast: { figure: 40 }, strict: { figure: 60 } },
  ];
  const { multicast, strict, ratio } = compare(pairs, ({ figure }) => figure);
  expect(multicast).toMatchObject({ median: 20, least: 10, greatest: 40 });
  expect(strict).toMatchObject({ median: 20, least: 20, greatest: 60 });
  expect(ratio).toEqual({ median: 1.5, least: 1, greatest: 2, rounds: 3 });
});
