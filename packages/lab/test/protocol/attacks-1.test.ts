/**
 * Interleavings that once broke the protocol, step by step. Each names members by letters, drives the
 * cluster to the brink, and then gives the harm a chance to happen. The world compares every delivery
 * with what others delivered, so that harm is an error at that moment; `settle` demands that whatever
 * was sent is delivered by everybody once the trouble is over.
 */
import { expect, test } from 'vitest';
import type { Service } from '../../src/sim/service.js';
import { follows, Stage } from '../sim/stage.js';

test('a member is installed for each of its lives, never twice in one', () => {
  // 1. Y leads with C; B sleeps, wakes and grants. The grant reaches Y, which sleeps.
  // 2. B restarts, learns of Y's ballot and promises it, but its own grant is held back.
  // 3. Y wakes and installs its log at B by the grant of B's first life.
  //    Harm, first half: B takes that for its log, is a member again, and with Y decides m.
  // 4. The grant of B's second life arrives. Y installs the log again: it resets the ring,
  //    and before it has written the entries it falls asleep.
  // 5. C, which has never heard of m, leads with B's help and orders x.
  //    Harm: x stands where m was delivered.
  const stage = new Stage('replicas=3 clients=2 rings=4096');
  const { world } = stage;
  const [Y, C, B] = stage.group(0);
  stage.send(0, [0], 'a');
  stage.runFor(500);
  stage.stand(Y); // So that B's current log is in Y's second ring, and the spare one is known.
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
  stage.releaseOneByOne(B, Y, 60); // The first one says that B's log is empty, as it was.
  stage.until(() => Y.memory.isStalled);
  world.pause(Y);
  stage.runFor(20);

  stage.send(0, [0], 'x');
  stage.runFor(6000);
  stage.settle();
});

test('a marker that was meant for one life does not stand in the next', () => {
  // 1. Y leads with C. B grants late; Y resets a ring at B and writes the entries, and falls
  //    asleep before it posts the marker.
  // 2. B restarts with empty memory, learns of Y's ballot and promises it; its grant is held back.
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

test('what an earlier life delivered does not count for dropping entries', () => {
  // 1. A leads. C sleeps from the beginning; A and B deliver seven messages. A falls asleep.
  // 2. Three more messages fill the log over the mark where A would like to drop entries.
  // 3. B restarts with empty memory and joins A, which has yet to read its new row.
  // 4. A wakes and, in one step, installs its log at B and drops what "f+1 have delivered":
  //    itself and B's earlier life.
  // 5. A dies for good. B and C have delivered nothing.
  //    Harm: the messages that were dropped are nowhere any more, and nobody can go on.
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
  stage.until(() => A.replica['replication'].incarnationOf(B.member) === B.incarnation);
  world.pause(A);
  stage.runFor(30); // All of that step lands.

  world.crash(A);
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(10);
});

test('a snapshot is put together from one life of its server', () => {
  // 1. F sleeps while 60 messages pass, so that it is left behind. It wakes and asks S for a snapshot.
  // 2. The first chunk lies in F's memory, unread; F sleeps again.
  // 3. S restarts. Its memory is empty, and so is what it remembers of F's request.
  // 4. F wakes, takes the first chunk and asks for the second. Two more messages are delivered, and
  //    S, a member again, answers: with the second chunk of a snapshot that it takes now.
  //    Harm: F has the position of one state and the contents of another.
  const stage = new Stage('replicas=3 clients=1 rings=1024', {
    sizes: { snapshotChunkBytes: 64 },
    timing: { backOffUs: 400, suspectAfterUs: 2000 },
  });
  const { world } = stage;
  const [, S, F] = stage.group(0);
  const fetching = F.replica['snapshots'];
  world.pause(F);
  stage.runFor(5000);
  for (let i = 0; i < 60; i++) {
    stage.send(0, [0], `m${i}`);
    stage.runFor(100);
  }

  world.resume(F);
  stage.until(() => fetching['fetching'] && fetching['source'] === S.member);
  stage.until(() => S.replica['snapshots']['chunksSent'] === 1);
  world.pause(F);
  stage.runFor(5);
  expect(fetching['wanted']).toBe(0);

  world.crash(S);
  stage.restart(S);
  world.resume(F);
  stage.until(() => fetching['wanted'] === 1);
  for (let i = 0; i < 2; i++) stage.send(0, [0], `n${i}`);
  stage.until(() => S.replica.member.normal);
  stage.until(() => F.replica.member.nextToDeliver > 0);
  expect((fetching['application'] as Service).count).toBe(F.replica.member.deliveries);
  for (let i = 0; i < 3; i++) stage.send(0, [0], `p${i}`);
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(65);
});

test('a member that is more than 2^31 words behind notices it', () => {
  // 1. The group has ordered so much that the log's positions are 9 GiB from where they began.
  // 2. B restarts with empty memory: it is at the beginning. Modulo 2^32, that looks as if it were
  //    ahead of the log's base.
  //    Harm: it waits for entries that never come, and says that its log ends at a negative index.
  // 3. B has to lead.
  const stage = new Stage('replicas=3 clients=1 rings=1024', { sizes: { origin: 0x90000000 } });
  const { world } = stage;
  const [A, , B] = stage.group(0);
  for (let i = 0; i < 60; i++) {
    stage.send(0, [0], `m${i}`);
    stage.runFor(100);
  }
  world.crash(B);
  stage.runFor(50);

  const sizes = world.layout.sizes as { origin: number };
  const { origin } = sizes;
  sizes.origin = 0;
  stage.restart(B);
  stage.until(() => B.replica.member.normal);
  stage.until(() => B.replica.member.nextToDeliver === A.replica.member.nextToDeliver);
  expect(B.replica.member.sealLog().endIndex).toBe(origin + 60);
  stage.lead(B);
  sizes.origin = origin;

  stage.send(0, [0], 'n');
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(61);
});

test('a candidate gives up a log whose owner restarted while it was read', () => {
  // 1. A leads. Its writes to Y are held back, so that only A and B have m. A falls asleep.
  // 2. Y stands, gets B's grant, finds that B's log reaches further and posts reads of it.
  // 3. B dies and is back at once. Nobody tells Y: its reads never complete, and B's heartbeats go on.
  //    Harm: Y waits for ever, and as it is alive and pursues the highest ballot, so does everybody.
  const stage = new Stage('replicas=3 clients=1 rings=4096');
  const { world } = stage;
  const [A, Y, B] = stage.group(0);
  const takeover = Y.replica['takeover'];
  stage.hold(A, Y);
  stage.send(0, [0], 'm');
  stage.until(() => A.replica.member.deliveries === 1);
  stage.runFor(50);

  world.pause(A);
  stage.stand(Y);
  stage.until(() => takeover.phase === 'adopt' && takeover['adoptFrom'] === B.member);

  stage.crashUnheard(B);
  stage.restart(B);
  stage.settle();
});

test('a ballot that a member promised to an earlier life is outbid', () => {
  // 1. S leads. A stands; its request reaches R alone, which promises A's ballot.
  // 2. A dies and forgets. It comes back, joins S, and stands again: with the same ballot, because
  //    nobody it can hear has seen that one. S, T and U grant; A leads. R is cut off meanwhile.
  // 3. R hears of A, but it promised this ballot to another life and refuses it.
  //    Harm: R is alive, follows nobody and keeps the log from being dropped, until it is full.
  const stage = new Stage('replicas=5 clients=1 rings=1024', { timing: { backOffUs: 400 } });
  const { world } = stage;
  const [A, S, R, T, U] = stage.group(0);
  stage.lead(S);
  stage.runFor(500);

  stage.hold(A, S, T, U);
  stage.hold(S, R);
  stage.stand(A);
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
});

test('clients with much to say do not starve the parent', () => {
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
});

test('members whose every step is late still notice a dead leader', () => {
  // 1. Every step comes more than a heartbeat after the last one.
  // 2. The leader dies. Harm: as all silence is put down to one's own lateness, nobody ever suspects.
  const stage = new Stage('replicas=3 clients=1');
  const { world } = stage;
  const [A] = stage.group(0);
  world['drawStep'] = () => world.plan.timing.heartbeatUs + 10;
  stage.runFor(1000);
  world.crash(A);
  stage.send(0, [0], 'm');
  stage.settle();
  expect(world.ledger.orders[0]).toHaveLength(1);
});

test('members that rest for long between steps notice a dead leader as soon as others would', () => {
  // 1. There is nothing to do, and every step comes ten heartbeats after the last one, as it may.
  // 2. The leader dies. Harm: if only one heartbeat of each rest counts as silence, it takes ten times too long.
  const stage = new Stage('replicas=3 clients=1', {
    timing: { restUs: 500, suspectAfterUs: 4000 },
  });
  const { world } = stage;
  const { restUs, suspectAfterUs } = world.plan.timing;
  const [A] = stage.group(0);
  world['drawStep'] = () => restUs;
  stage.runFor(4 * suspectAfterUs);
  world.crash(A);
  stage.until(() => world.leaderOf(0) !== undefined, suspectAfterUs + 40 * restUs);
});

test.each([
  ['no read is', () => true],
  ['a read of its row is', (isReading: boolean) => isReading],
])(
  'a leader that dies while all others sleep is missed soon after they wake: %s under way',
  (_, isTime) => {
    // 1. Both followers fall asleep. The leader dies, and they sleep on for a second.
    // 2. They wake. What they read before they fell asleep counts as a heartbeat of now.
    //    Harm: if the time they slept is added to that, they trust the dead for another second.
    const stage = new Stage('replicas=3 clients=1');
    const { world } = stage;
    const [A, ...others] = stage.group(0);
    for (const host of others) {
      const row = host.replica['rows'].peer(A.member);
      stage.until(() => isTime(row.reading));
      world.pause(host);
    }
    stage.runFor(60);
    world.crash(A);
    stage.runFor(1_000_000);

    for (const host of others) world.resume(host);
    stage.until(() => world.leaderOf(0) !== undefined, 5000);
    stage.settle();
  },
);

test('whoever slept does not hold the silence against a leader that lives', () => {
  // 1. A follower sleeps for long, with no read of the leader's row under way.
  // 2. It wakes, and the last heartbeat that it knows of is old. Harm: it deposes the leader.
  const stage = new Stage('replicas=3 clients=1');
  const { world } = stage;
  const [A, B] = stage.group(0);
  const stood = world.tally.transitions.get('stood');
  const row = B.replica['rows'].peer(A.member);
  stage.until(() => !row.reading);
  world.pause(B);
  stage.runFor(100_000);
  world.resume(B);
  stage.runFor(5000);
  expect(world.leaderOf(0)).toBe(A);
  expect(world.tally.transitions.get('stood')).toBe(stood);
  stage.settle();
});

test('whoever grants a ballot does not stand against it', () => {
  // 1. A leads. S stands; A grants and steps down.
  // 2. The row of S that A has read last is older than S's request: in it, S pursues nothing.
  //    Harm: A finds nobody who leads, trusts itself as the first, and outbids S at once.
  const stage = new Stage('replicas=5 clients=1 rings=1024');
  const { world } = stage;
  const [, S] = stage.group(0);
  const stood = world.tally.transitions.get('stood')!;
  stage.stand(S);
  stage.runFor(300);
  expect(world.leaderOf(0)).toBe(S);
  expect(world.tally.transitions.get('stood')).toBe(stood + 1);
  stage.settle();
});
