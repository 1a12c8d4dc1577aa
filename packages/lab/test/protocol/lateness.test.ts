/** Members that pause, rest, or are late in every step: which members they suspect, and how soon. */

import { expect } from 'vitest';
import { attack, STUCK } from './attack.js';

attack(
  'members whose every step is late still notice a dead leader',
  { 'lateness-excuses-all': STUCK },
  ({ Stage }) => {
    // 1. Every step comes more than a heartbeat after the previous one.
    // 2. The leader crashes.
    //    Harm: each member attributes all silence to its own lateness, and none ever suspects the leader.
    const stage = new Stage('replicas=3 clients=1');
    const { world } = stage;
    const [A] = stage.group(0);
    world.drawStep = () => world.plan.timing.heartbeatUs + 10;
    stage.runFor(1000);
    world.crash(A);
    stage.send(0, [0], 'm');
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(1);
  },
);

attack(
  'members that rest for long between steps notice a dead leader as soon as other members do',
  { 'lateness-excuses-all': STUCK },
  ({ Stage }) => {
    // 1. There is nothing to do, and every step comes ten heartbeats after the previous one, which is allowed.
    // 2. The leader crashes.
    //    Harm: only one heartbeat of each rest counts as silence, and suspicion takes ten times too long.
    const stage = new Stage('replicas=3 clients=1', {
      timing: { restUs: 500, suspectAfterUs: 4000 },
    });
    const { world } = stage;
    const { restUs, suspectAfterUs } = world.plan.timing;
    const [A] = stage.group(0);
    world.drawStep = () => restUs;
    stage.runFor(4 * suspectAfterUs);
    world.crash(A);
    stage.until(() => world.leaderOf(0) !== undefined, suspectAfterUs + 40 * restUs);
  },
);

for (const [reading, isTime] of [
  ['no read is', () => true],
  ['a read of its row is', (isReading: boolean) => isReading],
] as const) {
  attack(
    `a leader that crashes while all others are paused is suspected soon after they continue: ${reading} in flight`,
    {},
    ({ Stage }) => {
      // 1. Both followers pause. The leader crashes, and they stay paused for a second.
      // 2. They continue. The row that they had read before counts as a heartbeat at this moment.
      //    Harm: the time of the pause is added to that, and they trust the dead leader for another second.
      const stage = new Stage('replicas=3 clients=1');
      const { world } = stage;
      const [A, ...others] = stage.group(0);
      for (const host of others) {
        const row = host.replica.rows.peer(A.member);
        stage.until(() => isTime(row.readsUnderWay > 0));
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
}

attack(
  'a member that was paused does not suspect a live leader because of its own silence',
  {},
  ({ Stage }) => {
    // 1. All followers pause for long, with no read of the leader's row in flight.
    // 2. They continue, and the last heartbeat that they know of is old.
    //    Harm: they depose the leader.
    const stage = new Stage('replicas=3 clients=1');
    const { world } = stage;
    const [A, ...others] = stage.group(0);
    const campaigned = world.tally.transitions.get('campaigned');
    for (const host of others) {
      const row = host.replica.rows.peer(A.member);
      stage.until(() => row.readsUnderWay === 0);
      world.pause(host);
    }
    stage.runFor(100_000);
    for (const host of others) world.resume(host);
    stage.runFor(5000);
    expect(world.leaderOf(0)).toBe(A);
    expect(world.tally.transitions.get('campaigned')).toBe(campaigned);
    stage.settle();
  },
);

attack(
  'a member that grants a ballot does not campaign against it',
  {
    'forgets-request': /to be \{ participant: 1/,
    'first-before-highest': /to be \{ participant: 1/,
  },
  ({ Stage }) => {
    // 1. A leads. S campaigns; A grants and steps down.
    // 2. A has last read a row of S that is older than S's request: it shows no campaign.
    //    Harm: A finds no leader, trusts itself as the first member, and outbids S at once.
    const stage = new Stage('replicas=5 clients=1 rings=1024', {
      timing: { heartbeatUs: 200, restUs: 200, suspectAfterUs: 2000 },
    });
    const { world } = stage;
    const [, S] = stage.group(0);
    const campaigned = world.tally.transitions.get('campaigned')!;
    stage.campaign(S);
    stage.runFor(300);
    expect(world.leaderOf(0)).toBe(S);
    expect(world.tally.transitions.get('campaigned')).toBe(campaigned + 1);
    stage.settle();
  },
);
