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
