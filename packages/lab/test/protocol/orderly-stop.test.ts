/** Members that stop in an orderly way, and resume with their memory and the snapshot that they left. */

import { describe, expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Stage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';

/** Sends messages one after the other, each once the one before is answered. */
function fill(stage: Stage, count: number, text: string): void {
  const { workload } = stage.world.clients[0];
  for (let i = 0; i < count; i++) {
    stage.send(0, [0], `${text}${i}`);
    stage.until(() => workload.isDone);
  }
}

/** The log has dropped entries, and all members have delivered all others. */
function untilDropped(stage: Stage, members: readonly ReplicaHost[]): void {
  stage.until(() => stage.world.droppedBelow[0] > 0);
  const [first] = members;
  stage.until(() => members.every((host) => deliveriesOf(host) === deliveriesOf(first)));
}

const deliveriesOf = (host: ReplicaHost): number => host.replica.member.deliveries;

describe('members that stop in an orderly way', () => {
  attack(
    'have the state when all of them are back',
    { 'forgets-left-snapshot': STUCK },
    ({ Stage }) => {
      // 1. A, B and C deliver twenty messages, and the log drops the first ones.
      // 2. All of them stop, and resume.
      //    Harm: no member has the state, and the group cannot continue.
      const stage = new Stage('replicas=3 clients=1 rings=1024');
      const members = stage.group(0);
      fill(stage, 20, 'm');
      untilDropped(stage, members);
      for (const host of members) stage.stop(host);
      stage.runFor(100);
      for (const host of members) stage.resume(host);
      stage.send(0, [0], 'n');
      stage.settle();
      expect(stage.world.ledger.orders[0]).toHaveLength(21);
    },
  );

  attack(
    'deliver a log again that still has its beginning, and do not restore what they left',
    { 'restores-needlessly': /restored/ },
    ({ Stage }) => {
      // The service of the new incarnation may not be able to restore what the old one has left.
      const stage = new Stage('replicas=3 clients=1');
      const members = stage.group(0);
      const B = members[1];
      fill(stage, 3, 'm');
      stage.until(() => members.every((host) => deliveriesOf(host) === 3));
      stage.stop(B);
      stage.resume(B);
      B.service.restore = () => {
        throw new Error('restored');
      };
      expect(deliveriesOf(B), 'restored at once').toBe(0);
      stage.send(0, [0], 'n');
      stage.settle();
      expect(deliveriesOf(B)).toBe(4);
    },
  );

  attack('need only one of them to keep the state', {}, ({ Stage }) => {
    // C stops early. A and B deliver more, and the log drops what C lacks. Then A stops, and B is killed. C and B come
    // back first: neither has the state, and C leads in vain until A is there.
    const stage = new Stage('replicas=3 clients=1 rings=1024');
    const [A, B, C] = stage.group(0);
    fill(stage, 3, 'm');
    stage.until(() => deliveriesOf(C) === 3);
    stage.stop(C);
    fill(stage, 20, 'n');
    untilDropped(stage, [A, B]);
    stage.stop(A);
    stage.kill(B);
    stage.resume(C);
    stage.resume(B);
    stage.until(() => C.replica.member.needs > 0 || B.replica.member.needs > 0);
    stage.runFor(5000);
    expect(stage.world.leaderOf(0)).toBeUndefined();
    stage.resume(A);
    stage.send(0, [0], 'o');
    stage.settle();
    expect(stage.world.ledger.orders[0]).toHaveLength(24);
  });

  attack('may resume from an old snapshot: they are behind, and catch up', {}, ({ Stage }) => {
    // C stops and resumes. More messages are delivered and dropped. C is killed, resumes with what it left long ago, and
    // leads at once.
    const stage = new Stage('replicas=3 clients=1 rings=1024', {
      timing: { suspectAfterUs: 3000 },
    });
    const members = stage.group(0);
    const [A, B, C] = members;
    fill(stage, 3, 'm');
    stage.until(() => deliveriesOf(C) === 3);
    stage.stop(C);
    stage.resume(C);
    fill(stage, 20, 'n');
    untilDropped(stage, [A, B]);
    stage.kill(C);
    stage.resume(C);
    expect(deliveriesOf(C)).toBe(3);
    stage.campaign(C);
    stage.until(() => deliveriesOf(C) === 23);
    stage.send(0, [0], 'o');
    stage.settle();
  });

  attack('may be written to after they have left their state', {}, ({ Stage }) => {
    // C stops. A counts what it writes into the memory of C, decides m with it alone, and crashes. B has never heard of
    // m. C resumes, and finds m in its log.
    const stage = new Stage('replicas=3 clients=1', { timing: { suspectAfterUs: 3000 } });
    const { world } = stage;
    const [A, B, C] = stage.group(0);
    fill(stage, 2, 'l');
    stage.until(() => deliveriesOf(C) === 2 && deliveriesOf(B) === 2);
    stage.hold(A, B);
    stage.hold(world.clients[0], B);
    stage.stop(C);
    stage.send(0, [0], 'm');
    stage.until(() => deliveriesOf(A) === 3);
    stage.crashUnheard(A);
    stage.resume(C);
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(3);
  });

  attack('keep the replies that a client still waits for', {}, ({ Stage }) => {
    // The replies to m do not arrive. All members stop and resume: m was delivered, and is not delivered again.
    const stage = new Stage('replicas=3 clients=1 rings=1024');
    const { world } = stage;
    const members = stage.group(0);
    const [client] = world.clients;
    fill(stage, 20, 'l');
    untilDropped(stage, members);
    stage.hold(members[0], client);
    stage.hold(members[1], client);
    stage.hold(members[2], client);
    stage.send(0, [0], 'm');
    stage.until(() => members.every((host) => deliveriesOf(host) === 21));
    for (const host of members) stage.stop(host);
    for (const host of members) stage.resume(host);
    stage.settle();
    expect(world.ledger.orders[0]).toHaveLength(21);
  });
});

describe('a state that is lost', () => {
  /** Twenty messages, of which the log has dropped the first ones. */
  function dropped(stage: Stage, members: readonly ReplicaHost[]): void {
    fill(stage, 20, 'm');
    untilDropped(stage, members);
  }

  attack(
    'is found if all members were killed',
    { 'hides-its-need': /nothing more happens/ },
    ({ Stage }) => {
      const stage = new Stage('replicas=3 clients=1 rings=1024');
      const members = stage.group(0);
      dropped(stage, members);
      for (const host of members) stage.kill(host);
      for (const host of members) stage.resume(host);
      stage.until(() => stage.world.losses.isLost(0));
    },
  );

  attack('is found if one of them was down for long, and has an old log', {}, ({ Stage }) => {
    const stage = new Stage('replicas=3 clients=1 rings=1024', {
      timing: { suspectAfterUs: 2000 },
    });
    const [A, B, C] = stage.group(0);
    fill(stage, 3, 'l');
    stage.kill(C);
    // The logs of A and B get a newer ballot than that of C.
    stage.lead(B);
    dropped(stage, [A, B]);
    for (const host of [A, B]) stage.kill(host);
    for (const host of [A, B, C]) stage.resume(host);
    stage.until(() => stage.world.losses.isLost(0));
  });

  attack('is found if more than f members have lost their memory', {}, ({ Stage }) => {
    const stage = new Stage('replicas=3 clients=1 rings=1024');
    const [A, B, C] = stage.group(0);
    dropped(stage, [A, B, C]);
    for (const host of [B, C]) stage.crashUnheard(host);
    for (const host of [B, C]) stage.restart(host);
    stage.until(() => stage.world.losses.isLost(0));
  });

  attack(
    'is not one that a member still fetches',
    { 'calls-fetching-lost': /although its state was called lost/ },
    ({ Stage }) => {
      // A leads. B has lost its memory, has found A, and fetches a snapshot. C loses its memory too. B becomes a full member
      // with the help of A alone, and then A and B help C.
      const stage = new Stage('replicas=3 clients=1 rings=1024', {
        sizes: { snapshotChunkBytes: 64 },
        timing: { suspectAfterUs: 3000 },
        pace: { backlogBytesMax: 0 },
      });
      const { world } = stage;
      const [A, B, C] = stage.group(0);
      dropped(stage, [A, B, C]);
      stage.crashUnheard(B);
      stage.runFor(20);
      stage.restart(B);
      const { member } = B.replica;
      stage.until(() => member.log.under(member.promised, member.promisedMember) !== undefined);
      stage.hold(A, B);
      stage.crashUnheard(C);
      stage.restart(C);
      stage.runFor(3000);
      expect(member.normal).toBe(false);
      stage.send(0, [0], 'n');
      stage.settle();
      expect(world.ledger.orders[0]).toHaveLength(21);
    },
  );

  describe.each([
    ['the one that has it', 'ignores-own-entries'],
    ['another one', 'ignores-kept-log'],
  ])('is not one that a member can deliver from its log, if %s campaigns', (who, mutation) => {
    attack('and all members were killed', { [mutation]: STUCK }, ({ Stage }) => {
      // 1. C leaves a snapshot. A and C decide more entries; their logs have all that come after the snapshot.
      // 2. C promises a ballot of B, which A does not hear of. A drops entries from its log, which C has delivered. The log
      //    of C keeps them.
      // 3. All are killed, and resume: only C can deliver those entries. The log of A is longer, and is adopted.
      //    Harm: C does not deliver them, because it has no log of the ballot that it has promised.
      const stage = new Stage('replicas=3 clients=1 rings=1024', {
        timing: { suspectAfterUs: 5000, backOffUs: 3000 },
        pace: { backlogBytesMax: 0 },
      });
      const { world } = stage;
      const [A, B, C] = stage.group(0);
      for (let i = 0; i < 5; i++) {
        stage.send(0, [0], `m${i}`);
        stage.runFor(150);
      }
      stage.stop(C);
      stage.runFor(20);
      stage.resume(C);
      stage.runFor(3000);
      expect(stage.leaderOf(0)).toBe(A);
      stage.hold(A, B);
      for (let i = 0; i < 7; i++) {
        stage.send(0, [0], `n${i}`);
        stage.runFor(60);
      }
      stage.until(() => deliveriesOf(C) === 12);
      stage.hold(B, A);
      stage.hold(C, B, A);
      stage.campaign(B);
      stage.until(() => C.replica.member.promised === B.replica.member.promised);
      for (const host of [B, C]) world.pause(host);
      const end = stage.flood(0, [0], 'x');
      stage.until(() => A.replica.replication.baseIndex > 5);
      end();
      for (const host of [A, B, C]) stage.kill(host);
      for (const host of [A, B, C]) stage.resume(host);
      for (const host of [A, B, C]) stage.release(host, A, B, C);
      stage.campaign(who === 'another one' ? A : C);
      stage.settle();
    });
  });
});
