/**
 * More interleavings that once broke the protocol, told as in `attacks.test.ts`: here members restart,
 * connections break and answers come late, several of these at a time.
 */

import { word } from 'tram-multicast/internal/memory/record.js';
import { isLeftBehind } from 'tram-multicast/internal/protocol/data-path/delivery.js';
import { noExtent } from 'tram-multicast/internal/protocol/data-path/log.js';
import { LOG_CONTROL } from 'tram-multicast/internal/protocol/layout.js';
import { KIND } from 'tram-multicast/internal/protocol/tags.js';
import { expect, test } from 'vitest';
import type { Host, ReplicaHost } from '../../src/sim/world.js';
import { follows, Stage } from '../sim/stage.js';

/** Where a record's number stands, and how many admissions a completion's tag can tell apart. */
const NUMBER = 2;
const INSTALLATIONS = 64;

type Link = ReturnType<Stage['world']['fabric']['link']>;
type Operation = Link['operations'][number];

const linkOf = (stage: Stage, from: Host, to: Host): Link =>
  stage.world.fabric['link'](from.process, to.process);

/** Group 0's leader, as soon as there is one. */
function leaderOf(stage: Stage): ReplicaHost {
  stage.until(() => stage.world.leaderOf(0) !== undefined);
  return stage.world.leaderOf(0)!;
}

const takeoverOf = (host: ReplicaHost) => host.replica['takeover'];

/** Of what is held back on a link, this answer, the mail that tells of it, and all before it arrive now. */
function letArrive(stage: Stage, link: Link, answer: Operation): void {
  const { fabric, nowUs } = stage.world;
  const mail = link.operations.indexOf(answer) + 1;
  expect(link.operations[mail]).toMatchObject({ isRead: false, count: 1 });
  for (const operation of link.operations.slice(0, mail + 1)) operation.arrivesUs = nowUs;
  link.lastArrivalUs = nowUs;
  fabric['agenda'].update(link);
}

/** While this runs, refused writes leave their bytes behind, or none of them does. */
function withRefusedWrites(stage: Stage, fate: 'landing' | 'stopped', run: () => void): void {
  const { random } = stage.world;
  const { below } = random;
  random.below = (bound) => (bound === 2 && fate === 'landing' ? 1 : 0);
  run();
  random.below = below;
}

/** The next time that `from` brings up `to`, its step stops before the marker. */
function stallBeforeMarker(stage: Stage, from: ReplicaHost, to: ReplicaHost): void {
  const { layout } = stage.world;
  const { memory } = from;
  const markers = [0, 1].map((ring) => layout.logControl(from.member, ring) + LOG_CONTROL.marker);
  const write = memory.write.bind(memory);
  memory.write = (peer, at, source, start, count, guard, tag) => {
    if (peer === to.process && count === 1 && markers.includes(at)) {
      memory.write = write;
      memory.stallAfter(0);
    }
    write(peer, at, source, start, count, guard, tag);
  };
}

test('a member that refused is not installed again by an older answer of the same life', () => {
  // 1. Y leads. X has answered its request twice, and both answers are under way.
  // 2. The first one arrives. Y installs its log at X, and the two of them decide m; Z has no part in it.
  // 3. Z stands, and X promises it: what Y writes to X is refused, though its bytes may land.
  // 4. The second answer arrives.
  //    Harm, first half: as Y has forgotten the first one, it resets the ring that is X's log by now,
  //    and gets no further.
  // 5. X's grant, in which its log ended after m, is not the truth any more. Z leads and orders x.
  //    Harm: x stands where m was delivered.
  const stage = new Stage('replicas=3 clients=2 rings=4096', {
    timing: { suspectAfterUs: 20_000 },
  });
  const { world } = stage;
  const [Y, Z, X] = stage.group(0);
  stage.send(0, [0], 'a');
  stage.runFor(500);

  stage.hold(X, Y);
  stage.lead(Y);
  const ballot = Y.replica.member.promised;
  const answers = linkOf(stage, X, Y);
  const grants = () =>
    answers.operations.filter(
      ({ isRead, at }) => !isRead && at === world.layout.leadGrant(X.member),
    );
  stage.until(() => grants().length === 2);
  const [first, second] = grants();

  stage.hold(Y, Z);
  stage.hold(world.clients[1], Z);
  letArrive(stage, answers, first);
  stage.until(() => X.replica.member.log.under(ballot, Y.member) !== undefined);
  const ring = X.replica.member.log.under(ballot, Y.member)!;
  stage.send(1, [0], 'm');
  stage.until(() => Y.replica.member.deliveries === 2);

  stage.hold(Z, X, Y);
  stage.hold(X, Z);
  stage.runFor(50);
  stage.stand(Z);
  withRefusedWrites(stage, 'stopped', () => {
    stage.release(Y, Z);
    stage.until(() => Y.replica['rows'].peer(Z.member).promised === Z.replica.member.promised);
  });
  withRefusedWrites(stage, 'landing', () => {
    const { key } = X.replica.member;
    stage.release(Z, X);
    stage.until(() => follows(X, Z));
    stage.send(0, [0], 'y'); // So that Y writes to X.
    stage.until(() => Y.replica['replication'].incarnationOf(X.member) === 0);
    letArrive(stage, answers, second);
    stage.hopeFor(() => ring.marker === 0, 1000);
    linkOf(stage, Y, X).stoppedGuard = key; // The rest does not land.
  });
  world.pause(Y);
  stage.runFor(300);

  stage.hold(Y, X, Z);
  stage.release(X, Z);
  stage.until(() => Z.replica.role === 'leader');
  stage.send(0, [0], 'x');
  stage.runFor(3000);
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(4);
});

test('a restarted member counts only when it has delivered what its earlier life had', () => {
  // 1. A leads. D and E sleep from the beginning; A, B and C deliver six messages.
  // 2. B restarts with empty memory and joins A. As soon as it is a member again, it falls asleep.
  //    Harm, first half: it has delivered nothing then.
  // 3. C leads with A and D, which wakes for its grant alone. C has read of B only what the earlier life
  //    delivered, and in eight more messages it drops the first ones: A, C and "B" have them.
  // 4. A and C die for good. B, D and E have delivered nothing.
  //    Harm: what was dropped is nowhere any more, and nobody can go on.
  const stage = new Stage('replicas=5 clients=1 rings=1024', { timing: { suspectAfterUs: 600 } });
  const { world } = stage;
  const [A, B, C, D, E] = stage.group(0);
  for (const host of [D, E]) world.pause(host);
  stage.runFor(60);
  for (let i = 0; i < 6; i++) {
    stage.send(0, [0], `m${i}`);
    stage.runFor(80);
  }
  stage.until(() => C.replica['rows'].peer(B.member).delivered === 6);

  stage.hold(C, B);
  world.crash(B);
  stage.runFor(20);
  stage.restart(B);
  stage.hold(C, B);
  stage.until(() => B.replica.member.normal);
  world.pause(B);

  stage.hold(C, E);
  stage.stand(C);
  stage.runFor(10);
  world.resume(D);
  stage.until(() => follows(D, C));
  world.pause(D);
  stage.until(() => C.replica.role === 'leader');
  for (let i = 0; i < 8; i++) {
    stage.send(0, [0], `n${i}`);
    stage.runFor(150);
  }
  stage.until(() => C.replica['replication'].baseIndex > 0);

  stage.hold(A, B, D, E);
  stage.hold(C, B, D, E);
  world.crash(A);
  world.crash(C);
  stage.runFor(20);
  world.resume(D);
  stage.stand(D);
  stage.runFor(20);
  world.resume(B);
  world.resume(E);
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(14);
});

test('a candidate does not wait for one that is dead and one that it has lost touch with', () => {
  // 1. A dies. Y stands, and has the grants of B, C and D at once: it installs its log at all three.
  // 2. C dies, and Y never hears of it. The connection to B breaks.
  // 3. Y needs one more than D. Harm: it waits for C, which is dead, and never writes to B again, as it has
  //    written to this life of B under this ballot; B follows Y and waits for it.
  const stage = new Stage('replicas=5 clients=1 rings=4096');
  const { world } = stage;
  const [A, Y, B, C, D] = stage.group(0);
  stage.send(0, [0], 'a');
  stage.runFor(500);

  world.crash(A);
  for (const host of [B, C, D]) stage.hold(host, Y);
  stage.stand(Y);
  stage.runFor(60);
  for (const host of [B, C, D]) stage.release(host, Y);
  stage.until(() => takeoverOf(Y).phase === 'install');
  expect(Y.replica['replication'].countPresent()).toBe(4);

  stage.crashUnheard(C);
  world.fabric.breakLink(Y.process, B.process);
  stage.send(0, [0], 'x');
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(2);
});

test('a member is asked again when the life that granted has ended', () => {
  // 1. A leads. Y stands, and at first only B hears of it: it grants.
  // 2. B dies, comes back, and is a member again under A: it knows nothing of Y.
  // 3. The others hear of Y and grant; Y leads. What it writes to B is lost with the connection.
  //    Harm: B is alive and follows nobody. As Y has B's grant, it does not ask again, and as long as B
  //    has not got the entries, none is dropped: the log fills up, and that is the end.
  const stage = new Stage('replicas=5 clients=1 rings=1024', { timing: { suspectAfterUs: 3000 } });
  const { world } = stage;
  const [A, Y, B, C, D] = stage.group(0);
  stage.send(0, [0], 'a');
  stage.runFor(500);

  stage.hold(Y, A, C, D);
  stage.stand(Y);
  stage.until(() => takeoverOf(Y)['grants'][B.member] !== undefined);
  world.crash(B);
  stage.runFor(10);
  stage.hold(Y, B);
  stage.restart(B);
  stage.until(() => B.replica.member.normal);
  expect(follows(B, A)).toBe(true);

  stage.hold(A, B); // Or A would stand again, for B's sake.
  stage.release(Y, A, C, D);
  stage.until(() => takeoverOf(Y).phase === 'install' || Y.replica.role === 'leader');
  stage.runFor(10);
  world.fabric.breakLink(Y.process, B.process);
  stage.release(Y, B);
  stage.release(A, B);
  stage.runFor(3000);
  for (let i = 0; i < 40; i++) {
    stage.until(() => stage.send(0, [0], `x${i}`) !== undefined);
    stage.runFor(100);
  }
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(41);
});

test('a member that is a few entries, but more than 2^31 words behind notices it', () => {
  // 1. The log goes on for 60 entries, all large: its base is 9 GiB from where it began.
  // 2. B restarts with empty memory. Modulo 2^32 it is ahead of the base, and it is not behind by more
  //    entries than a log could hold.
  //    Harm: it waits for entries that never come.
  const stage = new Stage('replicas=3 clients=1 rings=1024');
  const { world } = stage;
  const [A, , B] = stage.group(0);
  for (let i = 0; i < 60; i++) {
    stage.send(0, [0], `m${i}`);
    stage.runFor(100);
  }
  expect(A.replica['replication'].baseIndex).toBeGreaterThan(0);
  world.crash(B);
  stage.runFor(50);
  stage.restart(B);
  // The entries were small; so B begins that much further back.
  B.replica.member.nextPosition = 0x70000000;
  stage.settle();
  expect(B.replica.member.nextToDeliver).toBe(60);
});

test('news of where a feed begins that has landed by half is written again', () => {
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
  const link = linkOf(stage, P, M);
  const oldest = () =>
    link.operations.find(({ isRead, at }) => !isRead && at === world.layout.feedStart(P.member));
  stage.until(() => oldest() !== undefined);
  const { at, data, dataAt, count } = oldest()!;
  M.memory.own.set(data.subarray(dataAt, dataAt + (count >> 1)), at);
  world.fabric.breakLink(P.process, M.process);

  world.crash(L);
  stage.stand(M);
  stage.settle();
  expect(world.ledger.orders[1]).toHaveLength(5);
});

test.each([1, 8, 16])(
  'a marker that was meant for one life does not stand %d lives later',
  (lives) => {
    // 1. Y leads with C. B grants late; Y resets a ring at B and writes the entries, and falls
    //    asleep before it posts the marker.
    // 2. B dies and restarts so often that the lowest bits of its life are as before. It promises Y's
    //    ballot; its grant is held back.
    // 3. Y wakes and posts the marker.
    //    Harm, first half: B has an empty log under Y's ballot and takes it for the whole.
    // 4. Y and B decide m; C hears nothing of it. Y falls asleep.
    // 5. C leads with B's help and orders x. Harm: x stands where m was delivered.
    const stage = new Stage('replicas=3 clients=2 rings=4096');
    const { world } = stage;
    const [Y, C, B] = stage.group(0);
    stage.send(0, [0], 'a');
    stage.runFor(500);

    world.pause(B);
    stage.lead(Y);
    world.pause(Y);
    world.resume(B);
    stage.until(() => follows(B, Y));
    stage.runFor(30);
    world.resume(Y);
    stage.stallAfterWrites(Y, B, 2);
    stage.until(() => Y.memory.isStalled);
    world.pause(Y);
    stage.runFor(20);

    for (let i = 0; i < lives; i++) {
      world.crash(B);
      stage.restart(B);
      stage.runFor(3);
    }
    stage.until(() => follows(B, Y));
    stage.hold(B, Y);
    stage.hold(Y, C);
    stage.hold(world.clients[1], C);

    world.resume(Y);
    stage.hopeFor(() => B.replica.member.normal);
    stage.send(1, [0], 'm');
    stage.hopeFor(() => Y.replica.member.deliveries === 2);
    world.pause(Y);

    stage.send(0, [0], 'x');
    stage.runFor(6000);
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(3);
  },
);

test.each([1000, 16_384])('a marker without a log is none in the life of number %d', (life) => {
  // 1. Y leads. It decides m with B; C hears nothing of that.
  // 2. B restarts and grants; Y resets a ring at B and writes the entries, and falls asleep before it posts
  //    the marker.
  // 3. B restarts again: all memory is zero, and so are the bits of its life that a key tells.
  // 4. Y wakes and posts the marker. It is refused, but lands.
  //    Harm, first half: B takes the ring that nobody wrote to for a log of this life, and is a member.
  // 5. Y falls asleep. C leads with B's help and orders x. Harm: x stands where m was delivered.
  const stage = new Stage('replicas=3 clients=2 rings=4096');
  const { world } = stage;
  const [Y, C, B] = stage.group(0);
  stage.send(0, [0], 'a');
  stage.runFor(500);
  stage.lead(Y);
  stage.runFor(500);
  stage.hold(Y, C);
  stage.hold(world.clients[1], C);
  stage.send(1, [0], 'm');
  stage.until(() => Y.replica.member.deliveries === 2);
  stage.runFor(30);

  world.crash(B);
  stage.runFor(20);
  stallBeforeMarker(stage, Y, B);
  stage.restart(B);
  stage.until(() => Y.memory.isStalled);
  world.pause(Y);
  stage.runFor(20);

  world.crash(B);
  B.incarnation = life - 1;
  stage.restart(B);
  stage.until(() => follows(B, Y));
  stage.hold(B, Y);
  withRefusedWrites(stage, 'landing', () => {
    world.resume(Y);
    stage.hopeFor(() => B.replica.member.normal);
  });
  world.pause(Y);
  stage.send(0, [0], 'x');
  stage.runFor(6000);
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(3);
});

/**
 * 1. M restarts under load and asks S for a snapshot: S holds the log for it.
 * 2. M crashes before it has fetched it.
 * 3. The log must not stay held until S loses patience with a dead member: the group would stand still.
 */
test('a fetcher that crashes does not stop its group', () => {
  const stage = new Stage('replicas=3 clients=2 rings=4096');
  const { world } = stage;
  const leader = leaderOf(stage);
  const [server, fetcher] = stage.group(0).filter((host) => host !== leader) as [
    ReplicaHost,
    ReplicaHost,
  ];
  stage.flood(0, [0], 'x'.repeat(30));
  stage.runFor(6000);
  const { suspectAfterUs } = world.plan.timing;
  // It is back before anybody suspects it: nobody would hold the log for one that seems dead.
  world.crash(fetcher);
  stage.runFor(suspectAfterUs / 2);
  stage.restart(fetcher);
  stage.until(() => leader.replica.member.holdAt > 0 || server.replica.member.holdAt > 0);
  world.crash(fetcher);
  for (let i = 0; i < 10; i++) {
    const before = leader.replica.member.deliveries;
    stage.runFor(5 * suspectAfterUs);
    expect(leader.replica.member.deliveries).toBeGreaterThan(before);
  }
});

/**
 * 1. A leader that thinks F dead has dropped what F needs: the base is beyond it.
 * 2. F reads the base; before it looks at the entry there, the base moves on and that entry is overwritten.
 * 3. F must still find that it was left behind.
 */
test('a base that moves while a follower looks does not hide that it was left behind', () => {
  const stage = new Stage('replicas=3 clients=2 rings=4096');
  const leader = leaderOf(stage);
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
        log.words[log.at + ((second + NUMBER) & log.mask)]! ^= 1;
        return second;
      },
    },
  });
  expect(isLeftBehind(member, racing)).toBe(true);
});

/**
 * 1. A leader brings up the same member again and again, 64 times, under one key each.
 * 2. Completions of the first time arrive only now. They carry the same admission modulo 64.
 * 3. They must not count: the member does not hold the log of this time.
 */
test('completions of a much earlier admission do not count', () => {
  const stage = new Stage('replicas=3 clients=2 rings=4096');
  const leader = leaderOf(stage);
  const other = stage.group(0).find((host) => host !== leader)!.member;
  const replication = leader.replica['replication'];
  const copy = replication['copies'][other]!;
  const { installation, guard: key } = copy;
  for (let i = 0; i < INSTALLATIONS; i++) {
    replication.abandon();
    replication.install(other, 1, 100 + i, noExtent(0));
  }
  expect(copy.installation % INSTALLATIONS).toBe(installation % INSTALLATIONS);
  replication.onWritten(other, KIND.marker, installation % INSTALLATIONS, key, true);
  expect(copy.phase).toBe('installing');
});
