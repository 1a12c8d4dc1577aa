/** Members that begin from a journal, and members that lack the state of their group because they have none. */
import type { Application } from 'tram-multicast/internal/protocol/edges.js';
import { indexOf } from 'tram-multicast/internal/protocol/leadership/snapshot.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import { ServiceFailure } from '../../src/sim/service.js';
import { attack, STUCK } from './attack.js';
import { deliveriesOf, FIRST_INDEX, hasState, openedStage } from './opened-stage.js';

/** Its service gives snapshots in pieces of one byte. The view is taken when the first piece is asked for. */
function givesPieces({ service }: ReplicaHost, failsAt = Number.POSITIVE_INFINITY) {
  const pieces = { given: 0, failsAt };
  const snapshot = service.snapshot.bind(service);
  (service as Application).snapshot = function* () {
    const bytes = snapshot();
    for (let at = 0; at < bytes.length; at++) {
      if (at === pieces.failsAt) throw new ServiceFailure('disk full');
      pieces.given++;
      yield bytes.subarray(at, at + 1);
    }
  };
  return pieces;
}

/** Their services begin snapshots that do not end until the returned function is called. Then those fail. */
function givesNoSnapshot(...hosts: ReplicaHost[]): () => void {
  let isMended = false;
  for (const { service } of hosts) {
    const snapshot = service.snapshot.bind(service);
    (service as Application).snapshot = () => (isMended ? snapshot() : endless());
  }
  function* endless(): Generator<Uint8Array> {
    while (!isMended) yield new Uint8Array(1024);
    throw new ServiceFailure('disk full');
  }
  return () => {
    isMended = true;
  };
}

const MEMORIES = [
  ['kept', 'kill', 'resume'],
  ['lost', 'crashUnheard', 'restart'],
] as const;

for (const [memory, end, again] of MEMORIES) {
  attack(`with ${memory} memory, a member begins where its journal ends`, {}, ({ Stage }) => {
    const { stage, readsJournal } = openedStage(Stage, 'replicas=3 clients=2', [], {
      serviceDefersEvery: 3,
      serviceFailsEvery: 5,
      ticks: { everyUs: 300, clocks: [] },
    });
    const [, , C] = stage.group(0);
    for (let i = 0; i < 20; i++) stage.send(i % 2, [0], `m${i}`);
    stage.until(() => deliveriesOf(C) === 20);
    const before = C.replica.takeSnapshot();
    const index = C.replica.member.nextToDeliver;
    stage[end](C);
    readsJournal(C);
    stage[again](C);
    // It has not taken a step.
    expect(C.replica.member.nextToDeliver).toBe(index);
    expect(Buffer.from(C.replica.takeSnapshot().buffer)).toEqual(Buffer.from(before.buffer));
    stage.send(0, [0], 'more');
    stage.settle();
    expect(deliveriesOf(C)).toBe(21);
  });
}

attack(
  'a call that waits is abandoned when a later one has its slot and its end is lost',
  { 'replaced-call-waits': /was abandoned and answered/ },
  ({ Stage }) => {
    // 1. m waits in the child. Its client cancels it, and uses its call slot for n, which comes from the parent.
    // 2. With `everySecond`, a recovery finds m and not the cancel, and takes n from the parent again.
    //    Harm: the service keeps m, and replies to it.
    const { stage, readsJournalWithout } = openedStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=1',
      [],
      {
        serviceDefersEvery: 1,
        sizes: { callsMax: 1 },
      },
    );
    const { world } = stage;
    for (const { service } of world.replicas) service.answersEvery = Number.POSITIVE_INFINITY;
    stage.group(0);
    const [, , C] = stage.group(1);
    const [{ client, workload }] = world.clients;
    const next = () => C.replica.member.nextToDeliver;
    stage.send(0, [1], 'm');
    stage.until(() => C.service.waiting.length === 1);
    const first = next();
    stage.runFor(100);
    workload.giveUpDeferred(client);
    stage.until(() => C.service.waiting.length === 0 && client.outstanding === 0);
    const end = next();
    stage.send(0, [0, 1], 'n');
    stage.until(() => C.service.waiting.length === 1);
    stage.crashUnheard(C);
    readsJournalWithout(C, first, end);
    stage.restart(C);
    expect(C.service.waiting.length).toBe(1);
    expect(C.replica.member.waiting.total).toBe(1);
  },
);

attack(
  'a member that lacks the state gets it although no message was sent',
  { 'lacks-state-unnoticed': STUCK, 'fetched-not-journaled': STUCK },
  ({ Stage }) => {
    const { stage, journalOf } = openedStage(Stage, 'replicas=3 clients=1', [2]);
    const [A, , C] = stage.group(0);
    stage.until(() => hasState(C));
    // So does its journal.
    stage.until(() => journalOf(C).snapshot !== undefined);
    expect(Buffer.from(journalOf(C).snapshot!.buffer)).toEqual(
      Buffer.from(A.replica.takeSnapshot().buffer),
    );
    stage.send(0, [0], 'm');
    stage.settle();
  },
);

attack('a member that lacks the state joins a log that has dropped entries', {}, ({ Stage }) => {
  const { stage, journalOf, readsJournal } = openedStage(
    Stage,
    'replicas=3 clients=1 rings=1024',
    [2],
    { pace: { backlogBytesMax: 0 }, sizes: { snapshotChunkBytes: 64 } },
  );
  const { world } = stage;
  const C = world.members(0)[2];
  world.pause(C);
  for (let i = 0; i < 40; i++) {
    stage.send(0, [0], `m${i}`);
    stage.runFor(150);
  }
  const leader = stage.leaderOf(0);
  expect(leader.replica.replication.baseIndex).toBeGreaterThan(FIRST_INDEX);
  world.resume(C);
  stage.until(() => deliveriesOf(C) === 40);
  // The snapshot that it has fetched is in its journal, and the entries after it.
  stage.until(() => journalOf(C).snapshot !== undefined);
  stage.send(0, [0], 'more');
  stage.until(() => deliveriesOf(C) === 41);
  expect(indexOf(journalOf(C).snapshot!)).toBeGreaterThan(FIRST_INDEX);
  const before = C.replica.takeSnapshot();
  stage.kill(C);
  readsJournal(C);
  stage.resume(C);
  expect(Buffer.from(C.replica.takeSnapshot().buffer)).toEqual(Buffer.from(before.buffer));
  stage.settle();
});

attack(
  'a member that lacks the state does not lead',
  {
    'campaigns-without-state': /expected 'candidate' to be 'follower'/,
    'trusted-without-state': STUCK,
  },
  ({ Stage }) => {
    // A is the first member, so it would be trusted. It can't get the state, and is even asked to campaign.
    const { stage } = openedStage(Stage, 'replicas=3 clients=1', [0], {
      sizes: { snapshotChunkBytes: 1024 },
      timing: { suspectAfterUs: 400, backOffUs: 200 },
    });
    const { world } = stage;
    const [A, B, C] = world.members(0);
    const mend = givesNoSnapshot(B, C);
    stage.send(0, [0], 'm');
    stage.until(() => deliveriesOf(B) === 1 && deliveriesOf(C) === 1);
    stage.campaign(A);
    expect(A.replica.role).toBe('follower');
    // Nor if it is the only one that another member could trust.
    const leader = stage.leaderOf(0);
    const other = leader === B ? C : B;
    world.pause(leader);
    stage.send(0, [0], 'n');
    stage.until(() => deliveriesOf(other) === 2);
    expect(A.replica.member.deliveries).toBe(0);
    expect(other.replica.role).toBe('leader');
    mend();
    world.resume(leader);
    stage.settle();
    expect(deliveriesOf(A)).toBe(2);
  },
);

attack('members that lack the state do not lead without those that have it', {}, ({ Stage }) => {
  const { stage, readsJournal } = openedStage(Stage, 'replicas=3 clients=1', [0, 1], {
    timing: { suspectAfterUs: 400, backOffUs: 200 },
    sizes: { snapshotChunkBytes: 64 },
  });
  const { world } = stage;
  const [A, B, C] = world.members(0);
  // C crashes while both fetch. A and B are f+1 members, and both lack the state.
  stage.until(() => C.replica.member.holdAt === FIRST_INDEX);
  stage.crashUnheard(C);
  stage.send(0, [0], 'm');
  stage.runFor(10_000);
  expect([A, B].map(hasState)).toEqual([false, false]);
  expect([A, B].map(({ replica }) => replica.role)).toEqual(['follower', 'follower']);
  expect(world.leaderOf(0)).toBeUndefined();
  readsJournal(C);
  stage.restart(C);
  stage.runFor(10_000);
  // It has lost its memory, and nobody can tell what it had promised. But the others do not go on without the state.
  expect(world.leaderOf(0)).toBeUndefined();
});

attack(
  'a member that restarts while others fetch from it goes on with its journal',
  {},
  ({ Stage }) => {
    const { stage, readsJournal } = openedStage(Stage, 'replicas=3 clients=1', [0, 1], {
      timing: { suspectAfterUs: 400, backOffUs: 200 },
      sizes: { snapshotChunkBytes: 64 },
    });
    const { world } = stage;
    const [A, B, C] = world.members(0);
    stage.until(() => C.replica.member.holdAt === FIRST_INDEX);
    stage.kill(C);
    stage.send(0, [0], 'm');
    stage.runFor(10_000);
    expect([A, B].map(hasState)).toEqual([false, false]);
    readsJournal(C);
    stage.resume(C);
    stage.settle();
    expect([A, B, C].map(deliveriesOf)).toEqual([1, 1, 1]);
  },
);

attack(
  'a member that crashes while it fetches the state begins again without it',
  {},
  ({ Stage }) => {
    const { stage, losesJournal } = openedStage(Stage, 'replicas=3 clients=1', [2], {
      sizes: { snapshotChunkBytes: 64 },
    });
    const [A, B, C] = stage.world.members(0);
    stage.until(() => [A, B].some(({ replica }) => replica.member.holdAt > 0));
    stage.crashUnheard(C);
    losesJournal(C);
    stage.send(0, [0], 'm');
    stage.restart(C);
    stage.settle();
    expect(deliveriesOf(C)).toBe(1);
  },
);

attack(
  'a snapshot in pieces is the state at its index, although deliveries go on and its server comes to lead',
  {},
  ({ Stage }) => {
    const { stage } = openedStage(Stage, 'replicas=3 clients=2 rings=2048', [2], {
      sizes: { snapshotChunkBytes: 64 },
      serviceDefersEvery: 3,
    });
    const { world } = stage;
    const [A, B, C] = world.members(0);
    world.pause(C);
    stage.leaderOf(0);
    const pieces = [A, B].map((host) => givesPieces(host));
    const stop = stage.flood(0, [0], 'flood');
    stage.until(() => deliveriesOf(A) >= 50);
    world.resume(C);
    const server = (): ReplicaHost | undefined =>
      [A, B].find(({ replica }) => replica.member.holdAt > 0);
    stage.until(() => server() !== undefined);
    const serving = server()!;
    const index = serving.replica.member.holdAt;
    stage.until(() => serving.replica.member.nextToDeliver > index + 5);
    expect(hasState(C)).toBe(false);
    if (serving.replica.role !== 'leader') stage.lead(serving);
    stage.until(() => hasState(C));
    expect(pieces.some(({ given }) => given > 0)).toBe(true);
    stop();
    // The world compares the states at each index.
    stage.settle();
  },
);

attack('a service that fails in the middle of a snapshot is asked again', {}, ({ Stage }) => {
  const { stage } = openedStage(Stage, 'replicas=3 clients=1', [2], {
    timing: { suspectAfterUs: 400, backOffUs: 200 },
    sizes: { snapshotChunkBytes: 64 },
  });
  const { world } = stage;
  const [A, B, C] = world.members(0);
  const pieces = [A, B].map((host) => givesPieces(host, 4));
  stage.send(0, [0], 'm');
  // Both are asked, more than once, and go on.
  stage.until(() => pieces.every(({ given }) => given >= 8));
  stage.send(0, [0], 'n');
  stage.until(() => deliveriesOf(A) === 2 && deliveriesOf(B) === 2);
  expect(hasState(C)).toBe(false);
  expect([A, B].map(({ replica }) => replica.member.holdAt)).toEqual([0, 0]);
  pieces[1].failsAt = Number.POSITIVE_INFINITY;
  stage.settle();
  expect(deliveriesOf(C)).toBe(2);
});

attack('a member hands snapshots to its journal while it delivers', {}, ({ Stage }) => {
  const { stage, journalOf, readsJournal } = openedStage(Stage, 'replicas=3 clients=1', [], {
    sizes: { snapshotChunkBytes: 64 },
  });
  const [, B] = stage.group(0);
  const pieces = givesPieces(B, 4);
  const journal = journalOf(B);
  for (let i = 0; i < 5; i++) stage.send(0, [0], `m${i}`);
  stage.until(() => deliveriesOf(B) === 5);
  // No room at first.
  journal.roomWords = 10;
  journal.wantsSnapshot = true;
  stage.runFor(500);
  expect(journal.wantsSnapshot).toBe(true);
  expect(pieces.given).toBe(0);
  // Then the service fails half-way, again and again.
  journal.roomWords = Number.POSITIVE_INFINITY;
  stage.until(() => pieces.given === 8);
  expect(journal.snapshot).toBeUndefined();
  pieces.failsAt = Number.POSITIVE_INFINITY;
  stage.until(() => !journal.wantsSnapshot);
  const { nextToDeliver } = B.replica.member;
  for (let i = 0; i < 5; i++) stage.send(0, [0], `n${i}`);
  stage.until(() => journal.snapshot !== undefined && deliveriesOf(B) === 10);
  expect(indexOf(journal.snapshot!)).toBeLessThanOrEqual(nextToDeliver);
  const before = B.replica.takeSnapshot();
  stage.kill(B);
  readsJournal(B);
  stage.resume(B);
  expect(Buffer.from(B.replica.takeSnapshot().buffer)).toEqual(Buffer.from(before.buffer));
  stage.settle();
});
