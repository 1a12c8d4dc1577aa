/** What a parent forwards, read while it lands, is lost, is written again, or begins anew. */

import { FRAME_WORDS, HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import { expect } from 'vitest';
import type { Stage } from '../../src/sim/stage.js';
import type { ReplicaHost } from '../../src/sim/world.js';
import { attack, STUCK } from './attack.js';
import { parentAndChild } from './parent-and-child.js';

const TORN_WORDS = { from: HEAD_WORDS + 7, to: HEAD_WORDS + 10 };

/** A writes one more into its feed at C; both ends of it land, and not what is between them. */
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
  'the end of a feed that begins anew does not make half a message of the old one count',
  { 'feed-old-start-stays': /with another payload/ },
  ({ Stage }) => {
    // 1. A forwards m. Half of it lands at C, then the connection breaks.
    // 2. A leads again, in the same incarnation, before it has written m again. Its feed begins anew, behind m.
    // 3. It tells C so, word by word.
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
    `nor if its writer has a new incarnation, after 2³¹ words, and stops after ${posts} posts`,
    {},
    ({ Stage }) => {
      // As before, but A is killed in the middle of m and resumes: its feed starts again from the origin.
      // After so many words the origin seems to lie ahead of where C is.
      const far = (0x80000000 + 1024) | 0;
      const { stage, world, A, C } = parentAndChild(Stage, (leader) => {
        const [feed] = leader.replica.leader.feeds;
        Object.assign(feed, { endPosition: far, sentPosition: far, oldestPosition: far });
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
  'what is copied from a feed counts only if the feed still begins before it',
  { 'feed-copy-unchecked': /expected 2 to be 1/, 'same-salt': /expected \d to be \d/ },
  ({ Stage }) => {
    // 1. A forwards m; it lies in C's memory, whole.
    // 2. C copies it. Before C is done, the news lands that the feed begins elsewhere: what was copied may be
    //    half of something else. (In the simulator nothing lands within a step, so the script puts it there.)
    //    Harm: C makes an entry of it. Or it does not, but the copy, an entry of the parent's under the same ballot
    //    and with the same index as C's next, stands behind the end of C's log, and whoever reads that takes it for one.
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
    let fences = 0;
    C.memory.readFence = () => {
      fences++;
      // The one before the end is read comes first.
      if (fences >= 2) own[number] = before + 1;
    };
    world.resume(C);
    stage.until(() => fences >= 2);
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
  'half a message in the feed of one who died does not hide the whole one in another',
  {},
  ({ Stage }) => {
    // 1. A leads the parent group and forwards m. Of what it writes to C, the child's leader, both ends
    //    of the record land, and not what is between them. A dies.
    // 2. B leads the parent group and writes m into its own feed at C.
    //    Harm: C looks at A's feed first, finds it framed, copies it, finds it torn, and looks there again.
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
  'news of where a feed begins that has landed by half is written again',
  { 'feed-loss-ignored': STUCK },
  ({ Stage }) => {
    // 1. P leads the parent of the group of L, M and N, with feeds that hold few messages. L falls asleep.
    // 2. The child has decided what the feed held. To make room for a large message, P drops that, and
    //    tells M where the feed begins now. Half of this has landed when the connection breaks.
    // 3. L dies; M leads.
    //    Harm: M does not know where the feed begins, P does not know that, and nothing ever comes.
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
  'clients with much to say do not starve the parent',
  { 'parent-starves': STUCK },
  ({ Stage }) => {
    // 1. Five clients fill the child group's small log as fast as they can: it is full in every step.
    // 2. A message to both groups comes down from the parent.
    //    Harm: whoever met the full log goes first the next time. That is always a client.
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
