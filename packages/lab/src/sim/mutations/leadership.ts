/** Mutations that break the rules of leadership: who campaigns, and how a member takes over. */
import {
  ADOPTION,
  KEY,
  MEMBER,
  REPLICA,
  REPLICATION,
  ROW,
  ROWS,
  SUSPICION,
  TAKEOVER,
} from './files.js';
import type { Mutation } from './mutation.js';

/** Suspicion of members, and the right to campaign. */
const CAMPAIGNING: Readonly<Record<string, Mutation>> = {
  'campaigns-against-followed': {
    title: 'a member campaigns although enough others report that they hear the leader',
    caughtBy: { script: 'suspicion' },
    edits: [{ file: SUSPICION, find: '!hasEnded && this.isFollowed(ballot)', replace: 'false' }],
  },
  'campaigns-alone': {
    title: 'a member campaigns although it hears from too few members to lead',
    caughtBy: { script: 'suspicion' },
    edits: [
      { file: SUSPICION, find: 'this.countHeard(true) >= this.member.quorum', replace: 'true' },
    ],
  },
  'waits-for-patient': {
    title: 'a patient member does not give up a leader that the others no longer trust',
    caughtBy: { script: 'suspicion' },
    edits: [{ file: SUSPICION, find: '!this.isGivenUp(member)', replace: 'true' }],
  },
  'waits-for-lonely': {
    title: 'members wait for a leader that hears from too few members to lead',
    caughtBy: { script: 'suspicion' },
    edits: [
      { file: SUSPICION, find: '!this.monitors[member].isAlone(this.nowUs)', replace: 'true' },
    ],
  },
  'tells-its-patience': {
    title: 'a member reports that it hears the leader as long as it does not suspect it',
    caughtBy: { script: 'suspicion' },
    edits: [
      {
        file: SUSPICION,
        find: 'return this.monitors[owner].isBeating(this.nowUs)',
        replace: 'return true',
      },
    ],
  },
  'first-before-highest': {
    title: 'members trust the first member, not the owner of the highest ballot that is pursued',
    caughtBy: { script: 'lateness' },
    edits: [
      { file: SUSPICION, find: 'promised > highest && this.isTaken(promised)', replace: 'false' },
    ],
  },
  'forgets-request': {
    title: 'a member that grants a ballot does not remember that its owner pursues it',
    caughtBy: { script: 'lateness' },
    edits: [{ file: ROW, find: 'this.promised = Math.max(this.promised, ballot);', replace: ';' }],
  },
  'row-reads-pile-up': {
    title: 'whenever a row was read, an urgent read follows, although others are under way',
    caughtBy: { seed: 317, as: 'liveness' },
    edits: [
      {
        file: ROWS,
        find: 'Math.max(0, peer.readsUnderWay - 1)',
        replace: '0',
      },
    ],
  },
  'lateness-excuses-all': {
    title: 'a member that is late with every step never suspects another member',
    caughtBy: { seed: 50, as: 'liveness' },
    edits: [
      {
        file: SUSPICION,
        find: 'nowUs - this.nowUs - this.member.edges.timing.restUs',
        replace: 'nowUs - this.nowUs',
      },
    ],
  },
  'resumes-impatiently': {
    title: 'a member that resumes campaigns before it has heard from any other member',
    caughtBy: { script: 'resume' },
    edits: [
      {
        file: REPLICA,
        find: 'this.follower.backOff(nowUs);\n        }\n        rows.publish();',
        replace: '}\n rows.publish();',
      },
    ],
  },
};

/** Promises, grants, and the log that a new leader adopts and installs. */
const TAKING_OVER: Readonly<Record<string, Mutation>> = {
  'permits-before-storing': {
    title: 'a member changes its permission before it stores its promise',
    caughtBy: { script: 'resume' },
    edits: [
      {
        file: MEMBER,
        find: 'this.kept.promised = ballot;',
        replace: 'this.edges.memory.permit(this.key);\n this.kept.promised = ballot;',
      },
    ],
  },
  'waits-for-dead-source': {
    title: 'a candidate waits for a log whose owner has restarted',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: TAKEOVER,
        find: "this.phase === 'adopt' && !this.sourceIsCurrent()",
        replace: 'false',
      },
    ],
  },
  'never-asks-next-incarnation': {
    title: 'a candidate does not ask a granter again when the granter has restarted',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: TAKEOVER,
        find: 'this.rows.peer(other).incarnation <= grant.incarnation',
        replace: 'true',
      },
    ],
  },
  'taken-ballot-kept': {
    title: 'a leader keeps its ballot although a member that had promised it now refuses it',
    caughtBy: { seed: 416, as: 'liveness' },
    edits: [{ file: TAKEOVER, find: 'this.ballotIsTaken = true;', replace: ';' }],
  },
  'unreachable-ballot-kept': {
    title: 'a candidate keeps a ballot under which it can no longer write to a member',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: TAKEOVER,
        find: 'isNews && incarnation === grant.incarnation && promised === this.ballot',
        replace: 'false',
      },
    ],
  },
  'installs-twice': {
    title: 'a leader installs its log twice at one incarnation of a member under one ballot',
    caughtBy: { seed: 478, as: 'liveness' },
    edits: [{ file: TAKEOVER, find: 'known.incarnation === answer.incarnation', replace: 'false' }],
  },
  'marker-first': {
    title: 'the marker of a log is written before its entries',
    caughtBy: { seed: 19, as: 'assertion' },
    edits: [
      {
        file: REPLICATION,
        find: 'const to = copy.controlAt + base;',
        replace: `const to = copy.controlAt + base;
          this.writeControl(copy, LOG_CONTROL.marker, this.ballot);`,
      },
    ],
  },
  'marker-of-any-incarnation': {
    title: 'a marker counts although its ring was written for an earlier incarnation of the member',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: KEY,
        find: 'key !== OPEN && (key - first + KEYS) % KEYS < KEYS / 2',
        replace: 'true',
      },
    ],
  },
  'unkeyed-marker': {
    title: 'a marker counts in a ring without a key',
    caughtBy: { script: 'takeover-races' },
    edits: [{ file: KEY, find: 'key !== OPEN && ', replace: '' }],
  },
  'same-keys': {
    title: 'a member that has lost its region makes the keys of its earlier incarnations again',
    caughtBy: { script: 'takeover-races' },
    edits: [{ file: MEMBER, find: 'identity.firstKey', replace: '1' }],
  },
  'few-keys': {
    title: 'a member makes the same keys again after a few promises',
    caughtBy: { script: 'takeover-races' },
    edits: [
      { file: KEY, find: '(key + count - 1) % KEYS', replace: '(key + (count % 2) - 1) % KEYS' },
    ],
  },
  'adopts-overwritten': {
    title: 'a candidate adopts entries that were dropped and overwritten while it copied its log',
    caughtBy: { script: 'interrupted-steps' },
    edits: [
      {
        file: ADOPTION,
        find: 'distance(basePosition, log.basePosition) > 0',
        replace: 'false',
      },
    ],
  },
  'old-completions-count': {
    title: 'completions of a much earlier installation count',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: REPLICATION,
        find: "if (copy.phase === 'absent' || guard !== copy.guard)\n            return true;",
        replace: '',
      },
    ],
  },
};

export const LEADERSHIP: Readonly<Record<string, Mutation>> = {
  ...CAMPAIGNING,
  ...TAKING_OVER,
};
