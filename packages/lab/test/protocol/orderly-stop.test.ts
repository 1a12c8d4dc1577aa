/** Members that stop in an orderly way, and resume with their memory and the snapshot that they left. */

import { describe, expect } from 'vitest';
import type { Stage } from '../../src/sim/stage.js';
import type { ReplicaHost } from '../../src/sim/world.js';
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
    'go on from their snapshots, not from the start of a log that is complete',
    { 'restores-left-late': /delivery never goes back/ },
    ({ Stage }) => {
      // 1. A, B and C deliver three messages. The log has all of them.
      // 2. B stops, and resumes.
      //    Harm: it delivers the log from its start, and then restores the state that it had left: delivery goes back.
      const stage = new Stage('replicas=3 clients=1');
      const members = stage.group(0);
      const B = members[1];
      fill(stage, 3, 'm');
      stage.until(() => members.every((host) => deliveriesOf(host) === 3));
      stage.stop(B);
      stage.resume(B);
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
    // m. C resumes with a snapshot from before m, and finds m in its log.
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
    expect(deliveriesOf(C)).toBe(2);
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

attack(
  'members that lack the state tell which entries they need',
  { 'hides-its-need': /to be greater than 0/ },
  ({ Stage }) => {
    // All members are killed after the log has dropped entries: nobody has the state any more.
    const stage = new Stage('replicas=3 clients=1 rings=1024');
    const members = stage.group(0);
    fill(stage, 20, 'm');
    untilDropped(stage, members);
    for (const host of members) stage.kill(host);
    for (const host of members) stage.resume(host);
    stage.runFor(3000);
    const dropped = stage.world.droppedBelow[0];
    for (const { replica, member } of members) {
      for (const other of members) {
        if (other.member === member) continue;
        const { needs, delivered } = replica.rows.peer(other.member);
        expect(needs).toBeGreaterThan(0);
        expect(needs).toBeLessThanOrEqual(dropped);
        expect(delivered).toBe(0);
      }
    }
  },
);
