/** A leader marks only those writes as urgent that it needs for a quorum. */
import { expect, test, vi } from 'vitest';
import { Stage } from '../../src/sim/stage.js';
import { durableStage } from './durable-stage.js';

test('a leader marks the writes to a quorum as urgent, and not those to a member that has fallen behind', () => {
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
  // A does not know yet that B does not answer. It decides with C.
  expect(sendOne()).toEqual([B.participant]);
  expect(sendOne()).toEqual([C.participant]);
  stage.release(A, B);
  stage.runFor(5000);
  expect(sendOne()).toEqual([B.participant]);
  // From time to time A tries both: C may have become faster.
  const rounds = Array.from({ length: 64 }, sendOne);
  expect(rounds.filter((urgent) => urgent.length === 2)).toEqual([[B.participant, C.participant]]);
});

test('a leader with just one other member marks the writes to it as urgent', () => {
  const stage = new Stage('groups=1 replicas=2 clients=1 payload=32', {
    // Most steps are quick.
    timing: { heartbeatUs: 2000, restUs: 2000, quickUs: 2000, suspectAfterUs: 20_000 },
  });
  const [A, B] = stage.group(0);
  const markUrgent = vi.spyOn(A.memory, 'markUrgent');
  for (let sent = 1; sent <= 20; sent++) {
    stage.send(0, [0], 'm');
    stage.until(() => A.replica.member.deliveries === sent);
  }
  expect(markUrgent.mock.calls.map(([peer]) => peer)).toEqual(Array(20).fill(B.participant));
});

test.each([true, false])(
  'if clients wait for journals (%s), a leader wakes the other members as soon as entries are decided',
  (isAwaited) => {
    const { stage, deliveries } = durableStage(Stage, 'groups=1 replicas=3 clients=1', {
      isAwaited,
    });
    const [A, B, C] = stage.group(0);
    const wake = vi.spyOn(A.memory, 'wake');
    stage.send(0, [0], 'm');
    stage.until(() => [A, B, C].every((member) => deliveries(member) === 1));
    const urgent = new Set(wake.mock.calls.flatMap(([peer, isUrgent]) => (isUrgent ? peer : [])));
    expect(urgent.has(B.participant)).toBe(isAwaited);
    expect(urgent.has(C.participant)).toBe(isAwaited);
  },
);
