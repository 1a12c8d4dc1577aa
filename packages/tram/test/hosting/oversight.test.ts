/** When a cluster is drained: all groups have leaders, and nothing moves any more. */
import { expect, test } from 'vitest';
import { Calm } from '../../src/hosting/oversight.js';
import type { GroupStatus } from '../../src/hosting/status.js';

const LONG_MS = 1000;

function group(leader: number | undefined, ...messages: readonly number[]): GroupStatus {
  const replicas = messages.map((count) => ({ state: 'up', messages: count, relayed: 1 }));
  return { leader, replicas } as unknown as GroupStatus;
}

test('nothing moves for a while', () => {
  const calm = new Calm();
  const groups = [group(0, 5, 5), group(1, 7, 7)];
  expect(calm.holds(groups, 0)).toBe(false);
  expect(calm.holds(groups, 1)).toBe(false);
  expect(calm.holds(groups, LONG_MS)).toBe(true);
});

test('a delivery begins the while anew', () => {
  const calm = new Calm();
  calm.holds([group(0, 5, 5)], 0);
  expect(calm.holds([group(0, 6, 6)], LONG_MS)).toBe(false);
  expect(calm.holds([group(0, 6, 6)], 2 * LONG_MS)).toBe(true);
});

test.each([
  ['has no leader', group(undefined, 5, 5)],
  ['has a replica that is behind', group(0, 5, 4)],
])('a group that %s', (_, uneven) => {
  const calm = new Calm();
  calm.holds([uneven], 0);
  expect(calm.holds([uneven], LONG_MS)).toBe(false);
});

test('a leader change while nothing is ordered', () => {
  const calm = new Calm();
  calm.holds([group(0, 5, 5)], 0);
  calm.holds([group(undefined, 5, 5)], 1);
  expect(calm.holds([group(1, 5, 5)], LONG_MS)).toBe(false);
  expect(calm.holds([group(1, 5, 5)], 2 * LONG_MS)).toBe(true);
});
