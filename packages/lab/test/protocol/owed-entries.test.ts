/**
 * In a quick step, a leader posts new entries to the leader of the child only, and owes them to the other members. Here full
 * steps are due rarely, so there is time for other things to happen before it posts them.
 */

import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { messageWords, SOURCE } from 'tram-multicast/internal/protocol/layout.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import type { Stage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';

const SOON_US = 300;
const RARELY = { heartbeatUs: 2000, restUs: 2000, quickUs: 2000, suspectAfterUs: 20_000 };
const STILL_LESS = { heartbeatUs: 6000, restUs: 6000, quickUs: 6000, suspectAfterUs: 20_000 };

/** A leads the parent of the group of D, E and F, which D leads, and has forwarded one message to all of them. */
function begin(Subject: Subject['Stage'], more = '', timing = RARELY) {
  const stage = new Subject(`groups=2 tree=-1,0 replicas=3 clients=1 ${more}`, { timing });
  const [A] = stage.group(0);
  const [D, E, F] = stage.group(1);
  stage.send(0, [0, 1], 'a');
  const end = stage.world.layout.feedEnd(A.member);
  stage.until(() => [D, E, F].every(({ memory }) => memory.own[end] !== 0));
  stage.until(() => D.replica.member.deliveries === 1);
  const endAt = ({ memory }: ReplicaHost) => memory.own[end];
  return { stage, A, D, E, F, endAt };
}

/** Until A has taken a full step, and the next one is far away. */
function awaitQuickSteps(stage: Stage, { replica }: ReplicaHost, forUs = 4 * SOON_US): void {
  stage.until(() => replica.dueUs === Number.POSITIVE_INFINITY);
  stage.until(() => replica.rows.dueUs > stage.world.nowUs + forUs);
  stage.runFor(SOON_US);
}

/** How often this host has woken another one urgently since. */
function countWakes({ memory }: ReplicaHost): (peer: ReplicaHost) => number {
  const woken: number[] = [];
  memory.wake = (peer, isUrgent) => {
    if (isUrgent) woken.push(peer);
  };
  return ({ participant }) => woken.filter((peer) => peer === participant).length;
}

attack(
  'the leader of a child gets a message at once; the others get it later, and the end of the feed after it',
  { 'owed-end-told': /expected/, 'owed-end-forgotten': STUCK },
  ({ Stage }) => {
    const { stage, A, D, E, endAt } = begin(Stage);
    awaitQuickSteps(stage, A);
    const before = endAt(E);
    stage.send(0, [0, 1], 'm');
    stage.until(() => D.replica.member.deliveries === 2, SOON_US);
    expect(endAt(D)).not.toBe(before);
    expect(endAt(E)).toBe(before);
    stage.until(() => endAt(E) === endAt(D), 3000);
    stage.settle();
  },
);

attack(
  'a new leader of a child gets what is owed to it',
  { 'owed-by-new-leader': STUCK },
  ({ Stage }) => {
    // 1. E leads the child. A does not know that: its read of E's row takes long.
    // 2. A forwards m to D, and owes it to E and F.
    // 3. A reads that E leads.
    //    Harm: A takes E for the member that has m already. E is told the end behind m, and waits for m forever.
    const { stage, A, D, E } = begin(Stage);
    stage.hold(A, E);
    stage.until(() => stage.linkOf(A, E).operations.some(({ isRead }) => isRead));
    stage.campaign(E);
    stage.until(() => E.replica.role === 'leader' && D.replica.role === 'follower');
    awaitQuickSteps(stage, A);
    stage.send(0, [0, 1], 'm');
    stage.until(() => A.replica.leader.forwarding.owes, SOON_US);
    stage.release(A, E);
    stage.settle();
    expect(stage.world.ledger.orders[1]).toHaveLength(2);
  },
);

attack(
  'a new leader of a child gets a message at once if the old one has ended, even before its row was read',
  { 'owed-though-ended': STUCK },
  ({ Stage }) => {
    const { stage, A, D, E, F } = begin(Stage, '', STILL_LESS);
    awaitQuickSteps(stage, A, 10 * SOON_US);
    stage.world.crash(D);
    for (const { memory } of [A, E, F]) memory.hasEnded = (peer) => peer === D.participant;
    stage.until(() => E.replica.role === 'leader', 4 * SOON_US);
    stage.send(0, [0, 1], 'm');
    stage.until(() => E.replica.member.deliveries === 2, SOON_US);
    stage.settle();
  },
);

attack(
  'the leader of a child is woken for a message once, and not again when the others get what they were owed',
  { 'owed-end-wakes-leader': /expected/ },
  ({ Stage }) => {
    const { stage, A, D, E, endAt } = begin(Stage);
    awaitQuickSteps(stage, A);
    const woken = countWakes(A);
    stage.send(0, [0, 1], 'm');
    stage.until(() => D.replica.member.deliveries === 2, SOON_US);
    stage.until(() => endAt(E) === endAt(D) && A.replica.dueUs === Number.POSITIVE_INFINITY);
    expect(woken(D)).toBe(1);
    stage.settle();
  },
);

attack(
  'a new leader of a child is woken for what is owed to it',
  { 'owed-end-wakes-nobody': /expected/ },
  ({ Stage }) => {
    // As above, when A reads that E leads.
    const { stage, A, D, E, endAt } = begin(Stage);
    stage.hold(A, E);
    stage.until(() => stage.linkOf(A, E).operations.some(({ isRead }) => isRead));
    stage.campaign(E);
    stage.until(() => E.replica.role === 'leader' && D.replica.role === 'follower');
    awaitQuickSteps(stage, A);
    stage.send(0, [0, 1], 'm');
    stage.until(() => A.replica.leader.forwarding.owes, SOON_US);
    stage.until(() => endAt(D) !== endAt(E), SOON_US);
    const woken = countWakes(A);
    stage.release(A, E);
    stage.until(() => endAt(E) === endAt(D));
    expect(woken(E)).toBe(1);
    stage.settle();
  },
);

attack(
  'if the parent has lost its leader, its next leader gives a new leader of the child what was owed to it',
  {},
  ({ Stage }) => {
    // 1. A forwards m to D, and owes it to E and F. D can't replicate it.
    // 2. A and D crash. B leads the parent, and E the child.
    const { stage, A, D, E, F } = begin(Stage);
    awaitQuickSteps(stage, A);
    stage.hold(D, E, F);
    stage.send(0, [0, 1], 'm');
    stage.until(() => A.replica.leader.forwarding.owes && A.replica.member.deliveries === 2);
    stage.runFor(SOON_US);
    stage.world.crash(A);
    stage.world.crash(D);
    stage.settle();
    expect(stage.world.ledger.orders[1]).toHaveLength(2);
  },
);

attack(
  'a leader that has told its gate to the leader of a child only says when it has to run',
  { 'owed-never-due': /Infinity/ },
  ({ Stage }) => {
    // D decides m so late that A has told its members everything before. Then the gate of A moves, and nothing else.
    const { stage, A, D, E, F } = begin(Stage, 'order=strict');
    stage.hold(D, E, F);
    stage.send(0, [0, 1], 'm');
    stage.until(() => A.replica.member.deliveries === 2);
    awaitQuickSteps(stage, A);
    const { gate } = A.replica.leader.settling;
    stage.release(D, E, F);
    stage.until(() => A.replica.leader.settling.gate > gate, SOON_US);
    expect(A.replica.dueUs).toBeLessThan(Number.POSITIVE_INFINITY);
    stage.until(() => A.replica.dueUs === Number.POSITIVE_INFINITY);
    stage.settle();
  },
);

attack(
  'a leader of a child that has lost an entry is not told the end of the feed behind it',
  { 'owed-end-after-loss': /members that have its entries/ },
  ({ Stage }) => {
    // 1. D can't replicate m yet. A forwards n to D, and owes it to E and F. The connection to D breaks, and n is lost.
    // 2. D decides m, so the gate of A moves. A has not read the row of D again, and so has not written the feed again.
    //    Harm: A tells D its gate, and the end of the feed with it. D takes what lies at the place of n: half of n, or nothing.
    const { stage, A, D, E, F, endAt } = begin(Stage, 'order=strict');
    stage.hold(D, E, F);
    stage.send(0, [0, 1], 'm');
    stage.until(() => A.replica.member.deliveries === 2);
    awaitQuickSteps(stage, A);
    const before = endAt(D);
    stage.hold(A, D);
    stage.send(0, [0, 1], 'n');
    stage.until(() => A.replica.leader.forwarding.owes, SOON_US);
    stage.world.fabric.breakLink(A.participant, D.participant);
    stage.release(A, D);
    stage.until(() => stage.linkOf(A, D).losses === 0, SOON_US);
    const { gate } = A.replica.leader.settling;
    stage.release(D, E, F);
    stage.until(() => A.replica.leader.settling.gate > gate, SOON_US);
    stage.until(() => endAt(E) !== before, SOON_US);
    expect(endAt(D)).toBe(before);
    stage.settle();
    expect(stage.world.ledger.orders[1]).toHaveLength(3);
  },
);

attack(
  'a new start of a feed is owed to nobody',
  { 'owed-after-start': /follows what was decided/ },
  ({ Stage }) => {
    // 1. The feed of A holds four messages: the child has decided m0, and D alone has taken m1, m2 and m3.
    // 2. E leads the child, and is slow: it has not looked at the feed yet.
    // 3. A drops m0 from the feed, and writes m4 in its place, to E only.
    //    Harm: E does not know that the feed starts behind m0. It looks there, and takes m4 before m1.
    const slots = 4;
    const entryWords = 32;
    const payload = (entryWords - FRAME_WORDS - SOURCE.words - messageWords(0)) * 4;
    const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1 rings=4096', {
      sizes: { feedBytes: slots * entryWords * 4, payloadBytesMax: payload },
      timing: RARELY,
    });
    const { world } = stage;
    const [A] = stage.group(0);
    const [D, E, F] = stage.group(1);
    const send = (text: string) => stage.send(0, [0, 1], text.repeat(payload));
    send('0');
    stage.until(() => A.replica.rows.childPeer(0, D.member).fromParent > 0);
    stage.hold(D, E, F);
    for (const text of ['1', '2', '3']) send(text);
    stage.until(() => A.replica.member.deliveries === slots);
    const [feed] = A.replica.leader.forwarding.feeds;
    expect(feed.usedWords).toBe(world.layout.feedWords);
    stage.campaign(E);
    stage.until(() => E.replica.role === 'leader');
    world.pause(E);
    stage.until(() => A.replica.rows.childPeer(0, E.member).ledBallot > 0);
    awaitQuickSteps(stage, A);
    send('4');
    stage.until(() => A.replica.member.deliveries === slots + 1, SOON_US);
    stage.runFor(SOON_US);
    world.resume(E);
    stage.settle();
    expect(world.ledger.orders[1]).toHaveLength(slots + 1);
  },
);

attack(
  'any number of messages is owed, side by side in the log or not',
  { 'owed-piece-replaced': /pieces/, 'feed-pieces-joined': STUCK },
  ({ Stage }) => {
    const { stage, A, D, E, endAt } = begin(Stage, 'rings=32768', STILL_LESS);
    awaitQuickSteps(stage, A, 18 * SOON_US);
    const { client } = stage.world.clients[0];
    const before = endAt(E);
    for (let count = 0; count < 33; count++) {
      stage.send(0, [0, 1], 'both');
      stage.send(0, [0], 'parent only');
      stage.until(() => client.outstanding === 0, SOON_US);
    }
    expect(endAt(E)).toBe(before);
    stage.until(() => endAt(E) === endAt(D));
    stage.lead(E);
    stage.send(0, [0, 1], 'last');
    stage.settle();
    expect(stage.world.ledger.orders[1]).toHaveLength(35);
  },
);
