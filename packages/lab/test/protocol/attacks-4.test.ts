/** Interleavings that once broke the protocol, told as in `attacks.test.ts`: feeds that begin anew. */

import { HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import { expect, test } from 'vitest';
import { Stage } from '../../src/sim/stage.js';
import type { ReplicaHost } from '../../src/sim/world.js';

const TORN_WORDS = { from: HEAD_WORDS + 7, to: HEAD_WORDS + 10 };

/** A leads the parent of the group that C leads, and has forwarded one message to it. */
function parentAndChild(prepare: (A: ReplicaHost) => void = () => undefined) {
  const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1 payload=32', {
    timing: { suspectAfterUs: 20_000 },
  });
  const { world } = stage;
  const [A] = stage.group(0);
  const [C] = stage.group(1);
  expect([A, C].map(({ replica }) => replica.role)).toEqual(['leader', 'leader']);
  prepare(A);
  stage.send(0, [0, 1], 'a'.repeat(32));
  stage.runFor(1500);
  expect(world.ledger.orders[1]).toHaveLength(1);
  return { stage, world, A, C };
}

/** A writes one more into its feed at C; both ends of it land, and not what is between them. */
function forwardHalf(stage: Stage, A: ReplicaHost, C: ReplicaHost) {
  const { layout, fabric } = stage.world;
  stage.hold(A, C);
  stage.send(0, [0, 1], 'm'.repeat(32));
  stage.until(() => A.replica.member.deliveries === 2);
  const link = fabric['link'](A.process, C.process);
  const feed = layout.feedRing(A.member);
  const { at, data, dataAt, count } = link.operations.find(
    (operation) => !operation.isRead && operation.at >= feed,
  )!;
  for (let i = 0; i < count; i++) {
    if (i >= TORN_WORDS.from && i < TORN_WORDS.to) continue;
    C.memory.own[at + i] = data[dataAt + i]!;
  }
  return link;
}

test('the end of a feed that begins anew does not make half a message of the old one count', () => {
  // 1. A forwards m. Half of it lands at C, then the connection breaks.
  // 2. A leads again, in the same life, before it has written m again. Its feed begins anew, behind m.
  // 3. It tells C so, word by word.
  //    Harm: C knows the new end and the old start, and takes half of m for a message.
  const { stage, world, A, C } = parentAndChild();
  const link = forwardHalf(stage, A, C);
  stage.stand(A);
  world.fabric.breakLink(A.process, C.process);
  stage.until(() => A.replica.role === 'leader');
  stage.release(A, C);
  const start = world.layout.feedStart(A.member);
  stage.until(() => link.operations.some(({ isRead, at }) => !isRead && at === start));
  stage.hold(A, C);
  stage.releaseOneByOne(A, C, 3000);
  stage.runFor(22_000);
  stage.settle();
  expect(world.ledger.orders[1]).toHaveLength(2);
});

test.each([1, 2, 3])(
  'nor if its writer has a new life, after 2³¹ words, and stops after %d posts',
  (posts) => {
    // As before, but A is killed in the middle of m and resumes: its feed starts again from the origin.
    // After so many words the origin seems to lie ahead of where C is.
    const { stage, world, A, C } = parentAndChild((leader) => {
      const feed = leader.replica['leader']['feeds'][0]!;
      const far = (0x80000000 + 1024) | 0;
      feed['endPosition'] = far;
      feed['sentPosition'] = far;
      feed['oldestPosition'] = far;
    });
    forwardHalf(stage, A, C);
    stage.kill(A);
    stage.resume(A);
    stage.release(A, C);
    stage.stallAfterWrites(A, C, posts);
    stage.hopeFor(() => A.memory.isStalled, 30_000);
    stage.runFor(3000);
    A.memory.resume();
    stage.runFor(20_000);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(2);
  },
);

test('what is copied from a feed counts only if the feed still begins before it', () => {
  // 1. A forwards m; it lies in C's memory, whole.
  // 2. C copies it. Before C is done, the news lands that the feed begins elsewhere: what was copied may be
  //    half of something else. (In the simulator nothing lands within a step, so the script puts it there.)
  //    Harm: C makes an entry of it. Or it does not, but the copy, an entry of the parent's under the same ballot
  //    and with the same index as C's next, stands behind the end of C's log, and whoever reads that takes it for one.
  const { stage, world, A, C } = parentAndChild();
  expect(C.replica['replication'].ballot).toBe(A.replica['replication'].ballot);
  expect(C.replica['replication'].endIndex).toBe(A.replica['replication'].endIndex);
  world.pause(C);
  stage.send(0, [0, 1], 'm'.repeat(32));
  stage.runFor(300);
  const { own } = C.memory;
  const { member } = C.replica;
  const number = world.layout.feedStart(A.member) + 2;
  const before = own[number]!;
  const taken = C.replica['replication'].endIndex;
  let fences = 0;
  C.memory.readFence = () => {
    fences++;
    // The one before the end is read comes first.
    if (fences >= 2) own[number] = before + 1;
  };
  world.resume(C);
  stage.until(() => fences >= 2);
  stage.runFor(200);
  const { ring, endIndex } = C.replica['replication'];
  expect(endIndex).toBe(taken);
  expect(member.log.extentOf(ring, endIndex).endIndex).toBe(endIndex);

  C.memory.readFence = () => undefined;
  own[number] = before;
  stage.settle();
  expect(world.ledger.orders[1]).toHaveLength(2);
});

test.each(['deposed', 'killed', 'killed half-way'] as const)(
  "what a leader has copied from its parent and not made its own is nobody's: it is %s",
  (fate) => {
    // 1. C, leader of the child, copies three of the parent's entries behind its log's end. Their ballot is C's own,
    //    and their indices are the next ones of its log.
    // 2. It goes no further, or makes only the first of them its own.
    // 3. Its log is read by the next leader: by its grant, or after it has resumed.
    //    Harm: the entries of the parent's are taken for entries of C's, with the origin that they had at the parent.
    const { stage, world, A, C } = parentAndChild();
    const [, D, E] = stage.group(1);
    world.pause(C);
    for (let i = 0; i < 3; i++) stage.send(0, [0, 1], 'm'.repeat(32));
    stage.runFor(400);
    const { own } = C.memory;
    const number = world.layout.feedStart(A.member) + 2;
    const before = own[number]!;
    const leader = C.replica['leader'];
    let isStruck = false;
    if (fate === 'killed half-way') {
      const makeOurs = leader['makeOurs'].bind(leader);
      const order = leader.order.bind(leader);
      let made = 0;
      leader['makeOurs'] = () => {
        isStruck = made++ === 1;
        if (isStruck) throw new Error('struck');
        makeOurs();
      };
      leader.order = () => {
        try {
          return order();
        } catch (error) {
          if (!isStruck) throw error;
          return 0;
        }
      };
    } else {
      let fences = 0;
      C.memory.readFence = () => {
        isStruck = ++fences >= 2;
        if (isStruck) own[number] = before + 1;
      };
    }
    world.resume(C);
    stage.until(() => isStruck);
    C.memory.readFence = () => undefined;
    own[number] = before;
    const { ring, endIndex } = C.replica['replication'];
    expect(C.replica.member.log.extentOf(ring, endIndex).endIndex).toBe(endIndex);

    world.crash(E);
    if (fate === 'deposed') {
      world.pause(C);
      stage.stand(D);
      stage.runFor(200);
      world.resume(C);
    } else {
      stage.kill(C);
      stage.runFor(500);
      stage.resume(C);
      stage.stand(D);
    }
    stage.runFor(30_000);
    stage.restart(E);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(4);
  },
);
