/** Members that have delivered less than others assume, and log entries that are dropped before they have them. */

import { HEAD_WORDS, word } from 'tram-multicast/internal/memory/record.js';
import { EMPTY } from 'tram-multicast/internal/protocol/data-path/backlog.js';
import type { Transition } from 'tram-multicast/internal/protocol/edges.js';
import { SNAPSHOT_REQUEST } from 'tram-multicast/internal/protocol/layout.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import { follows, type Overrides, type Stage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';

/** The offset of the number in a record. */
const NUMBER = 2;

attack(
  'deliveries of an earlier incarnation do not count for dropping entries',
  { 'old-incarnation-delivered': STUCK },
  ({ Stage }) => {
    // 1. A leads. C is paused from the start; A and B deliver seven messages. A pauses.
    // 2. Three more messages fill the log beyond the level at which A drops entries.
    // 3. B restarts with empty memory and joins A, which has not read its new row yet.
    // 4. A continues and, in one step, installs its log at B and drops entries that "f+1 have delivered", namely A and B's
    //    earlier incarnation.
    // 5. A crashes for good. B and C have delivered nothing.
    //    Harm: no member has the dropped messages, and the group cannot continue.
    const stage = new Stage('replicas=3 clients=1 rings=1024', { timing: { backOffUs: 400 } });
    const { world } = stage;
    const [A, C, B] = stage.group(0);
    world.pause(C);
    for (let i = 0; i < 7; i++) stage.send(0, [0], `m${i}`);
    stage.runFor(1500);
    expect(B.replica.member.deliveries).toBe(7);

    world.pause(A);
    for (let i = 0; i < 3; i++) stage.send(0, [0], `n${i}`);
    stage.runFor(20);
    world.crash(B);
    stage.runFor(10);
    stage.restart(B);
    stage.until(() => follows(B, A));
    stage.runFor(20);

    world.pause(B);
    world.resume(A);
    stage.until(() => A.replica.replication.incarnationOf(B.member) === B.incarnation);
    world.pause(A);
    stage.runFor(30); // All writes of that step land.

    world.crash(A);
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(10);
  },
);

attack(
  'a restarted member counts only when it has delivered what its earlier incarnation had',
  { 'recovers-too-early': STUCK },
  ({ Stage }) => {
    // 1. A leads. D and E are paused from the start and get nothing of A; A, B and C deliver six messages.
    // 2. B restarts with empty memory and joins A. As soon as it is a member again, it pauses.
    //    Harm, first half: it has delivered nothing then.
    // 3. C leads with A and D, which continues only for its grant. C has read the row of B's earlier incarnation only.
    //    During eight more messages it drops the first ones: A, C and "B" have delivered them.
    // 4. A and C crash for good. B, D and E have delivered nothing. B campaigns at once, and adopts the log that C left at D.
    //    Harm: no member has the dropped messages, and the group cannot continue.
    const stage = new Stage('replicas=5 clients=1 rings=1024', { timing: { suspectAfterUs: 600 } });
    const { world } = stage;
    const [A, B, C, D, E] = stage.group(0);
    for (const host of [D, E]) world.pause(host);
    stage.hold(A, D, E);
    stage.runFor(60);
    for (let i = 0; i < 6; i++) {
      stage.send(0, [0], `m${i}`);
      stage.runFor(80);
    }
    stage.until(() => C.replica.rows.peer(B.member).delivered === 6);

    stage.hold(C, B);
    world.crash(B);
    stage.runFor(20);
    stage.restart(B);
    stage.hold(C, B);
    stage.until(() => B.replica.member.normal);
    world.pause(B);

    stage.hold(C, E);
    stage.campaign(C);
    stage.runFor(10);
    world.resume(D);
    stage.until(() => follows(D, C));
    world.pause(D);
    stage.until(() => C.replica.role === 'leader');
    for (let i = 0; i < 8; i++) {
      stage.send(0, [0], `n${i}`);
      stage.runFor(150);
    }
    stage.until(() => C.replica.replication.baseIndex > 0);

    stage.hold(A, B, D, E);
    stage.hold(C, B, D, E);
    world.crash(A);
    world.crash(C);
    stage.runFor(20);
    world.resume(B);
    // Once more, to outbid C.
    stage.campaign(B);
    stage.campaign(B);
    stage.runFor(20);
    world.resume(D);
    world.resume(E);
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(14);
  },
);

attack(
  'all chunks of a snapshot come from one incarnation of the server',
  { 'mixed-snapshot': /expected 62 to be 60/ },
  ({ Stage }) => {
    // 1. F is paused while 60 messages are delivered, so that it is left behind. It continues and requests a snapshot of S.
    // 2. The first chunk is in F's memory, unread; F pauses again.
    // 3. S restarts with empty memory, and has lost F's request.
    // 4. F continues, takes the first chunk and requests the second. Two more messages are delivered. S, a member again,
    //    answers with the second chunk of a snapshot that it takes now.
    //    Harm: F has the position of one state and the contents of another.
    const stage = new Stage('replicas=3 clients=1 rings=1024', {
      sizes: { snapshotChunkBytes: 64 },
      timing: { backOffUs: 400, suspectAfterUs: 4000 },
      pace: { backlogBytesMax: 0 },
    });
    const { world } = stage;
    const [, S, F] = stage.group(0);
    const { layout } = world;
    const request = layout.snapshotRequest(F.member) + HEAD_WORDS + SNAPSHOT_REQUEST.chunk;
    const chunk = layout.snapshotChunk(S.member);
    world.pause(F);
    stage.runFor(5000);
    for (let i = 0; i < 60; i++) {
      stage.send(0, [0], `m${i}`);
      stage.runFor(100);
    }

    world.resume(F);
    stage.until(() => stage.linkOf(S, F).operations.some(({ at }) => at === chunk));
    world.pause(F);
    stage.runFor(5);
    expect(F.memory.own[chunk]).not.toBe(0);

    world.crash(S);
    stage.restart(S);
    world.resume(F);
    stage.until(() => S.memory.own[request] === 1);
    for (let i = 0; i < 2; i++) stage.send(0, [0], `n${i}`);
    stage.until(() => S.replica.member.normal);
    stage.until(() => F.replica.member.nextToDeliver > 0);
    expect(F.service.count).toBe(F.replica.member.deliveries);
    for (let i = 0; i < 3; i++) stage.send(0, [0], `p${i}`);
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(65);
  },
);

/** A group of three with a client that sends all the time. F follows. */
function flooded(Stage: Subject['Stage'], overrides: Overrides = {}) {
  const stage = new Stage('replicas=3 clients=2 rings=4096', overrides);
  const leader = stage.leaderOf(0);
  const [server, F] = stage.group(0).filter((host) => host !== leader) as [
    ReplicaHost,
    ReplicaHost,
  ];
  const stop = stage.flood(0, [0], 'x'.repeat(30));
  stage.runFor(6000);
  return { stage, leader, server, F, stop };
}

/** The group delivers something in each of so many periods. */
function expectProgress(stage: Stage, leader: ReplicaHost, periods: number, periodUs: number) {
  for (let i = 0; i < periods; i++) {
    const before = leader.replica.member.deliveries;
    stage.runFor(periodUs);
    expect(leader.replica.member.deliveries).toBeGreaterThan(before);
  }
}

const countOf = ({ world }: Stage, what: Transition): number =>
  world.tally.transitions.get(what) ?? 0;

attack(
  'a follower that hangs does not stop its group, and catches up from the backlog',
  { 'waits-for-lagging': /to be greater than/, 'no-backlog': /expected \+0 to be 1/ },
  ({ Stage }) => {
    // 1. F hangs, but nobody suspects it.
    //    Harm: the leader waits for F before it drops entries, its log fills up, and the group stops.
    // 2. F continues.
    //    Harm: it needs a snapshot, although it is only a few entries behind the log.
    const { stage, leader, F, stop } = flooded(Stage, { timing: { suspectAfterUs: 30_000 } });
    const { heartbeatUs } = stage.world.plan.timing;
    const snapshots = countOf(stage, 'snapshot served');
    stage.world.pause(F);
    stage.runFor(10 * heartbeatUs);
    expectProgress(stage, leader, 20, 5 * heartbeatUs);
    expect(leader.replica.suspicion.isLive(F.member)).toBe(true);
    stop();
    stage.world.resume(F);
    stage.settle();
    expect(Math.sign(countOf(stage, 'backlog fetched'))).toBe(1);
    expect(countOf(stage, 'snapshot served')).toBe(snapshots);
  },
);

attack('a hung follower does not stop a child group whose clients are idle', {}, ({ Stage }) => {
  // Group 1 gets all its messages from group 0. Its follower F hangs, but nobody suspects it. Its log is full.
  const stage = new Stage('groups=2 replicas=3 clients=2 rings=4096', {
    sizes: { callsMax: 500 },
    timing: { suspectAfterUs: 30_000 },
  });
  stage.group(0);
  const leader = stage.leaderOf(1);
  const F = stage.group(1).find((host) => host !== leader)!;
  stage.flood(0, [0, 1], 'x'.repeat(30));
  stage.runFor(6000);
  stage.world.pause(F);
  stage.runFor(1000);
  expectProgress(stage, leader, 10, 500);
});

attack(
  'a member that lags reaches the log although it reads rows rarely',
  { 'believes-old-rows': /expected false to be true/ },
  ({ Stage }) => {
    // 1. F restarts with empty memory while a client sends all the time. It fetches a snapshot and then the backlog.
    // 2. Soon it has delivered more than any row says that it has read.
    //    Harm: it does not ask for the rest before it has read rows again, and then it is as far behind as before.
    const heartbeatUs = 500;
    const { stage, F } = flooded(Stage, {
      sizes: { callsMax: 500 },
      timing: { heartbeatUs, restUs: heartbeatUs, suspectAfterUs: 6 * heartbeatUs },
    });
    stage.world.crash(F);
    stage.runFor(1000);
    stage.restart(F);
    for (let i = 0; i < 30 && !F.replica.member.normal; i++) stage.runFor(heartbeatUs);
    expect(F.replica.member.normal).toBe(true);
  },
);

attack('a follower that is too far behind for the backlog fetches a snapshot', {}, ({ Stage }) => {
  const { stage, leader, F, stop } = flooded(Stage, {
    timing: { suspectAfterUs: 30_000 },
    pace: { backlogBytesMax: 8192 },
  });
  stage.world.pause(F);
  stage.until(() => leader.replica.member.backlog.firstIndex !== EMPTY);
  stage.until(() => leader.replica.member.backlog.firstIndex === EMPTY);
  stop();
  stage.world.resume(F);
  stage.settle();
  expect(countOf(stage, 'snapshot restored')).toBe(1);
});

attack(
  'a member that fetches a snapshot catches up although the group goes on',
  { 'snapshot-not-continued': /expected false to be true/ },
  ({ Stage }) => {
    // 1. F restarts with empty memory while messages come steadily.
    // 2. It fetches a snapshot of many chunks. Meanwhile the log drops more than it can hold.
    //    Harm: the entries after the snapshot are gone when F has restored it, again and again.
    const stage = new Stage('replicas=3 clients=1 rings=4096', {
      sizes: { snapshotChunkBytes: 256, callsMax: 500 },
    });
    const [, , F] = stage.group(0);
    const sendOn = (count: number, isDone = () => false): void => {
      for (let i = 0; i < count && !isDone(); i++) {
        stage.send(0, [0], 'x'.repeat(30));
        stage.runFor(40);
      }
    };
    sendOn(100);
    stage.world.crash(F);
    sendOn(10);
    stage.restart(F);
    sendOn(2000, () => F.replica.member.normal);
    expect(F.replica.member.normal).toBe(true);
    stage.settle();
  },
);

attack(
  'a member that crashes while it fetches a snapshot does not stop its group',
  {},
  ({ Stage }) => {
    const { stage, leader, server, F } = flooded(Stage);
    const { world } = stage;
    world.crash(F);
    stage.runFor(100);
    stage.restart(F);
    stage.until(() => leader.replica.member.holdAt > 0 || server.replica.member.holdAt > 0);
    world.crash(F);
    expectProgress(stage, leader, 10, 1000);
  },
);

attack(
  'members that come back together fetch a snapshot from the one that has the state',
  { 'fetches-from-any': STUCK },
  ({ Stage }) => {
    // 1. F and G, the followers, are killed after the log has dropped its beginning. Both come back and have lost their
    //    states.
    // 2. The leader leads again, under a higher ballot, before they read its row.
    //    Harm: each asks the other for a snapshot, again and again, because the other does not lead.
    const heartbeatUs = 500;
    const stage = new Stage('replicas=3 clients=1 rings=1024', {
      timing: { heartbeatUs, restUs: heartbeatUs, suspectAfterUs: 10 * heartbeatUs },
    });
    const leader = stage.leaderOf(0);
    const [F, G] = stage.group(0).filter((host) => host !== leader) as [ReplicaHost, ReplicaHost];
    for (let i = 0; i < 30; i++) {
      stage.send(0, [0], `m${i}`);
      stage.runFor(2 * heartbeatUs);
    }
    expect(leader.replica.replication.baseIndex).toBeGreaterThan(0);
    stage.kill(F);
    stage.kill(G);
    stage.runFor(50);
    stage.resume(F);
    stage.resume(G);
    stage.settle();
  },
);

/**
 * 1. A leader that suspects F has dropped entries that F needs: the log's base is beyond them.
 * 2. F reads the base. Before F reads the entry there, the base advances and that entry is overwritten.
 *    Harm: F does not notice that it was left behind.
 */
attack(
  'a base that moves while a follower looks does not hide that it was left behind',
  { 'looks-at-base-once': /expected false to be true/ },
  ({ Stage, isLeftBehind }) => {
    const stage = new Stage('replicas=3 clients=2 rings=4096');
    const leader = stage.leaderOf(0);
    const follower = stage.group(0).find((host) => host !== leader)!;
    const { member } = follower.replica;
    for (let i = 0; i < 6; i++) stage.send(0, [0], `m${i}`);
    stage.world.pause(follower);
    stage.until(() => leader.replica.member.deliveries === 6);
    stage.runFor(200);
    const log = member.log.under(member.promised, member.promisedMember)!;
    const after = (position: number) => (position + word(log, position)) | 0;
    const second = after(after(member.nextPosition));
    const third = after(second);
    log.base = second;
    let reads = 0;
    const racing = Object.create(log, {
      base: {
        get: () => {
          if (reads++ > 0) return third;
          log.words[log.at + ((second + NUMBER) & log.mask)] ^= 1;
          return second;
        },
      },
    });
    expect(isLeftBehind(member, racing)).toBe(true);
  },
);

attack('a member that is more than 2^31 words behind notices it', {}, ({ Stage }) => {
  // 1. The group has ordered so much that the log's positions are 9 GiB from the first one.
  // 2. B restarts with empty memory, at the first position. Modulo 2^32, that seems to be ahead of the log's base.
  //    Harm: it waits for entries that never arrive, and grants a log that ends at a negative index.
  // 3. B has to lead.
  const stage = new Stage('replicas=3 clients=1 rings=1024', { sizes: { firstIndex: 0x90000000 } });
  const { world } = stage;
  const [A, , B] = stage.group(0);
  for (let i = 0; i < 60; i++) {
    stage.send(0, [0], `m${i}`);
    stage.runFor(100);
  }
  world.crash(B);
  stage.runFor(50);

  const sizes = world.layout.sizes as { firstIndex: number };
  const { firstIndex } = sizes;
  sizes.firstIndex = 0;
  stage.restart(B);
  stage.until(() => B.replica.member.normal);
  stage.until(() => B.replica.member.nextToDeliver === A.replica.member.nextToDeliver);
  expect(B.replica.member.sealLog().endIndex).toBe(firstIndex + 60);
  stage.lead(B);
  sizes.firstIndex = firstIndex;

  stage.send(0, [0], 'n');
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(61);
});

attack(
  'a member that is a few entries, but more than 2^31 words behind notices it',
  {},
  ({ Stage }) => {
    // 1. The log has had 60 entries, all large: its base is 9 GiB from the first position.
    // 2. B restarts with empty memory. Modulo 2^32 it is ahead of the base, and the number of entries that it is behind
    //    could be in one log.
    //    Harm: it waits for entries that never arrive.
    const stage = new Stage('replicas=3 clients=1 rings=1024');
    const { world } = stage;
    const [A, , B] = stage.group(0);
    for (let i = 0; i < 60; i++) {
      stage.send(0, [0], `m${i}`);
      stage.runFor(100);
    }
    expect(A.replica.replication.baseIndex).toBeGreaterThan(0);
    world.crash(B);
    stage.runFor(50);
    stage.restart(B);
    // The entries of the test are small, so B starts that much further back.
    B.replica.member.nextPosition = 0x70000000;
    stage.settle();
    expect(B.replica.member.nextToDeliver).toBe(60);
  },
);
