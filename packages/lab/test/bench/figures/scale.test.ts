/** Ticks are round numbers around all values; scales map values to places. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { logTicks, roundTicks, scaleOf, tickLabel } from '../../../src/bench/figures/scale.js';

describe('ticks', () => {
  test.each([
    [0, 10, [0, 2, 4, 6, 8, 10]],
    [0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [0, 97, [0, 20, 40, 60, 80, 100]],
    [0, 0.03, [0, 0.01, 0.02, 0.03]],
    [3, 3, [3, 4]],
  ])('from %d to %d', (least, greatest, ticks) => {
    expect(roundTicks(least, greatest, 5)).toEqual(ticks);
  });

  test.each([
    [1, 10, [1, 2, 5, 10]],
    [3, 40, [2, 5, 10, 20, 50]],
    [0.5, 900, [0.1, 1, 10, 100, 1000]],
    [7, 7, [5, 10]],
  ])('logarithmic from %d to %d', (least, greatest, ticks) => {
    expect(logTicks(least, greatest)).toEqual(ticks);
  });

  test('they are around all values, ascending, and few', () => {
    const value = fc.double({ min: 1e-6, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [least, greatest] = [Math.min(a, b), Math.max(a, b)];
        for (const ticks of [roundTicks(0, greatest, 5), logTicks(least, greatest)]) {
          expect(ticks.length).toBeLessThanOrEqual(17);
          expect(ticks.at(-1)).toBeGreaterThanOrEqual(greatest * (1 - 1e-6));
          expect([...ticks].sort((x, y) => x - y)).toEqual(ticks);
          expect(new Set(ticks).size).toBe(ticks.length);
        }
        expect(logTicks(least, greatest)[0]).toBeLessThanOrEqual(least * (1 + 1e-6));
      }),
    );
  });

  test.each([
    [1500, '1,500'],
    [0.05, '0.05'],
    [40_000_000, '40M'],
  ])('%d is labelled %s', (value, label) => {
    expect(tickLabel(value)).toBe(label);
  });
});

describe('a scale', () => {
  const place = { from: 0, to: 100 };

  test('is linear', () => {
    const { at } = scaleOf({ kind: 'linear', least: 0, greatest: 10, ...place });
    expect([0, 5, 10].map(at)).toEqual([0, 50, 100]);
  });

  test('is logarithmic', () => {
    const { at } = scaleOf({ kind: 'log', least: 1, greatest: 100, ...place });
    expect([1, 10, 100].map((value) => Math.round(at(value)))).toEqual([0, 50, 100]);
  });

  test('ends with the values where ticks are given', () => {
    const options = { kind: 'log', least: 1, greatest: 8, ticks: [1, 2, 8], ...place } as const;
    const { at, ticks } = scaleOf(options);
    expect(ticks).toEqual([1, 2, 8]);
    expect([1, 8].map(at)).toEqual([0, 100]);
  });
});
