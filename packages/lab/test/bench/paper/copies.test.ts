/** The least number of copies that a message needs. */
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { expect, test } from 'vitest';
import { setOf } from '../../../src/bench/load/destinations.js';
import { copiesOf } from '../../../src/bench/paper/copies.js';

test('copies into inboxes and logs, forwards and replies are counted', () => {
  const overlay = new Overlay([-1, 0, 1, 1]);
  // Three copies into inboxes, three into logs, one reply.
  expect(copiesOf(overlay, 3, setOf([3]))).toBe(3 + 3 + 1);
  // The message enters at group 1, which is no destination, and is forwarded twice.
  expect(copiesOf(overlay, 3, setOf([2, 3]))).toBe(3 + 9 + 6 + 2);
  expect(copiesOf(overlay, 1, setOf([0, 1, 2, 3]))).toBe(1 + 4 + 3 + 4);
});
