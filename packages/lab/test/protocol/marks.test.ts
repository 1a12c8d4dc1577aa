/**
 * Journals that have left entries out go on from snapshots right after marks, which fit together in all groups. So a group and
 * its parent do not wait for each other.
 */
import { expect } from 'vitest';
import { attack, STUCK } from './attack.js';
import { durableStage } from './durable-stage.js';

const TREE = 'groups=2 tree=-1,0 replicas=3 clients=1';
const TIMING = { timing: { suspectAfterUs: 2000 } };
const HARM = /expected .+ to/;

attack(
  'a journal that has left entries out gets a mark, wherever it is in the tree',
  { 'marks-not-passed-up': STUCK },
  ({ Stage }) => {
    // 1. In the child, one member is down. The two others deliver m, and one of them leaves it out of its journal.
    // 2. It waits for a mark, which only the leader of the root proposes.
    //    Harm: that one does not know of it, and m is never recoverable.
    const { stage, journalOf, answers, deliveries, settle } = durableStage(Stage, TREE, TIMING);
    const parents = stage.group(0);
    const [A, B, C] = stage.group(1);
    stage.crashUnheard(C);
    for (const member of [...parents, A]) journalOf(member).isFast = true;
    stage.send(0, [0, 1], 'm');
    stage.until(() => deliveries(A) === 1 && deliveries(B) === 1);
    journalOf(B).leaveOut();
    stage.until(() => answers() === 2);
    stage.restart(C);
    settle();
  },
);

attack(
  'a journal that the quorum needs takes a snapshot at a mark, although its disk is busy',
  { 'busy-disk-never-begins': STUCK },
  ({ Stage }) => {
    // 1. C is down, and B leaves m out of its journal.
    // 2. The disk of B stays busy: it has other groups.
    //    Harm: B waits until it is idle, and m is never durable at f+1 members.
    const { stage, journalOf, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
      TIMING,
    );
    const [A, B, C] = stage.group(0);
    stage.crashUnheard(C);
    journalOf(A).isFast = true;
    journalOf(B).isBusy = true;
    stage.send(0, [0], 'm');
    stage.until(() => deliveries(A) === 1 && deliveries(B) === 1);
    journalOf(B).leaveOut();
    stage.until(() => answers() === 1);
    stage.restart(C);
    settle();
  },
);

attack(
  'a parent and a child whose journals have left entries out do not wait for each other',
  { 'marks-not-completed': STUCK },
  ({ Stage }) => {
    // 1. In both groups, one member is down, and one of the two others leaves m out of its journal.
    // 2. The snapshot of the parent is not stable before m is durable in the child, and that of the child not before m is
    //    recoverable in the parent.
    //    Harm: they wait for each other.
    const { stage, journalOf, answers, deliveries, settle } = durableStage(Stage, TREE, TIMING);
    const groups = [stage.group(0), stage.group(1)];
    for (const [A, , C] of groups) {
      stage.crashUnheard(C);
      journalOf(A).isFast = true;
    }
    stage.send(0, [0, 1], 'm');
    stage.until(() => groups.every(([A, B]) => deliveries(A) === 1 && deliveries(B) === 1));
    for (const [, B] of groups) journalOf(B).leaveOut();
    stage.until(() => answers() === 2);
    for (const [, , C] of groups) stage.restart(C);
    settle();
  },
);

attack(
  'a new leader proposes no mark while its log has one that it has not delivered',
  { 'adopted-mark-overlooked': /marks come in the order of their numbers/ },
  ({ Stage }) => {
    // 1. The journal of B waits for a mark. A proposes one. B has the entry, but does not know that it is decided.
    // 2. B leads, and adopts the mark.
    //    Harm: before it delivers the mark, B proposes another one with the same number.
    const { stage, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
      TIMING,
    );
    const [A, B, C] = stage.group(0);
    for (const member of [A, C]) journalOf(member).isFast = true;
    stage.send(0, [0], 'm');
    stage.until(() => [A, B, C].every((member) => deliveries(member) === 1));
    const { replication } = A.replica;
    const { decided } = replication;
    stage.hold(A, C);
    journalOf(B).leaveOut();
    stage.until(() => replication.decided > decided);
    stage.hold(A, B);
    expect(B.replica.member.marks).toBe(0);
    stage.lead(B);
    stage.until(() => B.replica.member.marks === 1);
    stage.release(A, B, C);
    settle();
  },
);

attack(
  'a snapshot at a mark counts only once f+1 members of every group hold the mark',
  { 'mark-held-by-one': HARM, 'mark-without-children': HARM },
  ({ Stage }) => {
    // 1. The journal of B, in the parent, has left m out, and takes a snapshot at a mark. In the child, only D has the mark
    //    durable.
    //    Harm: the snapshot counts, and replaces m. Only D still has it.
    const { stage, journalOf, deliveries, settle } = durableStage(Stage, TREE, TIMING);
    const [A, B, C] = stage.group(0);
    const [D, E, F] = stage.group(1);
    for (const member of [A, C, D]) journalOf(member).isFast = true;
    stage.send(0, [0, 1], 'm');
    stage.until(() => deliveries(B) === 1 && [D, E, F].every((member) => deliveries(member) === 1));
    journalOf(B).leaveOut();
    stage.until(() => !journalOf(B).wantsMark);
    stage.hopeFor(() => !journalOf(B).awaitsMark, 30_000);
    expect(journalOf(B).awaitsMark).toBe(true);
    settle();
    expect(journalOf(B).awaitsMark).toBe(false);
  },
);

attack(
  'a mark is complete only if every group can give the state right after this one',
  { 'mark-held-roughly': HARM },
  ({ Stage }) => {
    // 1. The journals of the parent leave entries out. They take snapshots at mark 1, and nothing after it gets durable.
    // 2. Those of the child leave entries out later, and take snapshots at mark 3.
    //    Harm: mark 1 or 2 is called complete. After a power cut, no mark is common to both groups.
    const { stage, journalOf, settle } = durableStage(Stage, TREE, { isAwaited: false, ...TIMING });
    const parents = stage.world.members(0);
    const children = stage.world.members(1);
    for (const member of parents) journalOf(member).leaveOut();
    stage.send(0, [0, 1], 'm');
    stage.until(() => parents.every((member) => journalOf(member).leaptMark > 0));
    stage.send(0, [0, 1], 'n');
    stage.until(() => children.every(({ replica }) => replica.member.marks >= 2), 100_000);
    for (const member of children) journalOf(member).leaveOut();
    const complete = () => Math.max(...parents.map(({ replica }) => replica.member.completeMark));
    stage.hopeFor(() => complete() > 0, 100_000);
    expect(complete()).toBe(0);
    settle();
    stage.until(() => complete() >= 3, 1_000_000);
  },
);

attack(
  'a snapshot at a mark is the state right after it, although messages follow',
  { 'snapshot-behind-mark': HARM, 'leaps-without-mark': /expected|nothing more/ },
  ({ Stage }) => {
    // Harm: the snapshot has effects of messages that other groups lack after a power cut.
    const { stage, journalOf, settle } = durableStage(Stage, 'groups=1 replicas=3 clients=2', {
      isAwaited: false,
      ...TIMING,
    });
    const [A, B] = stage.group(0);
    const stop = stage.flood(0, [0], 'flood');
    const snapshots = new Map<number, number>();
    while (snapshots.size < 5) {
      journalOf(B).leaveOut();
      stage.until(() => !journalOf(B).wantsMark, 100_000);
      const { leaptMark, leapt } = journalOf(B);
      snapshots.set(leaptMark, leapt);
    }
    stop();
    settle();
    for (const [mark, index] of snapshots) expect(index).toBe(journalOf(A).markedAt.get(mark));
  },
);

attack(
  'a member that is ahead of the journal on its host takes no snapshot that leaves a gap',
  { 'snapshot-ahead': /leaves a gap/ },
  ({ Stage }) => {
    // 1. B and C share a journal, which has left entries out. C delivers a mark while there is no room for a snapshot.
    // 2. B, which is behind C, takes the snapshot at that mark, and hands over the entries from there on.
    // 3. The journal has grown, and wants a snapshot of any state.
    //    Harm: it gets that of C, and lacks the entries before it. No mark helps. If the same happens in another group, the two
    //    snapshots wait for each other.
    const { stage, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
      {
        isAwaited: false,
        hostOf: (participant) => Math.min(participant, 1),
        sizes: { snapshotChunkBytes: 16_384 },
      },
    );
    const [A, B, C] = stage.group(0);
    stage.lead(A);
    const journal = journalOf(C);
    expect(journalOf(B)).toBe(journal);
    stage.world.pause(B);
    // At the first mark, C takes no snapshot.
    journal.isBusy = true;
    journal.leaveOut();
    stage.send(0, [0], 'm');
    stage.until(() => deliveries(C) === 1 && C.replica.member.marks === 1, 100_000);
    stage.runFor(1000);
    stage.hold(A, B);
    stage.send(0, [0], 'n');
    stage.until(() => deliveries(C) === 2);
    journal.isBusy = false;
    stage.world.resume(B);
    stage.until(() => journal.snapshot !== undefined);
    expect(journal.next).toBeLessThan(C.replica.member.nextToDeliver);
    stage.world.pause(B);
    journal.wantsSnapshot = true;
    stage.runFor(1000);
    expect(journal.wantsSnapshot).toBe(true);
    stage.release(A, B);
    stage.world.resume(B);
    stage.until(() => !journal.wantsSnapshot, 100_000);
    settle();
  },
);

attack(
  'marks wait for slow disks, however soon members are suspected',
  { 'marks-impatient': HARM },
  ({ Stage }) => {
    // 1. In both groups, one member is down, and one of the two others leaves m out of its journal.
    // 2. Disks sync rarely, one after the other.
    //    Harm: the next mark comes in between. When one of the disks holds the last mark, the other one never does.
    const { stage, journalOf, sync, deliveries, settle } = durableStage(Stage, TREE, {
      isAwaited: false,
      timing: { suspectAfterUs: 1000 },
    });
    const groups = [stage.group(0), stage.group(1)];
    for (const [, , C] of groups) stage.crashUnheard(C);
    stage.send(0, [0, 1], 'm');
    stage.until(() => groups.every(([A, B]) => deliveries(A) === 1 && deliveries(B) === 1));
    for (const [, B] of groups) journalOf(B).leaveOut();
    const areWaiting = () => groups.some(([, B]) => journalOf(B).awaitsMark);
    for (let i = 0; i < 10 && areWaiting(); i++) {
      for (const place of [0, 1]) {
        sync(...groups.map((members) => members[place]));
        stage.runFor(150_000);
      }
    }
    expect(areWaiting()).toBe(false);
    for (const [, , C] of groups) stage.restart(C);
    settle();
  },
);
