/**
 * A journal that replaces a lost one begins with all that was decided before. Others still count on what the lost one had,
 * whatever the memory of a member shows that was kept.
 */
import { indexOf } from 'tram-multicast/internal/protocol/leadership/snapshot.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Stage } from '../../src/sim/stage.js';
import { attack } from './attack.js';
import type { FakeJournal } from './fake-journal.js';
import { deliveriesOf, hasState, openedStage } from './opened-stage.js';

const TOO_EARLY = /to be greater than or equal to/;
const PATIENT = { timing: { suspectAfterUs: 3000 } };

const MEMORIES = [
  ['kept', 'kill', 'resume'],
  ['lost', 'crashUnheard', 'restart'],
] as const;

/** The journal does not begin below this index. */
function doesNotBegin(stage: Stage, journal: FakeJournal, index: number): void {
  stage.hopeFor(() => journal.next > 0, 10_000);
  if (journal.next > 0) expect(journal.next).toBeGreaterThanOrEqual(index);
}

/** Once all links are there again, the journal begins, and not below this index. */
function beginsFrom(stage: Stage, journal: FakeJournal, index: number): void {
  stage.settle();
  stage.until(() => journal.snapshot !== undefined, 1_000_000);
  expect(indexOf(journal.snapshot!)).toBeGreaterThanOrEqual(index);
}

/** Neither of the two can reach the others. */
function separate(
  stage: Stage,
  hosts: readonly ReplicaHost[],
  others: readonly ReplicaHost[],
): void {
  for (const host of hosts) stage.hold(host, ...others);
  for (const other of others) stage.hold(other, ...hosts);
}

for (const [memory, end, again] of MEMORIES) {
  attack(
    `with ${memory} memory, a new journal begins with all that a lost one had`,
    { 'new-journal-begins-anywhere': /to be greater than or equal to/ },
    ({ Stage }) => {
      // 1. A and B have all messages durable, and C lags. So they are acknowledged. Before them, there was a mark.
      // 2. B ends and loses its journal. It begins again, fetches the state of C, and delivers the mark.
      //    Harm: the new journal begins with that. After a power cut, B and C are a quorum that lacks messages.
      const { stage, journalOf, losesJournal } = openedStage(Stage, 'replicas=3 clients=1');
      const [A, B, C] = stage.group(0);
      stage.send(0, [0], 'first');
      stage.until(() => [A, B, C].every((host) => deliveriesOf(host) === 1));
      stage.hold(A, C);
      journalOf(A).leaveOut();
      stage.until(() => B.replica.member.marks > 0);
      for (let i = 0; i < 5; i++) stage.send(0, [0], `m${i}`);
      stage.until(() => deliveriesOf(A) === 6 && deliveriesOf(B) === 6);
      const { nextToDeliver } = B.replica.member;
      stage[end](B);
      losesJournal(B);
      stage[again](B);
      stage.until(() => hasState(B));
      expect(deliveriesOf(C)).toBe(1);
      stage.until(() => journalOf(B).snapshot !== undefined);
      expect(indexOf(journalOf(B).snapshot!)).toBeGreaterThanOrEqual(nextToDeliver);
      stage.settle();
    },
  );
}

attack(
  'a new journal begins with all that another member of the group on its host had delivered',
  { 'kept-log-suffices': TOO_EARLY },
  ({ Stage }) => {
    // 1. A and C are on one host, and D leads. B has delivered only the first message. Then there was a mark, which A has in its
    //    log. A has nothing of what followed. Its host and D have that durable, so it is acknowledged. E holds it and hangs.
    // 2. A and C are killed, and their journal is lost. A resumes. It hears only from B and E, fetches the state of B, and delivers
    //    the mark.
    //    Harm: the new journal begins there. After a power cut, A, B and C are a quorum that lacks messages.
    const { stage, journalOf, losesJournal } = openedStage(Stage, 'replicas=5 clients=1', [], {
      ...PATIENT,
      hostOf: (participant) => (participant === 2 ? 0 : participant),
    });
    const [A, B, C, D, E] = stage.group(0);
    stage.lead(D);
    stage.send(0, [0], 'first');
    stage.until(() => [A, B, C, D, E].every((host) => deliveriesOf(host) === 1));
    stage.hold(D, B);
    journalOf(D).leaveOut();
    stage.until(() => [A, C, E].every(({ replica }) => replica.member.marks > 0));
    stage.hold(D, A);
    stage.world.pause(E);
    for (let i = 0; i < 5; i++) stage.send(0, [0], `m${i}`);
    stage.until(() => deliveriesOf(C) === 6);
    expect(deliveriesOf(A)).toBe(1);
    const { nextToDeliver } = C.replica.member;
    for (const member of [A, C]) stage.kill(member);
    losesJournal(A, C);
    separate(stage, [A], [C, D]);
    stage.resume(A);
    stage.until(() => A.replica.member.marks > 0);
    doesNotBegin(stage, journalOf(A), nextToDeliver);
    stage.resume(C);
    stage.world.resume(E);
    beginsFrom(stage, journalOf(A), nextToDeliver);
  },
);

attack(
  'a new journal begins with all that is decided, whatever a candidate has delivered of it',
  { 'candidate-told-decided': TOO_EARLY },
  ({ Stage }) => {
    // 1. D leads. B has delivered the first message, C also the mark after it, and the others all that followed.
    // 2. A is killed, loses its journal, and resumes. C campaigns, adopts the log of A, and installs it there. It does not lead
    //    yet, so it tells only what it has delivered itself. A fetches the state of B, and delivers the mark.
    //    Harm: the new journal begins there. After a power cut, A, B and C are a quorum that lacks messages.
    const { stage, journalOf, losesJournal } = openedStage(
      Stage,
      'replicas=5 clients=1',
      [],
      PATIENT,
    );
    const [A, B, C, D, E] = stage.group(0);
    stage.lead(D);
    stage.send(0, [0], 'first');
    stage.until(() => [A, B, C, D, E].every((host) => deliveriesOf(host) === 1));
    stage.hold(D, B);
    journalOf(D).leaveOut();
    stage.until(() => [A, C, E].every(({ replica }) => replica.member.marks > 0));
    stage.hold(D, C);
    for (let i = 0; i < 5; i++) stage.send(0, [0], `m${i}`);
    stage.until(() => [A, D, E].every((host) => deliveriesOf(host) === 6));
    const { nextToDeliver } = A.replica.member;
    stage.kill(A);
    losesJournal(A);
    separate(stage, [A, B, C], [D, E]);
    stage.hold(B, A);
    stage.resume(A);
    stage.campaign(C);
    stage.until(() => C.replica.takeover.phase === 'adopt');
    stage.hold(C, B);
    stage.until(() => A.replica.member.log.current()?.writer === C.replica.member.index);
    stage.release(B, A);
    stage.until(() => A.replica.member.marks > 0);
    expect(C.replica.role).toBe('candidate');
    expect(A.replica.member.nextToDeliver).toBeLessThan(nextToDeliver);
    doesNotBegin(stage, journalOf(A), nextToDeliver);
    beginsFrom(stage, journalOf(A), nextToDeliver);
  },
);

attack(
  'a new journal does not begin with the log of a leader that others follow no more',
  { 'any-new-log-suffices': TOO_EARLY },
  ({ Stage }) => {
    // 1. A and B are on one host. C leads, but not A. It decides a mark, and does not deliver it: its journal is full.
    // 2. B, D and E follow D. What it orders is durable on the host of B and on two others, so it is acknowledged. C does not know.
    // 3. A and B are killed, and their journal is lost. A resumes, and C is the only one that it hears from. C installs its log
    //    there. A fetches the state of C, and delivers the mark.
    //    Harm: the new journal begins there. After a power cut, A, B and C are a quorum that lacks messages.
    const { stage, journalOf, losesJournal } = openedStage(Stage, 'replicas=5 clients=1', [], {
      ...PATIENT,
      hostOf: (participant) => Math.max(participant, 1),
    });
    const [A, B, C, D, E] = stage.group(0);
    stage.send(0, [0], 'first');
    stage.until(() => [A, B, C, D, E].every((host) => deliveriesOf(host) === 1));
    separate(stage, [A], [B, C, D, E]);
    stage.lead(C);
    journalOf(C).roomWords = 0;
    journalOf(E).leaveOut();
    stage.until(() => [B, D, E].every(({ replica }) => replica.member.marks > 0));
    expect(C.replica.member.marks).toBe(0);
    separate(stage, [C], [B, D, E]);
    stage.hold(stage.world.clients[0], C);
    stage.lead(D);
    for (let i = 0; i < 5; i++) stage.send(0, [0], `m${i}`);
    stage.until(() => [B, D, E].every((host) => deliveriesOf(host) === 6));
    const { nextToDeliver } = B.replica.member;
    for (const member of [A, B]) stage.kill(member);
    losesJournal(A, B);
    stage.release(A, C);
    stage.release(C, A);
    stage.resume(A);
    stage.until(() => A.replica.member.marks > 0);
    doesNotBegin(stage, journalOf(A), nextToDeliver);
    journalOf(C).roomWords = Number.POSITIVE_INFINITY;
    stage.resume(B);
    beginsFrom(stage, journalOf(A), nextToDeliver);
  },
);
