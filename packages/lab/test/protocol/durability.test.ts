/**
 * With `durability: 'always'`, a leader holds a reply until its entry is recoverable. With any journal, a slow disk holds up
 * its group only while the quorum needs it, and entries become stable once nobody needs them any more.
 */
import { DURABLE, FEED_GATES, SETTLED } from 'tram-multicast/internal/protocol/layout.js';
import { SlotWriter } from 'tram-multicast/internal/protocol/leadership/slots.js';
import { writeWide } from 'tram-multicast/internal/protocol/wide.js';
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import { attack, STUCK } from './attack.js';
import { durableStage } from './durable-stage.js';

/** What the script expects, and what it finds with a mutation. */
const HARM = /expected .+ to be/;

attack(
  'a reply waits until f+1 members have its entry durable',
  { 'not-awaited': HARM, 'durable-at-one': HARM },
  ({ Stage }) => {
    const { stage, sync, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
    );
    const [A, B, C] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => [A, B, C].every((member) => deliveries(member) === 1));
    sync(A);
    stage.hopeFor(() => answers() > 0);
    expect(answers()).toBe(0);
    sync(C);
    stage.until(() => answers() === 1);
    settle();
  },
);

/** A member that still runs in an earlier era writes an index of that to a slot of another one. */
function tellOldIndex(from: ReplicaHost, to: ReplicaHost, at: number, words: number): void {
  const writer = new SlotWriter(words);
  for (let word = 0; word < words; word += 2) writeWide(writer.body, word, 1000);
  const incarnation = from.replica.member.incarnation + 1000;
  writer.post(from.memory, to.participant, at, words, incarnation, 1);
}

attack(
  'what a member tells that still runs in an earlier era does not count',
  { 'durable-of-any-era': HARM, 'gates-of-any-era': HARM },
  ({ Stage }) => {
    // 1. The hosts of the leaders wait for the next era. B still runs in the last one, and writes to their memory how far
    //    its journal is durable, and how far its log is recoverable.
    // 2. The next era begins, without B. Its indices start again.
    //    Harm: its leaders take these indices for those of the new era, and reply too early.
    const { stage, sync, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=1',
    );
    const { layout } = stage.world;
    const parents = stage.world.members(0);
    const children = stage.world.members(1);
    const [A, B, C] = parents;
    for (const to of parents) tellOldIndex(B, to, layout.durable(1), DURABLE.words);
    for (const to of children) tellOldIndex(B, to, layout.feedGates(1), FEED_GATES.words);
    stage.world.pause(B);
    stage.group(0);
    stage.group(1);
    stage.send(0, [0, 1], 'm');
    stage.until(() => [A, C, ...children].every((member) => deliveries(member) === 1));
    sync(A, ...children);
    stage.hopeFor(() => answers() > 0);
    expect(answers()).toBe(0);
    sync(C);
    stage.until(() => answers() === 2);
    stage.world.resume(B);
    settle();
  },
);

attack(
  'nor does what it tells of the order of its group',
  { 'settled-of-any-era': HARM },
  ({ Stage }) => {
    // Harm: the parent takes an index of the last era for what is settled in its child, and replies too early.
    const { stage, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=1 order=strict',
      { isAwaited: false },
    );
    const { layout } = stage.world;
    const [, follower] = stage.world.members(1);
    for (const to of stage.world.members(0)) {
      tellOldIndex(follower, to, layout.settled(1, 1), SETTLED.words);
    }
    const [A, ...followers] = stage.group(0);
    const children = stage.group(1);
    stage.hold(A, ...children);
    stage.send(0, [0, 1], 'm');
    stage.until(() => [A, ...followers].every((member) => deliveries(member) === 1));
    stage.hopeFor(() => answers() > 0);
    expect(answers()).toBe(0);
    stage.release(A, ...children);
    stage.until(() => answers() === 2);
    settle();
  },
);

attack('the leader need not be one of them', {}, ({ Stage }) => {
  const { stage, sync, answers, deliveries, settle } = durableStage(
    Stage,
    'groups=1 replicas=3 clients=1',
  );
  const [A, B, C] = stage.group(0);
  stage.send(0, [0], 'm');
  stage.until(() => [A, B, C].every((member) => deliveries(member) === 1));
  sync(B, C);
  stage.until(() => answers() === 1);
  settle();
});

attack('with everySecond, no reply waits', {}, ({ Stage }) => {
  const { stage, answers, settle } = durableStage(Stage, 'groups=1 replicas=3 clients=1', {
    isAwaited: false,
  });
  stage.group(0);
  stage.send(0, [0], 'm');
  stage.until(() => answers() === 1);
  settle();
});

attack(
  "a child's reply waits until the parent can recover the message",
  { 'durable-is-recoverable': HARM },
  ({ Stage }) => {
    // 1. m goes from the parent to the child. It is durable in the child, and not in the parent.
    // 2. So is n behind it, which came to the child alone.
    //    Harm: the child replies. After a power cut the parent lacks m, and the child loses m and n.
    const { stage, sync, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=2',
    );
    const parents = stage.group(0);
    const children = stage.group(1);
    stage.send(0, [0, 1], 'm');
    stage.until(() => children.every((member) => deliveries(member) === 1));
    stage.send(1, [1], 'n');
    stage.until(() => children.every((member) => deliveries(member) === 2));
    sync(...children);
    stage.hopeFor(() => answers() > 0);
    expect(answers()).toBe(0);
    sync(parents[1], parents[2]);
    stage.until(() => answers() === 3);
    settle();
  },
);

attack('with strict order, a reply waits for both', {}, ({ Stage }) => {
  const { stage, sync, answers, deliveries, settle } = durableStage(
    Stage,
    'groups=3 tree=-1,0,0 replicas=3 clients=1 order=strict',
  );
  const [A] = stage.group(0);
  const first = stage.group(1);
  const second = stage.group(2);
  stage.hold(A, ...second);
  stage.send(0, [1, 2], 'm');
  stage.until(() => first.every((member) => deliveries(member) === 1));
  sync(...stage.world.replicas);
  stage.hopeFor(() => answers() > 0);
  expect(answers()).toBe(0);
  stage.release(A, ...second);
  stage.until(() => second.every((member) => deliveries(member) === 1));
  stage.hopeFor(() => answers() > 1);
  expect(answers()).toBe(1);
  sync(...second);
  stage.until(() => answers() === 2);
  settle();
});

attack(
  'a new leader holds replies until it knows what is durable',
  { 'not-awaited': HARM },
  ({ Stage }) => {
    // 1. A delivers m, and so do B and C. Only A has it durable.
    // 2. A crashes, and B leads. B does not know of any durable entry.
    //    Harm: B replies to m before another member has it durable; or B never replies.
    const { stage, sync, answers, deliveries, settle, journalOf } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
      { timing: { resendAfterUs: 100_000 } },
    );
    const [A, B, C] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => [A, B, C].every((member) => deliveries(member) === 1));
    journalOf(A).sync();
    stage.crashUnheard(A);
    stage.lead(B);
    stage.hopeFor(() => answers() > 0);
    expect(answers()).toBe(0);
    sync(B, C);
    stage.until(() => answers() === 1);
    settle();
  },
);

attack(
  'a durable index that was lost on its way is found in the row',
  { 'durable-not-in-rows': STUCK },
  ({ Stage }) => {
    const { stage, sync, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
    );
    const [A, B, C] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => [A, B, C].every((member) => deliveries(member) === 1));
    stage.hold(B, A);
    sync(A, B);
    stage.until(() => answers() === 1);
    settle();
  },
);

attack(
  'a new leader of a child waits for what the parent can recover',
  { 'base-is-gate': HARM },
  ({ Stage }) => {
    // 1. C and its followers deliver m from the parent, and then so much that the log of C drops m. All of it is durable in
    //    the child, and nothing in the parent.
    // 2. C crashes, and D leads. Its log begins behind m.
    //    Harm: D takes the base of its log for recoverable, and replies to m.
    const { stage, sync, journalOf, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=2',
      { sizes: { logBytes: 0 } },
    );
    const parents = stage.group(0);
    const [C, D, E] = stage.group(1);
    for (const member of [D, E]) journalOf(member).isFast = true;
    stage.send(0, [0, 1], 'm');
    stage.until(() => deliveries(D) === 1);
    for (let i = 0; i < 8; i++) stage.send(1, [1], 'one more');
    stage.until(() => deliveries(D) === 9 && deliveries(E) === 9);
    expect(C.replica.replication.baseIndex).toBeGreaterThan(0);
    stage.crashUnheard(C);
    stage.lead(D);
    stage.hopeFor(() => answers() > 0);
    expect(answers()).toBe(0);
    sync(...parents);
    stage.until(() => answers() === 10);
    settle();
  },
);

attack(
  'a member whose journal is full delivers on if the quorum can do without it',
  { 'full-journal-stops-all': STUCK },
  ({ Stage }) => {
    // Harm: the slow disk of the leader holds up its group.
    const { stage, journalOf, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
    );
    const [A, B, C] = stage.group(0);
    journalOf(A).roomWords = 0;
    journalOf(A).isBusy = true;
    for (const member of [B, C]) journalOf(member).isFast = true;
    stage.send(0, [0], 'm');
    stage.until(() => answers() === 1);
    expect(deliveries(A)).toBe(1);
    expect(journalOf(A).wantsMark).toBe(true);
    expect(journalOf(A).next).toBe(0);
    settle();
  },
);

attack(
  'a member whose journal is full waits as long as the quorum needs it',
  { 'full-journal-stops-none': HARM },
  ({ Stage }) => {
    // Harm: A leaves m out of its journal. C is down, so m can never be durable at f+1 members.
    const { stage, journalOf, answers, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
    );
    const [A, B, C] = stage.group(0);
    stage.crashUnheard(C);
    journalOf(A).roomWords = 0;
    journalOf(B).isFast = true;
    stage.send(0, [0], 'm');
    stage.until(() => deliveries(B) === 1);
    stage.hopeFor(() => deliveries(A) > 0);
    expect(deliveries(A)).toBe(0);
    expect(A.replica.role).toBe('leader');
    journalOf(A).roomWords = Number.POSITIVE_INFINITY;
    journalOf(A).isFast = true;
    stage.until(() => answers() === 1);
    stage.restart(C);
    settle();
  },
);

attack(
  'a member that lags behind the journal of its host delivers what that has, without room for more',
  { 'kept-and-new-together': /without room/ },
  ({ Stage }) => {
    // 1. B and C share a host. C pauses, and B hands m to the journal, which is full then.
    // 2. n is decided, and the quorum needs it in that journal: B waits.
    // 3. C goes on. For m there need be no room.
    //    Harm: C hands over n with m, and there is no room for it.
    const { stage, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
      { hostOf: (participant) => Math.min(participant, 1) },
    );
    const [A, B, C] = stage.group(0);
    stage.lead(A);
    const journal = journalOf(C);
    expect(journalOf(B)).toBe(journal);
    stage.world.pause(C);
    stage.send(0, [0], 'm');
    stage.until(() => deliveries(B) === 1);
    journal.roomWords = 0;
    stage.send(0, [0], 'n');
    stage.until(() => deliveries(A) === 2);
    stage.world.resume(C);
    stage.until(() => deliveries(C) === 1);
    stage.hopeFor(() => deliveries(C) > 1 || deliveries(B) > 1);
    expect([deliveries(B), deliveries(C)]).toEqual([1, 1]);
    settle();
  },
);

attack(
  'a full log does not drop what its leader has not delivered',
  { 'drops-undelivered': /a leader delivers every decided entry/ },
  ({ Stage }) => {
    // 1. The journal of A is full, and the quorum needs it: C has no disk that works.
    // 2. B and C deliver, until the log of A is full.
    //    Harm: A drops entries that it has not delivered itself.
    const { stage, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=1 replicas=3 clients=1',
      { isAwaited: false, sizes: { logBytes: 0 } },
    );
    const [A, B] = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => deliveries(A) === 1);
    journalOf(A).roomWords = 0;
    journalOf(B).isFast = true;
    const stop = stage.flood(0, [0], 'one more');
    stage.runFor(20_000);
    stop();
    expect(deliveries(A)).toBe(1);
    expect(deliveries(B)).toBeGreaterThan(1);
    settle();
  },
);

attack(
  'entries are stable only once they are durable in the child',
  { 'stable-before-children': HARM },
  ({ Stage }) => {
    const { stage, sync, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=1',
      { timing: { suspectAfterUs: 2000 } },
    );
    const parents = stage.group(0);
    const children = stage.group(1);
    const stable = () => journalOf(parents[0]).stableIndex;
    stage.send(0, [0], 'k');
    stage.until(() => parents.every((member) => deliveries(member) === 1));
    const m = parents[0].replica.member.nextToDeliver;
    stage.send(0, [0, 1], 'm');
    stage.until(() => children.every((member) => deliveries(member) === 1));
    sync(...parents);
    stage.hopeFor(() => stable() > m, 10_000);
    expect(stable()).toBeLessThanOrEqual(m);
    sync(children[0], children[2]);
    stage.until(() => parents.every((member) => journalOf(member).stableIndex > m));
    settle();
  },
);

attack(
  'entries from the parent are stable only once the parent can recover them',
  { 'stable-before-parent': HARM },
  ({ Stage }) => {
    const { stage, sync, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=1',
      { timing: { suspectAfterUs: 2000 } },
    );
    const parents = stage.group(0);
    const children = stage.group(1);
    stage.send(0, [0, 1], 'm');
    stage.until(() => children.every((member) => deliveries(member) === 1));
    sync(...children);
    stage.hopeFor(() => journalOf(children[0]).stableIndex > 0, 10_000);
    expect(journalOf(children[0]).stableIndex).toBe(0);
    sync(...parents);
    stage.until(() => journalOf(children[0]).stableIndex > 0);
    settle();
  },
);

attack(
  'a child tells its parent of durable entries that it has dropped',
  { 'dropped-not-counted': STUCK },
  ({ Stage }) => {
    // 1. The child delivers m from the parent, and then so much that its log drops m. Nothing is durable.
    // 2. All of it but the last entry is durable.
    //    Harm: the child does not know any more that m was among it, and in the parent m is never stable.
    const { stage, sync, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=2',
      { isAwaited: false, sizes: { logBytes: 0 }, timing: { suspectAfterUs: 5000 } },
    );
    const parents = stage.group(0);
    const children = stage.group(1);
    stage.send(0, [0, 1], 'm');
    stage.until(() => children.every((member) => deliveries(member) === 1));
    for (let i = 2; i < 10; i++) {
      stage.send(1, [1], 'one more');
      stage.until(() => children.every((member) => deliveries(member) === i));
    }
    expect(children[0].replica.replication.baseIndex).toBeGreaterThan(0);
    sync(...parents);
    for (const child of children) journalOf(child).sync(journalOf(child).next - 1);
    stage.until(() => journalOf(parents[0]).stableIndex > 0);
    settle();
  },
);

attack(
  'a leader that has restored a snapshot knows what has gone to its children',
  { 'sent-not-restored': HARM },
  ({ Stage }) => {
    // 1. m goes to the child, where it is not durable. The log of the parent drops m.
    // 2. C comes back, restores a snapshot, and leads the parent.
    //    Harm: C takes m for stable, because it does not know that m went to the child.
    const { stage, sync, journalOf, deliveries, settle } = durableStage(
      Stage,
      'groups=2 tree=-1,0 replicas=3 clients=2',
      { isAwaited: false, sizes: { logBytes: 0 }, pace: { backlogBytesMax: 0 } },
    );
    const [A, B, C] = stage.group(0);
    const children = stage.group(1);
    stage.crashUnheard(C);
    stage.send(0, [0, 1], 'm');
    stage.until(() => children.every((member) => deliveries(member) === 1));
    for (let i = 2; i < 10; i++) {
      stage.send(1, [0], 'one more');
      stage.until(() => deliveries(A) === i && deliveries(B) === i);
    }
    expect(A.replica.replication.baseIndex).toBeGreaterThan(0);
    stage.restart(C);
    stage.until(() => deliveries(C) === 9);
    stage.lead(C);
    const stable = () => journalOf(B).stableIndex;
    stage.hopeFor(() => stable() > 0, 50_000);
    expect(stable()).toBe(0);
    sync(...children);
    stage.until(() => stable() > 0, 100_000);
    settle();
  },
);

attack(
  'all members learn which entries are stable, so that snapshots in their journals count',
  { 'stable-not-heard': STUCK },
  ({ Stage }) => {
    const { stage, journalOf, settle } = durableStage(Stage, 'groups=1 replicas=3 clients=1');
    const members = stage.group(0);
    stage.send(0, [0], 'm');
    stage.until(() => members.every((member) => journalOf(member).stableIndex > 0));
    settle();
  },
);
