/** Which groups change their leader, and how often. */
import { expect, test } from 'vitest';
import { groupsToChange } from '../../../src/bench/machines/leader-changes.js';

test.each([
  [8, 3],
  [1, 3],
  [64, 7],
  [2, 5],
])('with %d groups of %d, the first leaders lead again after all changes', (groups, replicas) => {
  const changes = groupsToChange({ groups, replicas });
  expect(changes.length).toBeGreaterThanOrEqual(20);
  expect(changes.length).toBeLessThan(20 + groups * replicas);
  for (const group of new Set(changes)) {
    expect(group).toBeLessThan(groups);
    expect(changes.filter((other) => other === group).length % replicas).toBe(0);
  }
});
