/** Whom a leader waits for: as many as it needs to decide, and those who keep up. */
import { expect, test, vi } from 'vitest';
import { Stage } from '../../src/sim/stage.js';

test('a leader hurries a quorum, and not who has fallen back', () => {
  const stage = new Stage('groups=1 replicas=3 clients=1 payload=32');
  const { world } = stage;
  const [A, B, C] = stage.group(0);
  expect(A.replica.role).toBe('leader');
  const markUrgent = vi.spyOn(A.memory, 'markUrgent');
  const sendOne = (): number[] => {
    const decided = world.ledger.orders[0].length + 1;
    markUrgent.mockClear();
    stage.send(0, [0], 'm');
    stage.until(() => world.ledger.orders[0].length === decided);
    return markUrgent.mock.calls.map(([peer]) => peer);
  };
  expect(sendOne()).toEqual([B.participant]);
  stage.hold(A, B);
  // It is not known yet that B does not answer; what A decides it decides with C.
  expect(sendOne()).toEqual([B.participant]);
  expect(sendOne()).toEqual([C.participant]);
  stage.release(A, B);
  stage.runFor(5000);
  expect(sendOne()).toEqual([B.participant]);
  // Somebody else may have become faster.
  const rounds = Array.from({ length: 64 }, sendOne);
  expect(rounds.filter((hurried) => hurried.length === 2)).toEqual([
    [B.participant, C.participant],
  ]);
});
