/** Whom a leader waits for: as many as it needs to decide, and those who keep up. */
import { expect, test, vi } from 'vitest';
import { Stage } from '../../src/sim/stage.js';

test('a leader hurries a quorum, and not who has fallen back', () => {
  const stage = new Stage('groups=1 replicas=3 clients=1 payload=32');
  const { world } = stage;
  const [A, B, C] = stage.group(0);
  expect(A.replica.role).toBe('leader');
  const hurry = vi.spyOn(A.memory, 'hurry');
  const sendOne = (): number[] => {
    const decided = world.ledger.orders[0]!.length + 1;
    hurry.mockClear();
    stage.send(0, [0], 'm');
    stage.until(() => world.ledger.orders[0]!.length === decided);
    return hurry.mock.calls.map(([peer]) => peer);
  };
  expect(sendOne()).toEqual([B.process]);
  stage.hold(A, B);
  // It is not known yet that B does not answer; what A decides it decides with C.
  expect(sendOne()).toEqual([B.process]);
  expect(sendOne()).toEqual([C.process]);
  stage.release(A, B);
  stage.runFor(5000);
  expect(sendOne()).toEqual([B.process]);
  // Somebody else may have become faster.
  const rounds = Array.from({ length: 64 }, sendOne);
  expect(rounds.filter((hurried) => hurried.length === 2)).toEqual([[B.process, C.process]]);
});
