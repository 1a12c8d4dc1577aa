/** The order of measurements in rounds. */
import { expect, test } from 'vitest';
import { inRounds } from '../../../src/bench/load/rounds.js';

test('every other round is in reverse order', async () => {
  const order: string[] = [];
  const rounds = await inRounds(3, ['a', 'b', 'c'], async (id) => `${id}${order.push(id)}`);
  expect(order.join('')).toBe('abccbaabc');
  expect(rounds).toEqual([
    ['a1', 'b2', 'c3'],
    ['a6', 'b5', 'c4'],
    ['a7', 'b8', 'c9'],
  ]);
});
