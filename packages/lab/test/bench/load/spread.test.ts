/** Median, least and greatest of several rounds. */
import { expect, test } from 'vitest';
import { spreadOf } from '../../../src/bench/load/spread.js';

test('median and spread', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, least: 1, greatest: 3, rounds: 3 });
  expect(spreadOf([4, 1])).toMatchObject({ median: 2.5 });
  expect(spreadOf([])).toBeUndefined();
});
