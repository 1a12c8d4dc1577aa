/** Takeovers while members restart, connections break and answers arrive late. */

import { noExtent } from 'tram-multicast/internal/protocol/data-path/log.js';
import { LOG_CONTROL } from 'tram-multicast/internal/protocol/layout.js';
import { KIND } from 'tram-multicast/internal/protocol/tags.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Link } from '../../src/sim/links.js';
import { follows, type Stage } from '../../src/sim/stage.js';
import { attack, DIVERGED, STUCK } from './attack.js';

/** The number of installations that the tag of a completion distinguishes. */
const INSTALLATIONS = 64;
const FIRST_INSTALLATION = 1;

/** On a link that is held back, this answer, its notification, and all operations before them arrive now. */
function letArrive(stage: Stage, link: Link, answer: Link['operations'][number]): void {
  const { fabric, nowUs } = stage.world;
  const memberNotification = link.operations.indexOf(answer) + 1;
  expect(link.operations[memberNotification]).toMatchObject({ isRead: false, count: 1 });
  for (const operation of link.operations.slice(0, memberNotification + 1))
    operation.arrivesUs = nowUs;
  link.lastArrivalUs = nowUs;
  fabric.reschedule(link);
}

/** The next time that `from` installs its log at `to`, its step stalls before the marker. */
function stallBeforeMarker(stage: Stage, from: ReplicaHost, to: ReplicaHost): void {
  const { layout } = stage.world;
  const { memory } = from;
  const markers = [0, 1].map((ring) => layout.logControl(from.member, ring) + LOG_CONTROL.marker);
  const write = memory.write.bind(memory);
  memory.write = (peer, at, source, start, count, guard, tag) => {
    // A marker of 0 only says that there is no log yet.
    if (peer === to.participant && count === 1 && markers.includes(at) && source[start] !== 0) {
      memory.write = write;
      memory.stallAfter(0);
    }
    write(peer, at, source, start, count, guard, tag);
  };
}

attack(
  'a member is installed for each of its incarnations, never twice in one',
  {},
  ({ Stage }) => {
    // 1. Y leads with C; B is paused, continues and grants. The grant reaches Y, which is paused.
    // 2. B restarts, learns of Y's ballot and promises it, but its own grant is held back.
    // 3. Y continues and installs its log at B by the grant of B's first incarnation.
    //    Harm, first half: B takes that for its log, is a member again, and decides m with Y.
    // 4. The grant of B's second incarnation arrives. Y installs the log again: it resets the ring, and pauses before it
    //    has written the entries.
    // 5. C, which has never heard of m, leads with the grant of B and orders x.
    //    Harm: x is decided where m was delivered.
    const stage = new Stage('replicas=3 clients=2 rings=4096');
    const { world } = stage;
    const [Y, C, B] = stage.group(0);
    stage.send(0, [0], 'a');
    stage.runFor(500);
    stage.campaign(Y); // So that B's current log is in Y's second ring, and the spare one is known.
    stage.runFor(500);

    world.pause(B);
    stage.lead(Y);
    world.pause(Y);
    world.resume(B);
    stage.until(() => follows(B, Y));
    stage.runFor(30);

    world.crash(B);
    stage.runFor(20);
    stage.restart(B);
    stage.until(() => follows(B, Y));
    stage.hold(B, Y);
    stage.hold(Y, C);

    world.resume(Y);
    stage.hopeFor(() => B.replica.member.normal);
    stage.hold(world.clients[1], C);
    stage.send(1, [0], 'm');
    stage.hopeFor(() => Y.replica.member.deliveries === 2);
    stage.runFor(100);

    stage.stallAfterWrites(Y, B, 1);
    stage.releaseOneByOne(B, Y, 60); // The first one says that B's log is empty.
    stage.until(() => Y.memory.isStalled);
    world.pause(Y);
    stage.runFor(20);

    stage.send(0, [0], 'x');
    stage.runFor(6000);
    stage.settle();
  },
);

attack(
  'a member that has all entries does not count before the marker makes them its log',
  { 'counts-before-marker': DIVERGED },
  ({ Stage }) => {
    // 1. Y leads with C, and orders m, of which C hears nothing.
    // 2. B grants late. Y installs its log at B: the entries land and complete, the marker is under way.
    //    Harm, first half: all entries of Y are at B, so Y counts B and delivers m.
    // 3. The marker is lost, and Y dies. B's log is the one before, without m.
    // 4. C leads with the grant of B and orders x. Harm: x is decided where m was delivered.
    const stage = new Stage('replicas=3 clients=2 rings=4096', {
      timing: { suspectAfterUs: 20_000 },
    });
    const { world } = stage;
    const [Y, C, B] = stage.group(0);
    stage.send(0, [0], 'a');
    stage.runFor(500);

    world.pause(B);
    stage.lead(Y);
    const { replication } = Y.replica;
    stage.hold(Y, C);
    stage.hold(world.clients[1], C, B);
    stage.send(1, [0], 'm');
    stage.until(() => replication.endIndex === 2);
    stage.hold(Y, B);
    world.resume(B);
    stage.until(() => replication.incarnationOf(B.member) !== 0);
    const { operations } = stage.linkOf(Y, B);
    const writes = () => operations.filter(({ isRead }) => !isRead);
    const marker = writes().findLast(({ data, dataAt }) => data[dataAt] === replication.ballot)!;
    stage.releaseOneByOne(Y, B, 1000);
    stage.until(() => writes()[0] === marker);
    stage.hopeFor(() => Y.replica.member.deliveries === 2, 500);
    expect(writes()[0]).toBe(marker);

    stage.crashUnheard(Y);
    stage.lead(C);
    stage.send(0, [0], 'x');
    stage.runFor(3000);
    stage.settle();
  },
);

attack('a marker for one incarnation is not valid in the next', {}, ({ Stage }) => {
  // 1. Y leads with C. B grants late; Y resets a ring at B, writes the entries, and pauses
  //    before it posts the marker.
  // 2. B restarts with empty memory, learns of Y's ballot and promises it; its grant is held back.
  // 3. Y continues and posts the marker.
  //    Harm, first half: B has an empty log under Y's ballot and takes it for the complete log.
  // 4. Y and B decide m; C hears nothing of it. Y pauses.
  // 5. C leads with the grant of B and orders x. Harm: x is decided where m was delivered.
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
  stallBeforeMarker(stage, Y, B);
  stage.until(() => Y.memory.isStalled);
  world.pause(Y);
  stage.runFor(20);

  world.crash(B);
  stage.restart(B);
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
});

for (const incarnations of [1, 8, 16]) {
  attack(
    `a marker that was meant for one incarnation does not stand ${incarnations} incarnations later`,
    {},
    ({ Stage }) => {
      // 1. Y leads with C. B grants late; Y resets a ring at B, writes the entries, and pauses
      //    before it posts the marker.
      // 2. B crashes and restarts so often that the lowest bits of its incarnation are as before. It promises Y's
      //    ballot; its grant is held back.
      // 3. Y continues and posts the marker.
      //    Harm, first half: B has an empty log under Y's ballot and takes it for the complete log.
      // 4. Y and B decide m; C hears nothing of it. Y pauses.
      // 5. C leads with the grant of B and orders x. Harm: x is decided where m was delivered.
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
      stallBeforeMarker(stage, Y, B);
      stage.until(() => Y.memory.isStalled);
      world.pause(Y);
      stage.runFor(20);

      for (let i = 0; i < incarnations; i++) {
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
}

for (const [incarnation, catches] of [
  [1000, { 'marker-of-any-incarnation': DIVERGED }],
  [16_384, { 'unkeyed-marker': DIVERGED }],
] as const) {
  attack(
    `a marker without a log is none in the incarnation of number ${incarnation}`,
    catches,
    ({ Stage }) => {
      // 1. Y leads. It decides m with B; C hears nothing of that.
      // 2. B restarts and grants; Y resets a ring at B, writes the entries, and pauses before it posts the marker.
      // 3. B restarts again: all memory is zero. Its first key is so late that OPEN, as a number, would come after it.
      // 4. Y continues and posts the marker. The write is refused, but lands.
      //    Harm, first half: B takes the empty ring for a log of this incarnation, and is a member.
      // 5. Y pauses. C leads with the grant of B and orders x. Harm: x is decided where m was delivered.
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
      B.incarnation = incarnation - 1;
      stage.restart(B);
      stage.until(() => follows(B, Y));
      stage.hold(B, Y);
      stage.withRefusedWrites('landing', () => {
        world.resume(Y);
        stage.hopeFor(() => B.replica.member.normal);
      });
      world.pause(Y);
      stage.send(0, [0], 'x');
      stage.runFor(6000);
      stage.settle();
      expect(world.ledger.orders[0]).toHaveLength(3);
    },
  );
}

for (const [how, mutation] of [
  ['several promises', 'few-keys'],
  ['a restart with empty memory', 'same-keys'],
] as const) {
  attack(
    `a deposed leader that sleeps through ${how} of a member has no permission there`,
    { [mutation]: DIVERGED },
    ({ Stage }) => {
      // 1. A leads, and pauses. It hears nothing more of B and C.
      // 2. C leads. Either B leads then, too: it has promised twice since it granted its log to A. Or B restarts, and
      //    recovers as a member of C's.
      // 3. B and C decide y, of which A hears nothing.
      // 4. A continues, and orders x, of which B and C hear nothing but A's writes.
      //    Harm: the key that B gave to A is permitted again, so x is decided where y was.
      const stage = new Stage('replicas=3 clients=2 rings=4096');
      const { world } = stage;
      const [A, B, C] = stage.group(0);
      world.pause(A);
      for (const other of [B, C]) stage.hold(other, A);
      stage.lead(C);
      if (mutation === 'few-keys') {
        stage.lead(B);
      } else {
        stage.until(() => follows(B, C));
        world.crash(B);
        stage.runFor(20);
        stage.release(B, A); // It reads A's row.
        stage.restart(B);
        stage.until(() => B.replica.member.normal);
      }
      stage.hold(world.clients[1], A);
      stage.send(1, [0], 'y');
      stage.until(() => B.replica.member.deliveries === 1);

      for (const other of [B, C]) stage.hold(world.clients[0], other);
      stage.send(0, [0], 'x');
      stage.runFor(30);
      world.resume(A);
      stage.hopeFor(() => A.replica.member.deliveries > 0);
      stage.settle();
      expect(world.ledger.orders[0]).toHaveLength(2);
    },
  );
}

attack(
  'a member that refused is not installed again by an older answer of the same incarnation',
  { 'installs-twice': DIVERGED },
  ({ Stage }) => {
    // 1. Y leads. X has answered its request twice, and both answers are in flight.
    // 2. The first one arrives. Y installs its log at X, and the two of them decide m without Z.
    // 3. Z campaigns, and X promises its ballot: Y's writes to X are refused, though their bytes may land.
    // 4. The second answer arrives.
    //    Harm, first half: Y has forgotten the first answer, resets the ring that is X's log by now, and gets no further.
    // 5. X's grant says that its log ends after m, which is no longer true. Z leads and orders x.
    //    Harm: x is decided where m was delivered.
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
    const answers = stage.linkOf(X, Y);
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
    stage.campaign(Z);
    stage.withRefusedWrites('stopped', () => {
      stage.release(Y, Z);
      stage.until(() => Y.replica.rows.peer(Z.member).promised === Z.replica.member.promised);
    });
    stage.withRefusedWrites('landing', () => {
      const { key } = X.replica.member;
      stage.release(Z, X);
      stage.until(() => follows(X, Z));
      stage.send(0, [0], 'y'); // Makes Y write to X.
      stage.until(() => Y.replica.replication.incarnationOf(X.member) === 0);
      letArrive(stage, answers, second);
      stage.hopeFor(() => ring.marker === 0, 1000);
      stage.linkOf(Y, X).stoppedGuard = key; // The rest does not land.
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
  },
);

/**
 * 1. A leader installs its log at the same member 64 times, each time with another key.
 * 2. Only now do completions of the first installation arrive. Their tags are equal modulo 64.
 *    Harm: they count for the latest installation, whose log the member does not hold.
 */
attack(
  'completions of a much earlier installation do not count',
  { 'old-completions-count': /expected 2 to be 1/ },
  ({ Stage }) => {
    const stage = new Stage('replicas=3 clients=2 rings=4096');
    const leader = stage.leaderOf(0);
    const other = stage.group(0).find((host) => host !== leader)!.member;
    const replication = leader.replica.replication;
    const { key } = stage.world.members(0)[other].replica.member;
    for (let i = 0; i < INSTALLATIONS; i++) {
      replication.abandon();
      replication.install(other, 1, 100 + i, noExtent(0));
    }
    const written = (key: number) =>
      replication.onWritten(other, KIND.marker, FIRST_INSTALLATION, key, true);
    const before = replication.countInstalled();
    written(key);
    expect(replication.countInstalled()).toBe(before);
    written(100 + INSTALLATIONS - 1);
    expect(replication.countInstalled()).toBe(before + 1);
  },
);

attack(
  'a candidate gives up a log whose owner restarted while it was read',
  { 'waits-for-dead-source': STUCK },
  ({ Stage }) => {
    // 1. A leads. Its writes to Y are held back, so that only A and B have m. A pauses.
    // 2. Y campaigns, gets B's grant, finds that B's log reaches further and posts reads of it.
    // 3. B crashes and restarts at once. Y does not learn of it: its reads never complete, and B's heartbeats continue.
    //    Harm: Y waits indefinitely. It is alive and has the highest ballot, so all others wait for it.
    const stage = new Stage('replicas=3 clients=1 rings=4096');
    const { world } = stage;
    const [A, Y, B] = stage.group(0);
    const takeover = Y.replica.takeover;
    stage.hold(A, Y);
    stage.send(0, [0], 'm');
    stage.until(() => A.replica.member.deliveries === 1);
    stage.runFor(50);

    world.pause(A);
    stage.campaign(Y);
    // It reads the log of B, the only granter.
    stage.until(() => takeover.phase === 'adopt');

    stage.crashUnheard(B);
    stage.restart(B);
    stage.settle();
  },
);

attack(
  'a candidate does not wait for a crashed member and one whose connection has broken',
  { 'unreachable-ballot-kept': STUCK },
  ({ Stage }) => {
    // 1. A crashes. Y campaigns, and gets the grants of B, C and D at once: it installs its log at all three.
    // 2. C crashes, and Y never learns of it. The connection to B breaks.
    // 3. Y needs one member besides D.
    //    Harm: Y waits for C, which is dead. It never writes to B again, because it has installed its log at this
    //    incarnation of B under this ballot. B follows Y and waits for it.
    const stage = new Stage('replicas=5 clients=1 rings=4096');
    const { world } = stage;
    const [A, Y, B, C, D] = stage.group(0);
    stage.send(0, [0], 'a');
    stage.runFor(500);

    world.crash(A);
    for (const host of [B, C, D]) stage.hold(host, Y);
    stage.campaign(Y);
    stage.runFor(60);
    for (const host of [B, C, D]) stage.release(host, Y);
    stage.until(() => Y.replica.takeover.phase === 'install');
    expect(Y.replica.replication.countPresent()).toBe(4);

    stage.crashUnheard(C);
    world.fabric.breakLink(Y.participant, B.participant);
    stage.send(0, [0], 'x');
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(2);
  },
);

attack(
  'a candidate sends its request again when the incarnation that granted has ended',
  { 'never-asks-next-incarnation': STUCK },
  ({ Stage }) => {
    // 1. A leads. Y campaigns, and at first its request reaches only B, which grants.
    // 2. B crashes, restarts, and is a member again under A: it knows nothing of Y.
    // 3. The request reaches the others, and they grant; Y leads. Its writes to B are lost with the connection.
    //    Harm: B is alive and follows no leader. Y has B's grant, so it does not send its request again. No entry is
    //    dropped before B has it, so the log fills up and the group stops.
    const stage = new Stage('replicas=5 clients=1 rings=1024', {
      timing: { suspectAfterUs: 3000 },
    });
    const { world } = stage;
    const [A, Y, B, C, D] = stage.group(0);
    stage.send(0, [0], 'a');
    stage.runFor(500);

    stage.hold(Y, A, C, D);
    stage.campaign(Y);
    stage.until(() => follows(B, Y));
    stage.runFor(30); // Y has read the grant.
    world.crash(B);
    stage.runFor(10);
    stage.hold(Y, B);
    stage.restart(B);
    stage.until(() => B.replica.member.normal);
    expect(follows(B, A)).toBe(true);

    stage.hold(A, B); // Otherwise A would campaign again because of B.
    stage.release(Y, A, C, D);
    stage.until(() => Y.replica.takeover.phase === 'install' || Y.replica.role === 'leader');
    stage.runFor(10);
    world.fabric.breakLink(Y.participant, B.participant);
    stage.release(Y, B);
    stage.release(A, B);
    stage.runFor(3000);
    for (let i = 0; i < 40; i++) {
      stage.until(() => stage.send(0, [0], `x${i}`) !== undefined);
      stage.runFor(100);
    }
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(41);
  },
);

attack(
  'a ballot that a member promised to an earlier incarnation is outbid',
  { 'taken-ballot-kept': STUCK },
  ({ Stage }) => {
    // 1. S leads. A campaigns; its request reaches only R, which promises A's ballot.
    // 2. A crashes and loses its memory. It restarts, joins S, and campaigns again: with the same ballot, because no
    //    member that it can hear has seen it. S, T and U grant; A leads. R is cut off meanwhile.
    // 3. A's request reaches R, but R has promised this ballot to another incarnation and refuses it.
    //    Harm: R is alive and follows no leader. The leader drops no entries that R lacks, until the log is full.
    const stage = new Stage('replicas=5 clients=1 rings=1024', { timing: { backOffUs: 400 } });
    const { world } = stage;
    const [A, S, R, T, U] = stage.group(0);
    stage.lead(S);
    stage.runFor(500);

    stage.hold(A, S, T, U);
    stage.hold(S, R);
    stage.campaign(A);
    stage.until(() => follows(R, A));
    const ballot = A.replica.member.promised;

    world.crash(A);
    stage.runFor(10);
    stage.restart(A);
    stage.release(A, S, T, U);
    stage.hold(A, R);
    stage.hold(T, R);
    stage.hold(U, R);
    stage.until(() => A.replica.member.normal);
    stage.lead(A);
    expect(A.replica.member.promised).toBe(ballot);

    for (const member of [A, S, T, U]) stage.release(member, R);
    stage.runFor(3000);
    for (let i = 0; i < 60; i++) {
      stage.until(() => stage.send(0, [0], `x${i}`) !== undefined);
      stage.runFor(100);
    }
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(60);
  },
);
