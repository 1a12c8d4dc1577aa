/** Members that are killed, and resume with the memory that they left. */

import { describe, expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import { follows } from '../../src/sim/stage.js';
import { attack, DIVERGED, STUCK } from './attack.js';

const deliveriesOf = (host: ReplicaHost): number => host.replica.member.deliveries;

describe('a member that resumes', () => {
  attack('keeps its promise', { H29: DIVERGED }, ({ Stage }) => {
    // 1. L leads and pauses. M leads with the grant of C, and the two of them decide m.
    // 2. M is killed and resumes.
    // 3. L continues, and knows nothing of that. It sees that M has a new incarnation, and sends its request again.
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
    // 1. L leads; its writes to C are held back. L and M decide m.
    // 2. M is killed and resumes. L sends its request again.
    //    Harm, first half: M grants the same ballot, and L installs its log in M's other ring. Now both rings have a
    //    valid marker.
    // 3. L and M decide n. L crashes. C requests M's log.
    //    Harm: M grants the older ring, C has never heard of n, and orders x in its place.
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
    'does not count as a member if it was killed before it had recovered',
    { H31: DIVERGED },
    ({ Stage }) => {
      // 1. L leads; L and M decide m, and X hears nothing of it. M restarts with empty memory, learns of L's ballot,
      //    promises it and grants its empty log, but the grant does not arrive.
      // 2. M is killed, and resumes. Its memory has its promise, and an empty log.
      // 3. L pauses. X requests M's log.
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
    'keeps a promise that it stored just before it was killed, and the writes that landed since',
    { 'permits-before-storing': /expected 8 to be 17/, H29: /expected \+0 to be 17/ },
    ({ Stage }) => {
      // 1. L leads. C campaigns; M stores its promise and is killed before it has revoked L's permission.
      // 2. L and the dead M decide m. No other member knows of M's promise.
      // 3. M resumes, and C sends its request again.
      //    Harm: M answers as if it had sealed its log with its promise, or has lost the promise or m.
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
      // Otherwise L would outbid C, and M would follow L again.
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
      // 2. C resumes. Its own ballot is the highest that it knows.
      //    Harm: it campaigns in the same round as A, and deposes A because its member number is higher.
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
    'does not count for dropping entries by what its earlier incarnation had delivered',
    {},
    ({ Stage }) => {
      // 1. A, B and C deliver messages. B is killed and resumes; it has delivered nothing.
      // 2. A sees B's new row. C is paused. The log is filling up, so A drops entries if it may.
      //    Harm: A drops entries that "f+1 have delivered", namely A and B's earlier incarnation, and crashes.
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
    'uses other notifications than before, so that the client notices its first reply',
    { 'same-notification': STUCK },
    ({ Stage }) => {
      // 1. A leads and has notified the client twice, which has seen it. A is killed and resumes.
      // 2. The client sends m and pauses. A leads again and notifies the client of the old replies, then of m: twice, if
      //    it counts from the start again. The client continues.
      //    Harm: the notification has its old value, and the client waits until it resends.
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
