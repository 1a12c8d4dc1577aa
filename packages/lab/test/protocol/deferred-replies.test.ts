/** Deferred replies that are lost, late or no longer wanted. The service defers every reply. */
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import type { Overrides, Stage } from '../../src/sim/stage.js';
import { attack, STUCK } from './attack.js';

/** A cluster whose service gives no deferred reply until it is told to. */
function stageOf({ Stage }: Subject, cluster: string, overrides: Overrides = {}): Stage {
  const stage = new Stage(cluster, { ...overrides, serviceDefersEvery: 1 });
  answer(stage, Number.POSITIVE_INFINITY);
  return stage;
}

/** From now on, at all replicas, the oldest reply is given with one of so many deliveries. */
function answer(stage: Stage, every: number): void {
  const { replicas } = stage.world;
  const hasDelivered = (host: ReplicaHost): number => host.replica.member.nextToDeliver;
  stage.until(() =>
    replicas.every((host) => hasDelivered(host) === hasDelivered(stage.leaderOf(host.group))),
  );
  for (const { service } of stage.world.replicas) service.answersEvery = every;
}

const waitingAt = ({ replica, service }: ReplicaHost): number => {
  expect(replica.member.waiting.total).toBe(service.waiting.length);
  return service.waiting.length;
};

attack(
  'a deferred reply that is lost on its way is sent again',
  { 'waiting-not-nudged': STUCK },
  (subject) => {
    // 1. m waits. The next message makes the service reply to m, and the connection of leader and client breaks.
    // 2. Nothing happens any more, no leader changes.
    //    Harm: the call never ends.
    const stage = stageOf(subject, 'replicas=3 clients=2');
    const [A] = stage.group(0);
    const [client] = stage.world.clients;
    stage.send(0, [0], 'm');
    stage.until(() => waitingAt(A) === 1);
    stage.runFor(100);
    stage.hold(A, client);
    answer(stage, 1);
    stage.send(1, [0], 'n');
    stage.until(() => A.replica.member.deliveries === 2);
    stage.runFor(100);
    stage.world.fabric.breakLink(A.participant, client.participant);
    stage.settle();
  },
);

attack('a notice that comes after the reply changes nothing', {}, (subject) => {
  // 1. A leads and defers its reply to m. The notice is on its way for long.
  // 2. B leads, and sends the notice and the reply. The client uses the call slot again, and its next call waits.
  // 3. The notice of A lands.
  const stage = stageOf(subject, 'replicas=3 clients=2');
  const [A, B] = stage.group(0);
  const [client] = stage.world.clients;
  stage.hold(A, client);
  stage.send(0, [0], 'm');
  stage.until(() => waitingAt(A) === 1);
  stage.lead(B);
  answer(stage, 1);
  stage.send(1, [0], 'n');
  stage.until(() => client.client.outstanding === 0);
  answer(stage, Number.POSITIVE_INFINITY);
  for (let i = 0; i < stage.world.layout.sizes.callsMax; i++) stage.send(0, [0], `m${i}`);
  stage.runFor(100);
  stage.release(A, client);
  stage.settle();
});

attack(
  'a message of a session that has ended does not wait',
  { 'ended-session-waits': STUCK },
  (subject) => {
    // 1. m waits at group 1. n, to both groups, is on its way from group 0.
    // 2. The client crashes, and group 1 abandons m. A new client takes the slot.
    // 3. n comes to group 1, and its reply is deferred.
    //    Harm: the call is never abandoned, because the new client is alive.
    const stage = stageOf(subject, 'groups=2 tree=-1,0 replicas=3 clients=1');
    const [A] = stage.group(0);
    const members = stage.group(1);
    const [C] = members;
    const [client] = stage.world.clients;
    stage.send(0, [1], 'm');
    stage.until(() => waitingAt(C) === 1);
    stage.hold(A, ...members);
    stage.send(0, [0, 1], 'n');
    stage.until(() => waitingAt(A) === 1);
    stage.world.crash(client);
    stage.until(() => waitingAt(C) === 0);
    stage.world.startClient(client, 0);
    stage.send(0, [1], 'o');
    stage.until(() => waitingAt(C) === 1);
    stage.release(A, ...members);
    stage.until(() => C.replica.member.deliveries === 3);
    stage.settle();
  },
);

attack(
  'the end of a session that is ordered late does not concern the next one',
  { 'session-end-reopens': /was abandoned, although its client waits for it/ },
  (subject) => {
    // 1. m waits. The client crashes, and a new client takes the slot. Its message n is in the leader's log, not decided.
    // 2. The leader proposes the end of the first session, behind n.
    //    Harm: n, which waits, is abandoned.
    const stage = stageOf(subject, 'replicas=3 clients=1');
    const [A, B, C] = stage.group(0);
    const [client] = stage.world.clients;
    stage.send(0, [0], 'm');
    stage.until(() => waitingAt(A) === 1);
    // The leader has looked whether the session has ended, and looks again only after a while.
    stage.runFor(50);
    stage.hold(A, B, C);
    const { endIndex } = A.replica.replication;
    stage.world.crash(client);
    stage.world.startClient(client, 0);
    stage.send(0, [0], 'n');
    stage.until(() => A.replica.replication.endIndex === endIndex + 2);
    expect(waitingAt(A)).toBe(1);
    stage.release(A, B, C);
    stage.until(() => A.replica.member.nextToDeliver === endIndex + 2);
    expect(waitingAt(A)).toBe(1);
    stage.settle();
  },
);

attack(
  'a leader that leads again proposes the end of a session again',
  { 'session-end-remembered': STUCK },
  (subject) => {
    // 1. m waits. Its client crashes. L proposes the end of the session, and no other member gets that entry.
    // 2. B leads, without the entry, and decides nothing.
    // 3. L leads again, with the log of B.
    //    Harm: L believes that it has proposed the end, so m waits as long as L leads.
    const stage = stageOf(subject, 'replicas=3 clients=2');
    const [L, B, C] = stage.group(0);
    const [client] = stage.world.clients;
    stage.send(0, [0], 'm');
    stage.until(() => waitingAt(L) === 1 && waitingAt(B) === 1);
    stage.hold(L, B, C);
    const { endIndex } = L.replica.replication;
    stage.world.crash(client);
    stage.until(() => L.replica.replication.endIndex > endIndex);
    stage.lead(B);
    stage.hold(B, L, C);
    stage.release(L, B, C);
    stage.lead(L);
    stage.release(B, L, C);
    stage.settle();
    expect(waitingAt(L)).toBe(0);
  },
);

attack(
  'what waited for a session that has ended does not come back with a snapshot',
  { 'ended-still-kept': STUCK },
  (subject) => {
    // 1. m waits. Its client crashes, and m is abandoned.
    // 2. The log drops m. A member stops, and resumes from the snapshot that it leaves.
    //    Harm: m waits there.
    const stage = stageOf(subject, 'replicas=3 clients=2 rings=2048');
    const [A, B] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => waitingAt(A) === 1);
    stage.world.crash(stage.world.clients[0]);
    stage.until(() => waitingAt(A) === 0);
    answer(stage, 1);
    const stop = stage.flood(1, [0], 'n');
    stage.until(() => stage.world.droppedBelow[0] > 4);
    stop();
    stage.runFor(1000);
    stage.stop(B);
    stage.resume(B);
    stage.settle();
  },
);

attack(
  'a call is cancelled although its client always has more to send than fits',
  { 'cancels-after-others': STUCK },
  (subject) => {
    // 1. m waits, and its caller gives it up. From now on the client fills its ring before each of its steps. All these
    //    messages wait too, in call slots of their own, and leave the ring.
    //    Harm: the cancel finds no room, and m waits as long as the client has anything to send.
    const stage = stageOf(subject, 'replicas=3 clients=1 rings=0', { sizes: { callsMax: 256 } });
    const [A] = stage.group(0);
    const [{ client, workload }] = stage.world.clients;
    stage.send(0, [0], 'm');
    stage.until(() => waitingAt(A) === 1);
    stage.runFor(100);
    const [m] = A.service.waiting;
    workload.giveUpDeferred(client);
    // A message without payload is as long as a cancel.
    const stop = stage.flood(0, [0], '');
    stage.until(() => !A.service.waiting.includes(m), 1000);
    stop();
    stage.settle();
  },
);

attack(
  'under strict order, a client takes a notice that overtakes an earlier reply, which is held',
  { 'taken-in-order-only': STUCK, 'overtaking-awaits-resend': STUCK },
  (subject) => {
    // 1. C, which leads the child, takes m from its feed. A, which leads the parent, does not learn that m is settled.
    // 2. A delivers x, which makes the service reply to m, and y. It holds the notices of x and y behind m.
    // 3. A delivers n, which makes the service reply to x. n does not get to the child.
    // 4. A learns that m is settled. It sends the notice of y, and still holds the reply to x.
    //    Harm: the client does not look behind x, or does so only when it sends everything again.
    const stage = stageOf(subject, 'groups=2 tree=-1,0 replicas=3 clients=2 order=strict');
    const [A] = stage.group(0);
    const members = stage.group(1);
    const [C] = members;
    const [{ client }] = stage.world.clients;
    stage.hold(C, A);
    stage.send(1, [0, 1], 'm');
    stage.until(() => C.replica.replication.endIndex === 1);
    stage.hold(A, ...members);
    stage.until(() => waitingAt(C) === 1);
    answer(stage, 1);
    stage.send(0, [0], 'x');
    const x = client.lastCall;
    stage.until(() => A.replica.member.deliveries === 2);
    answer(stage, Number.POSITIVE_INFINITY);
    stage.send(0, [0], 'y');
    const y = client.lastCall;
    stage.until(() => A.replica.member.deliveries === 3);
    answer(stage, 1);
    stage.send(1, [0, 1], 'n');
    stage.until(() => A.replica.member.deliveries === 4);
    expect([x.unheardLow, y.unheardLow]).toEqual([1, 1]);
    // The longer nothing comes, the more rarely the client sends again.
    const { resendAfterUs } = stage.world.plan.timing;
    stage.runFor(20 * resendAfterUs);
    stage.release(C, A);
    stage.until(() => y.unheardLow === 0, 4 * resendAfterUs);
    expect(x.unheardLow).toBe(1);
    stage.settle();
  },
);
