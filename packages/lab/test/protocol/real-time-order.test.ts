/** A leader holds a reply until all messages that it shows are decided at all their groups, even if leaders change. */
import { expect } from 'vitest';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import { attack, STUCK } from './attack.js';

const NOT_IN_REAL_TIME = /"property":"real-time-order","outcome":"violated"/;

/** A and B are members of the parent, which A leads. C, D and E are the members of its child, which C leads. */
function strictParentAndChild(Stage: Subject['Stage'], resendAfterUs = 500) {
  const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=2 order=strict', {
    timing: { suspectAfterUs: 20_000, resendAfterUs },
  });
  const [A, B] = stage.group(0);
  const [C, D, E] = stage.group(1);
  expect([A, C].map(({ replica }) => replica.role)).toEqual(['leader', 'leader']);
  const { history, orders } = stage.world.ledger;
  return { stage, A, B, C, D, E, orders, answers: () => history.counts.answers };
}

attack(
  'a reply does not show a message that another group may still lose',
  { 'settled-undecided': NOT_IN_REAL_TIME },
  ({ Stage }) => {
    // 1. C takes m from its feed, but writes it to no other member. D and E do not have it in their feeds either.
    // 2. C crashes, so m is not decided. D leads.
    // 3. A client asks D, and D orders this before m.
    //    Harm: A has replied to m already.
    const { stage, A, C, D, E, orders, answers } = strictParentAndChild(Stage);
    stage.hold(C, D, E);
    stage.hold(A, D, E);
    stage.send(0, [0, 1], 'm');
    stage.until(() => C.replica.replication.endIndex > C.replica.member.nextToDeliver);
    stage.hopeFor(() => answers() > 0);
    stage.crashUnheard(C);
    stage.lead(D);
    stage.send(1, [1], 'is m here?');
    stage.until(() => orders[1].length === 1);
    stage.settle();
  },
);

attack(
  'a reply that the old leader held is sent by the new one, without being asked',
  { 'held-lost-when-leading': STUCK, 'held-never-sent': STUCK },
  ({ Stage }) => {
    // 1. A delivers m, and holds its reply: m cannot get to the child.
    // 2. B leads, and m gets to the child.
    //    Harm: nobody replies to m before the client asks again.
    const { stage, A, B, C, D, E, orders, answers } = strictParentAndChild(Stage, 100_000);
    stage.hold(A, C, D, E);
    stage.send(0, [0, 1], 'm');
    stage.until(() => B.replica.member.deliveries === 1);
    expect(answers()).toBe(0);
    stage.crashUnheard(A);
    stage.lead(B);
    stage.until(() => orders[1].length === 1);
    stage.until(() => answers() === 2);
    stage.settle();
  },
);

attack(
  'a new leader does not take what it has adopted for settled further down',
  { 'adopted-is-settled': NOT_IN_REAL_TIME },
  ({ Stage }) => {
    // 1. The group in the middle orders m, and cannot forward it.
    // 2. Another member leads the group in the middle. It cannot forward m either.
    // 3. A client asks the lowest group, which does not have m.
    //    Harm: the root has replied to m already.
    const stage = new Stage('groups=3 tree=-1,0,1 replicas=3 clients=2 order=strict', {
      timing: { suspectAfterUs: 20_000 },
    });
    const { history, orders } = stage.world.ledger;
    const lowest = stage.group(2);
    const [C, D] = stage.group(1);
    for (const member of [C, D]) stage.hold(member, ...lowest);
    stage.send(0, [0, 1, 2], 'm');
    stage.until(() => D.replica.member.deliveries === 1);
    stage.crashUnheard(C);
    stage.lead(D);
    stage.hopeFor(() => history.counts.answers > 0);
    stage.send(1, [2], 'is m here?');
    stage.until(() => orders[2].length === 1);
    stage.settle();
  },
);

attack(
  'a new leader holds the replies to entries that were dropped before the gate passed them',
  { 'base-is-gate': NOT_IN_REAL_TIME },
  ({ Stage }) => {
    // 1. C delivers m, and holds its reply: the other child of its parent does not have m.
    // 2. The log of C is full, so C drops m.
    // 3. D leads. The log begins behind m.
    //    Harm: D replies to m. A client then asks the other child, which does not have m.
    const stage = new Stage('groups=3 tree=-1,0,0 replicas=3 clients=2 order=strict', {
      sizes: { logBytes: 0 },
      timing: { suspectAfterUs: 20_000 },
    });
    const { history, orders } = stage.world.ledger;
    const A = stage.leaderOf(0);
    const [C, D] = stage.group(1);
    stage.hold(A, ...stage.group(2));
    stage.send(0, [1, 2], 'm');
    stage.until(() => orders[1].length === 1);
    for (let i = 0; i < 8; i++) stage.send(1, [1], 'one more');
    stage.until(() => D.replica.member.deliveries === 9);
    expect(C.replica.replication.baseIndex).toBeGreaterThan(0);
    stage.crashUnheard(C);
    stage.lead(D);
    stage.hopeFor(() => history.counts.answers > 0);
    stage.send(0, [2], 'is m here?');
    stage.until(() => orders[2].length === 1);
    stage.settle();
  },
);

attack(
  'a group goes on while another child of its parent has lost its majority',
  { 'full-log-waits-for-gate': STUCK },
  ({ Stage }) => {
    // 1. Two members of a child are killed. m, to this child and to the child that C leads, is ordered at the parent.
    // 2. C delivers m. Its gate stands still before m, while ticks fill its log.
    //    Harm: C drops nothing, so it orders no more ticks and no more messages.
    const stage = new Stage('groups=3 tree=-1,0,0 replicas=3 clients=2 order=strict', {
      sizes: { logBytes: 0 },
      ticks: { everyUs: 100, clocks: [] },
    });
    const { history, orders } = stage.world.ledger;
    const killed = stage.group(1).slice(0, 2);
    const [C] = stage.group(2);
    for (const member of killed) stage.kill(member);
    stage.send(0, [1, 2], 'm');
    stage.until(() => orders[2].length === 1);
    const { delivered } = C.replica.member;
    const beforeUs = delivered.orderedUs;
    stage.until(() => delivered.orderedUs > beforeUs + 10_000);
    stage.send(1, [2], 'n');
    stage.until(() => orders[2].length === 2);
    expect(history.counts.answers).toBe(0);
    for (const member of killed) stage.resume(member);
    stage.settle();
  },
);
