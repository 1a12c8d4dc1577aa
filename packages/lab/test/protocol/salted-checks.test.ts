/** A record of one group's log is not valid in the log of another: checks are salted for the group. */

import { expect } from 'vitest';
import { attack } from './attack.js';
import { parentAndChild } from './parent-and-child.js';

for (const fate of ['deposed', 'killed', 'killed half-way'] as const) {
  attack(
    `an entry that a leader has copied from its parent is not valid before it is framed as its own: it is ${fate}`,
    { 'same-salt': /expected \d to be \d/ },
    ({ Stage }) => {
      // 1. C, the leader of the child, copies three entries of the parent behind its log's end. They have C's ballot and
      //    the next indices of its log.
      // 2. C stops there, or frames only the first of them as its own.
      // 3. The next leader reads C's log: from its grant, or after C has resumed.
      //    Harm: it takes the entries of the parent for entries of C, with the source that they had at the parent.
      const { stage, world, A, C } = parentAndChild(Stage);
      const [, D, E] = stage.group(1);
      world.pause(C);
      for (let i = 0; i < 3; i++) stage.send(0, [0, 1], 'm'.repeat(32));
      stage.runFor(400);
      const { own } = C.memory;
      const number = world.layout.feedStart(A.member) + 2;
      const before = own[number];
      const leader = C.replica.leader;
      let isStruck = false;
      if (fate === 'killed half-way') {
        const { replication } = C.replica;
        const append = replication.append.bind(replication);
        const order = leader.order.bind(leader);
        replication.append = (words, hash) => {
          append(words, hash);
          replication.append = append;
          isStruck = true;
          throw new Error('interrupted');
        };
        leader.order = (nowUs, isQuick) => {
          try {
            return order(nowUs, isQuick);
          } catch (error) {
            if (!isStruck) throw error;
            return 0;
          }
        };
      } else {
        C.memory.readFence = () => {
          isStruck = true;
          own[number] = before + 1;
        };
      }
      world.resume(C);
      stage.until(() => isStruck);
      C.memory.readFence = () => undefined;
      own[number] = before;
      const { ring, endIndex } = C.replica.replication;
      expect(C.replica.member.log.extentOf(ring, endIndex).endIndex).toBe(endIndex);

      world.crash(E);
      if (fate === 'deposed') {
        world.pause(C);
        stage.campaign(D);
        stage.runFor(200);
        world.resume(C);
      } else {
        stage.kill(C);
        stage.runFor(500);
        stage.resume(C);
        stage.campaign(D);
      }
      stage.runFor(30_000);
      stage.restart(E);
      stage.settle();
      expect(world.ledger.orders[1]).toHaveLength(4);
    },
  );
}
