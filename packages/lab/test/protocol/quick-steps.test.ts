/**
 * Between two full steps, replicas take quick ones. Here full steps are due rarely, so what happens soon happens because a
 * member noticed that a quick step is not enough.
 */
import { expect, test } from 'vitest';
import { Stage as IntactStage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';

const SOON_US = 300;
const RARELY = { heartbeatUs: 2000, restUs: 2000, quickUs: 2000, suspectAfterUs: 20_000 };

attack('a member answers a request at once', { 'quick-despite-mail': STUCK }, ({ Stage }) => {
  const stage = new Stage('replicas=3', { timing: RARELY });
  const [, B] = stage.group(0);
  stage.campaign(B);
  stage.until(() => B.replica.role === 'leader', SOON_US);
  stage.settle();
});

attack(
  'a member campaigns as soon as its leader has ended',
  { 'quick-despite-end': STUCK },
  ({ Stage }) => {
    const stage = new Stage('replicas=3', { timing: RARELY });
    const [A, B, C] = stage.group(0);
    stage.world.crash(A);
    for (const { memory } of [B, C]) memory.hasEnded = (peer) => peer === A.participant;
    stage.until(() => B.replica.role === 'leader', SOON_US);
    stage.settle();
  },
);

attack(
  'a leader that seldom runs takes a full step after three quick ones that have found messages',
  { 'put-off-for-ever': /expected/ },
  ({ Stage }) => {
    const quickUs = SOON_US / 2;
    const heartbeatUs = 6000;
    const timing = { ...RARELY, heartbeatUs, restUs: heartbeatUs, quickUs };
    const stage = new Stage('replicas=3', { timing });
    const [A] = stage.group(0);
    const { replica } = A;
    const { rows } = replica;
    const quickBeforeFull: number[] = [];
    let steps = 0;
    const beginStep = rows.beginStep.bind(rows);
    rows.beginStep = (nowUs) => {
      quickBeforeFull.push(steps);
      steps = -1;
      beginStep(nowUs);
    };
    const doWork = replica.doWork.bind(replica);
    let ranUs = 0;
    replica.doWork = (nowUs) => {
      if (nowUs < ranUs + 2 * quickUs) return 0;
      ranUs = nowUs;
      const work = doWork(nowUs);
      steps++;
      stage.send(0, [0], 'm');
      return work;
    };
    stage.runFor(heartbeatUs);
    expect(Math.max(...quickBeforeFull)).toBe(3);
    replica.doWork = doWork;
    stage.settle();
  },
);

attack(
  'a leader drops entries as soon as its log fills up',
  { 'quick-though-pressed': STUCK },
  ({ Stage }) => {
    const stage = new Stage('replicas=3 rings=1024', { timing: RARELY });
    const [A] = stage.group(0);
    const stop = stage.flood(0, [0], 'm'.repeat(32));
    stage.until(() => A.replica.member.deliveries > 40, 4 * SOON_US);
    stop();
    stage.settle();
  },
);

attack(
  'a member notices at once that it was left behind',
  { 'quick-though-behind': STUCK },
  ({ Stage }) => {
    const stage = new Stage('replicas=3 rings=1024', {
      timing: RARELY,
    });
    const [A, , C] = stage.group(0);
    const stop = stage.flood(0, [0], 'm'.repeat(32));
    stage.hold(A, C);
    stage.until(() => A.replica.replication.baseIndex > C.replica.member.nextToDeliver, 200_000);
    stop();
    const { rows } = C.replica;
    stage.until(() => rows.dueUs > stage.world.nowUs + 4 * SOON_US);
    stage.runFor(SOON_US);
    stage.release(A, C);
    stage.until(() => C.replica.member.needs > 0, SOON_US);
    stage.settle();
  },
);

attack(
  'the first message to a child goes there at once, although its feed was empty when the child was seen',
  { 'feed-forgets-returned': STUCK },
  ({ Stage }) => {
    const stage = new Stage('groups=2 replicas=3', { timing: RARELY });
    const [A] = stage.group(0);
    const [D] = stage.group(1);
    stage.until(() => A.replica.rows.dueUs > stage.world.nowUs + 4 * SOON_US);
    stage.runFor(SOON_US);
    stage.send(0, [0, 1], 'm');
    stage.until(() => D.replica.member.deliveries === 1, SOON_US);
    stage.settle();
  },
);

attack(
  'a leader that owes it to its members to tell what is decided says when it has to run',
  { 'decided-never-due': /Infinity/ },
  ({ Stage }) => {
    const stage = new Stage('replicas=3', { timing: RARELY });
    const [A, B] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => A.replica.member.deliveries === 1);
    expect(B.replica.member.deliveries).toBe(0);
    expect(A.replica.dueUs).toBeLessThan(Number.POSITIVE_INFINITY);
    stage.until(() => B.replica.member.deliveries === 1);
    expect(A.replica.dueUs).toBe(Number.POSITIVE_INFINITY);
    stage.settle();
  },
);

attack(
  'a leader that has made room in a full log says that it has to run at once',
  { 'room-never-due': STUCK },
  ({ Stage }) => {
    const stage = new Stage('replicas=3 rings=1024', { timing: RARELY });
    const [A] = stage.group(0);
    const stop = stage.flood(0, [0], 'm'.repeat(32));
    stage.until(() => A.replica.dueUs === Number.NEGATIVE_INFINITY, 20_000);
    const { endIndex } = A.replica.replication;
    // Its next step takes what had found no room.
    stage.until(() => A.replica.replication.endIndex > endIndex, SOON_US);
    stop();
    stage.until(() => A.replica.dueUs === Number.POSITIVE_INFINITY);
    stage.settle();
  },
);

attack(
  'a leader that does not know at once that a quorum holds an entry sends it to all in the same step',
  { 'quorum-waited-for': STUCK },
  ({ Stage }) => {
    const stage = new Stage('replicas=3', { timing: RARELY });
    const [A, B, C] = stage.group(0);
    const { replica } = A;
    stage.until(() => replica.rows.dueUs > stage.world.nowUs + 4 * SOON_US);
    stage.runFor(SOON_US);
    stage.hold(A, B);
    const { endIndex } = replica.replication;
    const doWork = replica.doWork.bind(replica);
    replica.doWork = (nowUs) => (replica.replication.endIndex > endIndex ? 0 : doWork(nowUs));
    stage.send(0, [0], 'm');
    stage.until(() => C.replica.member.sealLog().endIndex > endIndex, SOON_US);
    replica.doWork = doWork;
    stage.settle();
  },
);

attack(
  'what a leader has delivered is decided in its own log',
  { 'own-decided-put-off': /expected/ },
  ({ Stage }) => {
    const stage = new Stage('replicas=3', { timing: RARELY });
    const [A] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => A.replica.member.deliveries === 1);
    expect(A.replica.replication.ring.decided).toBe(A.replica.member.nextToDeliver);
    stage.settle();
  },
);

test('if it is given no time for quick steps, all are full', () => {
  const stage = new IntactStage('replicas=3', { timing: { ...RARELY, quickUs: 0 } });
  const [A, B] = stage.group(0);
  stage.send(0, [0], 'm');
  stage.until(() => A.replica.member.deliveries === 1);
  stage.until(() => B.replica.member.deliveries === 1, SOON_US);
  expect(A.replica.dueUs).toBe(Number.POSITIVE_INFINITY);
  stage.settle();
});
