/** Members that die while their memory lives on, and come back to it. */

import { describe, expect } from 'vitest';
import { follows } from '../../src/sim/stage.js';
import type { ReplicaHost } from '../../src/sim/world.js';
import { attack, DIVERGED, STUCK } from './attack.js';

const deliveriesOf = (host: ReplicaHost): number => host.replica.member.deliveries;

describe('a member that resumes', () => {
  attack('keeps its promise', { H29: DIVERGED }, ({ Stage }) => {
    // 1. L leads and falls asleep. M leads with C's help, and the two of them decide m.
    // 2. M is killed and resumes.
    // 3. L wakes and has heard of nothing. It sees that M has a new incarnation, and asks it again.
    //    Harm: M grants, and L and M decide x where m was delivered.
    const stage = new Stage('replicas=3 clients=2', {
      timing: { suspectAfterUs: 3000, backOffUs: 3000 },
    });
    const { world } = stage;
    const [L, C, M] = stage.group(0);
    world.pause(L);
    stage.hold(M, L);
    stage.hold(L, C);
    stage.hold(world.clients[0], L);
    stage.hold(world.clients[1], C, M);
    stage.lead(M);
    stage.send(0, [0], 'm');
    stage.until(() => deliveriesOf(C) === 1);

    stage.kill(M);
    stage.resume(M);
    world.resume(L);
    stage.send(1, [0], 'x');
    stage.release(M, L);
    stage.hopeFor(() => deliveriesOf(L) === 1);
    stage.settle();
  });

  attack('is installed once under one ballot', { H30: DIVERGED }, ({ Stage }) => {
    // 1. L leads; what it writes to C is held back. L and M decide m.
    // 2. M is killed and resumes. L asks it again.
    //    Harm, first half: it grants the same ballot, and L installs its log in M's other ring. Both
    //    rings are M's log by their marker now.
    // 3. L and M decide n. L dies. C asks M for its log.
    //    Harm: M finds the older ring, C has never heard of n, and orders x in its place.
    const stage = new Stage('replicas=3 clients=2', {
      timing: { suspectAfterUs: 3000 },
    });
    const { world } = stage;
    const [L, C, M] = stage.group(0);
    stage.hold(L, C);
    stage.hold(world.clients[0], C, M);
    stage.hold(world.clients[1], L);
    stage.send(0, [0], 'm');
    stage.until(() => deliveriesOf(L) === 1);

    stage.kill(M);
    stage.runFor(20);
    stage.resume(M);
    stage.runFor(500);
    stage.send(0, [0], 'n');
    stage.until(() => deliveriesOf(L) === 2);

    stage.crashUnheard(L);
    stage.send(1, [0], 'x');
    stage.hopeFor(() => deliveriesOf(C) > 1, 6000);
    stage.settle();
  });

  attack(
    'has kept nothing if it was killed before it had recovered',
    { H31: DIVERGED },
    ({ Stage }) => {
      // 1. L leads; L and M decide m, of which X hears nothing. M loses its memory and comes back; it
      //    learns of L's ballot, promises it and grants its empty log, but that does not arrive.
      // 2. M is killed, and resumes. Its promise is in its memory, and so is its log: none.
      // 3. L falls asleep. X asks M for its log.
      //    Harm: M grants, X leads without m, and orders x in its place.
      const stage = new Stage('replicas=3 clients=2', { timing: { suspectAfterUs: 1000 } });
      const { world } = stage;
      const [L, X, M] = stage.group(0);
      stage.hold(L, X);
      stage.hold(world.clients[0], X, M);
      stage.hold(world.clients[1], L);
      stage.send(0, [0], 'm');
      stage.until(() => deliveriesOf(L) === 1);
      stage.hold(M, L);
      stage.crashUnheard(M);
      stage.restart(M);
      stage.release(M, L);
      stage.until(() => follows(M, L));
      stage.hold(M, L);
      stage.hold(L, M);
      expect(M.replica.member.normal).toBe(false);

      stage.kill(M);
      stage.resume(M);
      world.pause(L);
      stage.send(1, [0], 'x');
      stage.hopeFor(() => deliveriesOf(X) === 1, 5000);
      world.resume(L);
      stage.settle();
    },
  );

  attack(
    'has promised what it was about to when it was killed, and lost nothing that came in meanwhile',
    { 'permits-before-storing': /expected 8 to be 17/, H29: /expected \+0 to be 17/ },
    ({ Stage }) => {
      // 1. L leads. C stands; M stores its promise and is killed before it has revoked L's permission.
      // 2. L and the dead M decide m. Of M's promise nobody knows.
      // 3. M resumes, and C asks it again.
      //    Harm: M answers as if it had sealed its log at its promise, or has forgotten either of the two.
      const stage = new Stage('replicas=3 clients=1', { timing: { suspectAfterUs: 3000 } });
      const { world } = stage;
      const [L, C, M] = stage.group(0);
      stage.hold(L, C);
      stage.hold(C, L);
      const { key } = M.replica.member;
      stage.campaign(C);
      const ballot = C.replica.member.promised;
      M.memory.dieAfter(0, () => follows(M, C));
      const killOncePromised = () => {
        if (follows(M, C)) stage.kill(M);
        else M.afterStep = killOncePromised;
      };
      killOncePromised();
      stage.until(() => M.state === 'down');
      expect(M.memory.permission).toBe(key);

      stage.send(0, [0], 'm');
      stage.until(() => deliveriesOf(L) === 1);
      // Else L would outbid C, and M would follow it again.
      stage.hold(L, M);
      stage.hold(M, L);
      stage.resume(M);
      expect(M.replica.member.promised).toBe(ballot);
      expect(M.memory.permission).not.toBe(key);
      stage.until(() => C.replica.role === 'leader');
      stage.settle();
      expect(world.ledger.orders[0]).toHaveLength(1);
    },
  );

  attack(
    'does not depose a leader that it has not heard of yet',
    { 'resumes-impatiently': STUCK },
    ({ Stage }) => {
      // 1. C leads and is killed. A leads, in the next round; its request has not reached C.
      // 2. C resumes. As far as it knows, its own ballot is the highest.
      //    Harm: it campaigns in that round too, and as its number is higher, it deposes A.
      const stage = new Stage('replicas=3 clients=1');
      const [A, B, C] = stage.group(0);
      stage.lead(C);
      stage.runFor(500);
      stage.kill(C);
      stage.hold(A, C);
      stage.until(() => A.replica.role === 'leader' && follows(B, A));
      stage.resume(C);
      stage.runFor(60);
      stage.release(A, C);
      stage.until(() => follows(C, A) && C.replica.member.log.current()?.writer === A.member);
      expect(A.replica.role).toBe('leader');
      stage.settle();
    },
  );

  attack(
    'and the leader drops entries that only its earlier incarnation had delivered, but not for its sake',
    {},
    ({ Stage }) => {
      // 1. A, B and C deliver messages. B is killed and resumes; it has delivered nothing.
      // 2. A sees B's new row. C sleeps. The log is filling up, and A would like to drop entries.
      //    Harm: A drops what "f+1 have delivered", itself and B's earlier incarnation, and dies.
      const stage = new Stage('replicas=3 clients=1 rings=1024', { timing: { backOffUs: 400 } });
      const { world } = stage;
      const [A, B, C] = stage.group(0);
      world.pause(C);
      for (let i = 0; i < 7; i++) stage.send(0, [0], `m${i}`);
      stage.until(() => deliveriesOf(B) === 7);
      stage.runFor(200);

      stage.kill(B);
      stage.runFor(20);
      stage.resume(B);
      world.pause(B);
      stage.runFor(200);
      for (let i = 0; i < 7; i++) stage.send(0, [0], `n${i}`);
      stage.hopeFor(() => deliveriesOf(A) === 14, 2000);
      world.crash(A);
      world.resume(B);
      world.resume(C);
      stage.settle();
      expect(world.ledger.orders[0]).toHaveLength(14);
    },
  );

  attack(
    'rings otherwise than before, so that its first reply is noticed',
    { 'same-notification': STUCK },
    ({ Stage }) => {
      // 1. A leads and has rung twice at the client, which saw it. A is killed and resumes.
      // 2. The client sends m and falls asleep. A leads again and rings because of the old replies, then
      //    because of m: twice, if it counts from the start again. The client wakes.
      //    Harm: the bell looks as it did, and the client waits until it has lost its patience.
      const stage = new Stage('replicas=3 clients=1', {
        timing: { suspectAfterUs: 3000, resendAfterUs: 40_000 },
      });
      const { world } = stage;
      const [A] = stage.group(0);
      const [c] = world.clients;
      for (const text of ['first', 'second']) {
        stage.send(0, [0], text);
        stage.until(() => c.client.outstanding === 0);
      }
      stage.kill(A);
      stage.resume(A);
      stage.send(0, [0], 'm');
      stage.runFor(60);
      world.pause(c);
      stage.lead(A);
      stage.until(() => deliveriesOf(A) === 3);
      stage.runFor(100);
      world.resume(c);
      stage.until(() => c.client.outstanding === 0, 2000);
      stage.settle();
    },
  );
});
