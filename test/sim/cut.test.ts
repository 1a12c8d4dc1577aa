/** Members that can't reach each other, but a third. */
import { expect, test } from 'vitest';
import { Stage } from './stage.js';

const SUSPECT_AFTER_US = 20_000;

function threeMembers() {
  const stage = new Stage('groups=1 replicas=3 clients=1 payload=32', {
    timing: { suspectAfterUs: SUSPECT_AFTER_US },
  });
  const [A, B, C] = stage.group(0);
  expect(A.replica.role).toBe('leader');
  return { stage, A, B, C };
}

test('a member that is cut off from its leader does not take turns with it while others hear it', () => {
  const { stage, A, B, C } = threeMembers();
  const { promised } = A.replica.member;
  stage.hold(A, B);
  stage.hold(B, A);
  for (let i = 0; i < 20; i++) {
    stage.send(0, [0], 'm');
    stage.runFor(SUSPECT_AFTER_US);
  }
  expect(stage.world.ledger.orders[0]).toHaveLength(20);
  expect([A, B, C].map(({ replica }) => replica.role)).toEqual(['leader', 'follower', 'follower']);
  expect(A.replica.member.promised).toBe(promised);
  stage.release(A, B);
  stage.release(B, A);
  stage.settle();
  expect(B.replica.member.deliveries).toBe(20);
});

test('but leads once the others do not hear it either', () => {
  const { stage, A, B, C } = threeMembers();
  stage.hold(A, B);
  stage.hold(B, A);
  stage.runFor(3 * SUSPECT_AFTER_US);
  expect(B.replica.role).toBe('follower');
  stage.hold(A, C);
  stage.hold(C, A);
  stage.until(() => B.replica.role === 'leader' || C.replica.role === 'leader', 500_000);
  stage.send(0, [0], 'm');
  stage.until(() => stage.world.ledger.orders[0]!.length === 1, 500_000);
});
