/** Mutations that break the rules of quick steps: what they may leave out, for how long, and when a step must be full. */
import { FOLLOWER, LEADER, REPLICA, REPLICATION } from './files.js';
import type { Mutation } from './mutation.js';

export const QUICK_STEPS: Readonly<Record<string, Mutation>> = {
  'never-full': {
    title: 'a leader takes quick steps only, as long as nothing but messages comes',
    caughtBy: { seed: 24, as: 'availability' },
    edits: [
      {
        file: REPLICA,
        find: 'return Math.min(nowUs + quickUs, this.rows.dueUs);',
        replace: 'return Number.POSITIVE_INFINITY;',
      },
    ],
  },
  'put-off-for-ever': {
    title: 'a leader puts off full steps as long as it finds messages',
    caughtBy: { script: 'quick-steps' },
    edits: [
      {
        file: REPLICA,
        find: 'this.quickStepsLeft > 0 && nowUs < this.rows.dueUs',
        replace: 'this.fullDueUs > 0',
      },
    ],
  },
  'quick-despite-mail': {
    title: 'a member does not look at requests before its next full step is due',
    caughtBy: { script: 'quick-steps' },
    edits: [{ file: REPLICA, find: ' || this.member.isNotified', replace: '' }],
  },
  'quick-despite-end': {
    title: 'a member does not notice that its leader has ended before its next full step is due',
    caughtBy: { script: 'quick-steps' },
    edits: [
      {
        file: FOLLOWER,
        find: '!member.edges.memory.hasEnded(member.participantOf(member.promisedMember))',
        replace: 'true',
      },
    ],
  },
  'quick-though-pressed': {
    title: 'a leader does not drop entries from a full log before its next full step is due',
    caughtBy: { script: 'quick-steps' },
    edits: [{ file: LEADER, find: '!this.logIsFull && !this.isPressed()', replace: 'true' }],
  },
  'quick-though-behind': {
    title: 'a member does not notice that it was left behind before its next full step is due',
    caughtBy: { script: 'quick-steps' },
    edits: [
      {
        file: FOLLOWER,
        find: 'member.nextToDeliver < decided ? NEEDS_MORE : count',
        replace: 'count',
      },
    ],
  },
  'decided-never-due': {
    title: 'the host of a leader does not know when the leader has to tell what is decided',
    caughtBy: { script: 'quick-steps' },
    edits: [{ file: REPLICA, find: 'this.replication.owesDecided ||', replace: '' }],
  },
  'room-never-due': {
    title:
      'the host of a leader does not know that messages which found no room in the log have some now',
    caughtBy: { script: 'quick-steps' },
    edits: [{ file: REPLICA, find: 'if (this.leader.hasMadeRoom)', replace: 'if (false)' }],
  },
  'quorum-waited-for': {
    title:
      'in a quick step, a leader that does not know at once that a quorum holds its entries waits for those members alone',
    caughtBy: { script: 'quick-steps' },
    edits: [{ file: REPLICATION, find: 'return this.sendAll(true);', replace: 'return 1;' }],
  },
  'late-copies-forgotten': {
    title: 'a full step does not send the entries that quick steps have not sent to all members',
    caughtBy: { seed: 4, as: 'assertion', options: { memory: 'shared' } },
    edits: [
      {
        file: LEADER,
        find: 'isQuick ? replication.sendToQuorum() : replication.sendAll()',
        replace: 'replication.sendToQuorum()',
      },
    ],
  },
  'own-decided-put-off': {
    title: 'a quick step does not note in the own log of the leader what is decided',
    caughtBy: { script: 'quick-steps' },
    edits: [
      { file: LEADER, find: 'this.replication.keepDecided();', replace: '' },
      {
        file: LEADER,
        find: 'const told = replication.publishDecided();',
        replace: 'replication.keepDecided();\n const told = replication.publishDecided();',
      },
    ],
  },
};
