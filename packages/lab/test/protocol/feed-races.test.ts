/** A child reads a feed of its parent while entries land, are lost or are written again, or the feed starts again. */

import { FRAME_WORDS, HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Stage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';
import { parentAndChild } from './parent-and-child.js';

const TORN_WORDS = { from: HEAD_WORDS + 7, to: HEAD_WORDS + 10 };

/** A writes another message into its feed at C. Both ends of the record land, but some words between them do not. */
function forwardHalf(stage: Stage, A: ReplicaHost, C: ReplicaHost) {
  const { layout } = stage.world;
  stage.hold(A, C);
  stage.send(0, [0, 1], 'm'.repeat(32));
  stage.until(() => A.replica.member.deliveries === 2);
  const link = stage.linkOf(A, C);
  const feed = layout.feedRing(A.member);
  const { at, data, dataAt, count } = link.operations.find(
    (operation) => !operation.isRead && operation.at >= feed,
  )!;
  for (let i = 0; i < count; i++) {
    if (i >= TORN_WORDS.from && i < TORN_WORDS.to) continue;
    C.memory.own[at + i] = data[dataAt + i];
  }
  return link;
}

attack(
  'the end of a feed that starts again does not make half a message of the old feed valid',
  { 'feed-old-start-stays': /with another payload/ },
  ({ Stage }) => {
    // 1. A forwards m. Half of it lands at C, then the connection breaks.
    // 2. A leads again, in the same incarnation, before it has written m again. Its feed starts again, behind m.
    // 3. It writes the new start and end to C, word by word.
    //    Harm: C knows the new end and the old start, and takes half of m for a message.
    const { stage, world, A, C } = parentAndChild(Stage);
    const link = forwardHalf(stage, A, C);
    stage.campaign(A);
    world.fabric.breakLink(A.participant, C.participant);
    stage.until(() => A.replica.role === 'leader');
    stage.release(A, C);
    const start = world.layout.feedStart(A.member);
    stage.until(() => link.operations.some(({ isRead, at }) => !isRead && at === start));
    stage.hold(A, C);
    stage.releaseOneByOne(A, C, 3000);
    stage.runFor(22_000);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(2);
  },
);

for (const posts of [1, 2, 3]) {
  attack(
    `nor does it if the writer has a new incarnation, after 2³¹ words, and stalls after ${posts} posts`,
    {},
    ({ Stage }) => {
      // As before, but A is killed in the middle of m and resumes: its feed starts again from the first position.
      // After so many words, the first position seems to be ahead of C.
      const far = (0x80000000 + 1024) | 0;
      const { stage, world, A, C } = parentAndChild(Stage, (leader) => {
        const [feed] = leader.replica.leader.forwarding.feeds;
        const names = ['endPosition', 'sentPosition', 'owedPosition', 'oldestPosition'];
        Object.assign(feed, Object.fromEntries(names.map((name) => [name, far])));
      });
      const end = C.memory.own[world.layout.feedEnd(A.member)];
      expect(end - far).toBeGreaterThan(0);
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
}

attack(
  'a copied entry of a feed is valid only if the feed still starts before it',
  { 'feed-copy-unchecked': /expected 2 to be 1/, 'same-salt': /expected \d to be \d/ },
  ({ Stage }) => {
    // 1. A forwards m; it is complete in C's memory.
    // 2. C copies it. Before C is done, another start of the feed lands: the copy may be half of another message. (In the
    //    simulator nothing lands within a step, so the script writes it.)
    //    Harm: C appends the copy to its log. Or C does not, but the copy stays behind the end of C's log. It is an entry
    //    of the parent with the same ballot and index as C's next entry, and a reader of the log takes it for that.
    const { stage, world, A, C } = parentAndChild(Stage);
    expect(C.replica.replication.ballot).toBe(A.replica.replication.ballot);
    expect(C.replica.replication.endIndex).toBe(A.replica.replication.endIndex);
    world.pause(C);
    stage.send(0, [0, 1], 'm'.repeat(32));
    stage.runFor(300);
    const { own } = C.memory;
    const { member } = C.replica;
    const number = world.layout.feedStart(A.member) + 2;
    const before = own[number];
    const taken = C.replica.replication.endIndex;
    let isStruck = false;
    C.memory.readFence = () => {
      // The fence between the copy and the look at the start.
      own[number] = before + 1;
      isStruck = true;
    };
    world.resume(C);
    stage.until(() => isStruck);
    stage.runFor(200);
    const { ring, endIndex } = C.replica.replication;
    expect(endIndex).toBe(taken);
    expect(member.log.extentOf(ring, endIndex).endIndex).toBe(endIndex);

    C.memory.readFence = () => undefined;
    own[number] = before;
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(2);
  },
);

attack(
  'half a message in the feed of a crashed leader does not hide the complete one in another feed',
  {},
  ({ Stage }) => {
    // 1. A leads the parent group and forwards m to C, the leader of the child. Both ends of the record land, but not
    //    the words between them. A crashes.
    // 2. B leads the parent group and writes m into its own feed at C.
    //    Harm: C looks into A's feed first, finds a framed record, copies it, finds it torn, and looks there again.
    const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1 payload=32', {
      timing: { suspectAfterUs: 2000 },
    });
    const { world } = stage;
    const [A] = stage.group(0);
    const [C] = stage.group(1);
    const { layout } = world;
    expect([A, C].map(({ replica }) => replica.role)).toEqual(['leader', 'leader']);

    stage.hold(A, C);
    stage.send(0, [0, 1], 'm'.repeat(32));
    stage.until(() => A.replica.member.deliveries === 1);
    const feed = layout.feedRing(A.member);
    const start = layout.feedStart(A.member);
    const end = layout.feedEnd(A.member);
    const { operations } = stage.linkOf(A, C);
    const writes = operations.filter(
      ({ isRead, at }) => !isRead && [start, end, feed].includes(at),
    );
    expect(writes.map(({ at }) => at)).toEqual([start, end, start, feed, end]);
    for (const { at, data, dataAt, count } of writes.slice(0, 4)) {
      for (let i = 0; i < count; i++) {
        if (at === feed && i >= HEAD_WORDS && i < HEAD_WORDS + FRAME_WORDS) continue;
        C.memory.own[at + i] = data[dataAt + i];
      }
    }
    stage.crashUnheard(A);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(1);
  },
);

attack(
  'a torn write of the start of a feed is repeated',
  { 'feed-loss-ignored': STUCK },
  ({ Stage }) => {
    // 1. P leads the parent of the group of L, M and N, with feeds that hold few messages. L pauses.
    // 2. The child has decided all entries of the feed. To make room for a large message, P drops them and writes the new
    //    start of the feed to M. Half of this has landed when the connection breaks.
    // 3. L crashes; M leads.
    //    Harm: M does not know the start of the feed, P does not know that, and M never gets a message.
    const stage = new Stage('tree=-1,0 replicas=3 clients=1 rings=1024', {
      sizes: { feedBytes: 0, payloadBytesMax: 200 },
      timing: { suspectAfterUs: 20_000 },
    });
    const { world } = stage;
    const [P] = stage.group(0);
    const [L, M, N] = stage.group(1);
    const sendBoth = (text: string) => stage.send(0, [0, 1], text);
    sendBoth('a');
    sendBoth('b');
    stage.runFor(1000);
    stage.hold(L, M, N);
    world.pause(L);
    sendBoth('c');
    sendBoth('d');
    stage.runFor(500);

    sendBoth('y'.repeat(200));
    const link = stage.linkOf(P, M);
    const oldest = () =>
      link.operations.find(({ isRead, at }) => !isRead && at === world.layout.feedStart(P.member));
    stage.until(() => oldest() !== undefined);
    const { at, data, dataAt, count } = oldest()!;
    M.memory.own.set(data.subarray(dataAt, dataAt + (count >> 1)), at);
    world.fabric.breakLink(P.participant, M.participant);

    world.crash(L);
    stage.campaign(M);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(5);
  },
);

attack(
  'a feed that starts under a new ballot tells its start to members that had the last one',
  { 'feed-start-untold': STUCK },
  ({ Stage }) => {
    // 1. A forwards m. C, the leader of the child, takes it, and can't replicate it yet.
    // 2. A leads again. Its feed starts again with m, under the new ballot.
    //    Harm: C still expects entries of the old ballot behind m.
    const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1');
    const [A] = stage.group(0);
    const [C, ...others] = stage.group(1);
    stage.hold(C, ...others);
    stage.send(0, [0, 1], 'm');
    stage.until(() => C.replica.replication.endIndex === 1);
    const { ballot } = A.replica.replication;
    stage.campaign(A);
    stage.until(() => A.replica.role === 'leader' && A.replica.replication.ballot !== ballot);
    stage.runFor(500);
    stage.release(C, ...others);
    stage.send(0, [0, 1], 'n');
    stage.settle();
    expect(stage.world.ledger.orders[1]).toHaveLength(2);
  },
);

attack(
  'clients that send at full speed do not starve the parent',
  { 'parent-starves': STUCK },
  ({ Stage }) => {
    // 1. Five clients fill the child group's small log as fast as they can: it is full in every step.
    // 2. A message to both groups comes down from the parent.
    //    Harm: the source that finds the log full is the first one in the next round. That is always a client.
    const clients = 6;
    const stage = new Stage(`tree=-1,0 clients=${clients} rings=0`);
    const { world } = stage;
    stage.runFor(2000);
    const floods = Array.from({ length: clients - 1 }, (_, i) =>
      stage.flood(i + 1, [1], 'x'.repeat(32)),
    );
    stage.runFor(3000);

    const before = world.ledger.decidedCount(1);
    stage.send(0, [0, 1], 'both');
    stage.until(() => world.clients[0].client.outstanding === 0, 200_000);
    const { clientEntries, parentEntries } = world.plan.pace;
    const meanwhile = world.ledger.decidedCount(1) - before;
    expect(meanwhile).toBeLessThan(4 * (clients * clientEntries + parentEntries));

    for (const stop of floods) stop();
    stage.settle();
  },
);

attack(
  'a leader that looks at clients first takes what the parent has sent in the same round',
  { 'parent-misses-its-round': /expected \d to be \d/ },
  ({ Stage }) => {
    // 1. In the last round of C, the log was full and a client found no room: clients come first in the next one.
    // 2. There is room again, a message of the parent is in the feed, and C has been woken for it. No client has sent anything.
    //    Harm: C does not take it, and nothing wakes C again before its next heartbeat.
    const { stage, world, C } = parentAndChild(Stage);
    world.pause(C);
    stage.send(0, [0, 1], 'm'.repeat(32));
    stage.runFor(300);
    const { leader, replication } = C.replica;
    const taken = replication.endIndex;
    Object.assign(leader, { clientsFirst: true });
    C.replica.doWork(world.nowUs);
    expect(replication.endIndex).toBe(taken + 1);
    world.resume(C);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(2);
  },
);
