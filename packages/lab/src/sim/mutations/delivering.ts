/** Mutations that break the rules by which members deliver entries, leaders drop them, and members that lag catch up. */
import {
  BACKLOG,
  COPIED_MESSAGE,
  DELIVERY,
  RECOVERY,
  REPLICATION,
  SNAPSHOTS,
  TRUNCATION,
} from './files.js';
import type { Mutation } from './mutation.js';

export const DELIVERING: Readonly<Record<string, Mutation>> = {
  'decided-before-held': {
    title: 'followers are told that entries are decided before f+1 members hold them',
    caughtBy: { seed: 93, as: 'divergence' },
    edits: [
      {
        file: REPLICATION,
        find: 'const { decided, memory } = this;',
        replace: 'const { endIndex: decided, memory } = this;',
      },
    ],
  },
  'all-held-by-f': {
    title: 'if f members have all entries of the leader, these are decided',
    caughtBy: { seed: 8, as: 'divergence' },
    edits: [
      {
        file: REPLICATION,
        find: 'let missing = quorum - 1;',
        replace: 'let missing = quorum - 2;',
      },
    ],
  },
  'counts-before-marker': {
    title: 'a member that has all entries counts before the marker makes them its log',
    caughtBy: { script: 'takeover-races' },
    edits: [
      {
        file: REPLICATION,
        find: "heldIndex === endIndex && phase === 'installed'",
        replace: 'heldIndex === endIndex',
      },
    ],
  },
  'truncates-last': {
    title: 'a leader drops the last decided entry',
    caughtBy: { seed: 7, as: 'assertion' },
    edits: [
      {
        file: TRUNCATION,
        find: 'Math.min(deliveredIndex, replication.decided - 1)',
        replace: 'deliveredIndex',
      },
    ],
  },
  'old-incarnation-delivered': {
    title: 'a leader drops entries that only an earlier incarnation of a member has delivered',
    caughtBy: { script: 'left-behind' },
    edits: [
      {
        file: TRUNCATION,
        find: 'replication.incarnationOf(other) > peer.incarnation',
        replace: 'false',
      },
    ],
  },
  'recovers-too-early': {
    title: 'a recovering member becomes a full member before it has delivered what is decided',
    caughtBy: { script: 'left-behind' },
    edits: [
      {
        file: RECOVERY,
        find: 'this.delivering.deliver(log, log.marker, decided, false);',
        replace: '',
      },
      { file: RECOVERY, find: 'member.nextToDeliver < decided', replace: 'false' },
    ],
  },
  'mixed-snapshot': {
    title: 'a snapshot is assembled from chunks of two incarnations of its server',
    caughtBy: { script: 'left-behind' },
    edits: [
      {
        file: SNAPSHOTS,
        find: '(this.received.length === 0 || this.isOfSame(slot))',
        replace: 'true',
      },
    ],
  },
  'snapshot-failure-stops': {
    title: 'a member stops if its service fails to take a snapshot',
    caughtBy: { script: 'service' },
    edits: [
      {
        file: SNAPSHOTS,
        find: 'if (error instanceof InvariantError)',
        replace: 'if (true)',
      },
    ],
  },
  'waits-for-lagging': {
    title: 'a leader whose log is full waits until a member that lags has delivered',
    caughtBy: { seed: 425, as: 'availability' },
    edits: [{ file: TRUNCATION, find: 'this.waitUs > 0', replace: 'true' }],
  },
  'believes-old-rows': {
    title:
      'a member that lags does not ask its leader for more than the last row that it has read says',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: SNAPSHOTS, find: '&& !isOurLeader', replace: '' }],
  },
  'no-backlog': {
    title: 'a leader drops entries that a member that lags has not delivered, and keeps no copy',
    caughtBy: { script: 'left-behind' },
    edits: [
      { file: TRUNCATION, find: '!hasEnded && deliveredBy[other] >= oldest', replace: 'false' },
    ],
  },
  'snapshot-not-continued': {
    title: 'a leader does not keep the entries after a snapshot that is being fetched',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: TRUNCATION, find: 'holdAt < oldest || holdAt === 0', replace: 'true' }],
  },
  'backlog-of-any-ballot': {
    title: 'a piece of the backlog has entries of several ballots',
    caughtBy: { seed: 120, as: 'assertion' },
    edits: [{ file: BACKLOG, find: 'piece?.ballot !== ballot', replace: 'piece === undefined' }],
  },
  'fetches-from-any': {
    title: 'a member that needs a snapshot fetches it from one that has not delivered more',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: SNAPSHOTS, find: 'delivered <= member.nextToDeliver', replace: 'false' }],
  },
  'never-left-behind': {
    title: 'a follower does not notice that it was left behind',
    caughtBy: { seed: 259, as: 'liveness' },
    edits: [
      { file: DELIVERY, find: 'return isBehind ? first : missingState;', replace: 'return 0;' },
    ],
  },
  'delivers-while-overwritten': {
    title: 'a follower delivers entries that may have been overwritten while it copied them',
    caughtBy: { script: 'interrupted-steps' },
    edits: [{ file: DELIVERY, find: '!leads && this.mayBeOverwritten(log)', replace: 'false' }],
  },
  'follower-delivers-in-place': {
    title: 'a follower delivers entries where they lie, although its leader may overwrite them',
    caughtBy: { script: 'interrupted-steps' },
    edits: [
      {
        file: DELIVERY,
        find: 'leads && this.journaling === undefined',
        replace: 'this.journaling === undefined',
      },
    ],
  },
  'payload-in-place': {
    title: 'a service gets the payload where it lies in the log of the leader, and may change it',
    caughtBy: { script: 'service' },
    edits: [
      {
        file: COPIED_MESSAGE,
        find: 'this.copyOut();',
        replace: `{
          const { words, at } = this;
          const from = words.byteOffset + (at + MESSAGE.payload) * 4;
          return new Uint8Array(words.buffer, from, words[at + MESSAGE.payloadBytes]);
        }`,
      },
    ],
  },
  'looks-at-base-once': {
    title:
      'a follower checks only once whether it was left behind, although the base may move meanwhile',
    caughtBy: { script: 'left-behind' },
    edits: [{ file: DELIVERY, find: 'log.base === base', replace: 'true' }],
  },
};
