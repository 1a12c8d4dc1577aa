/**
 * Mutations that break the rules of snapshots: what they carry, how they are put together, what is restored, and what a
 * member without state must not do.
 */
import {
  DELIVERY,
  FOLLOWER,
  REPLICA,
  ROWS,
  SNAPSHOT,
  SNAPSHOTS,
  STATE_LOSS,
  SUSPICION,
  TAKEOVER,
} from './files.js';
import type { Mutation } from './mutation.js';

export const RESTORING: Readonly<Record<string, Mutation>> = {
  'restores-other-state': {
    title: 'one bit of the state of the service changes when a snapshot is restored',
    caughtBy: { seed: 9, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'at = end;',
        replace: `at = end;
          words[at + (words[words.length - 1] >> 2) - 1] ^= 1;`,
      },
    ],
  },
  'restores-other-counters': {
    title: "a snapshot restores the clients' numbers, but not their places in the inboxes",
    caughtBy: { seed: 2, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'delivered.nextPosition[client] = words[at + CLIENT.nextPosition];',
        replace: '',
      },
    ],
  },
  'restores-no-replies': {
    title: 'a snapshot does not restore the kept replies',
    caughtBy: { seed: 9, as: 'state' },
    edits: [
      {
        file: SNAPSHOT,
        find: 'replies.load(words.subarray(at, indexAt), words.subarray(indexAt, end));',
        replace: '',
      },
    ],
  },
  'forgets-left-snapshot': {
    title: 'a member that resumes ignores the snapshot that it left',
    caughtBy: { seed: 181, as: 'liveness' },
    edits: [{ file: REPLICA, find: 'this.snapshots.resumeFrom(left);', replace: '{}' }],
  },
  'restores-needlessly': {
    title: 'a member restores the snapshot that it left although its log still has its beginning',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: REPLICA, find: '!hasAllOf(left, member)', replace: 'true' }],
  },
  'ignores-kept-log': {
    title: 'a member without the log of the ballot that it has promised delivers nothing',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: FOLLOWER, find: 'followed ?? member.log.current()', replace: 'followed' }],
  },
  'ignores-own-entries': {
    title: 'a candidate does not deliver from its own log what the adopted log has dropped',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: TAKEOVER, find: 'this.deliverDropped();', replace: '' }],
  },
  'calls-fetching-lost': {
    title: 'the state of a group is called lost although a member is about to fetch it',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: STATE_LOSS, find: ' && member.promised === NO_BALLOT', replace: '' }],
  },
  'hides-its-need': {
    title:
      'a member does not tell which entries it lacks, so that nobody knows that a state is lost',
    caughtBy: { script: 'orderly-stop' },
    edits: [{ file: ROWS, find: 'row.setWide(ROW.needs, member.needs);', replace: '' }],
  },
  'chunk-misplaced': {
    title: 'the last chunk of a snapshot is put one word before its place',
    caughtBy: { seed: 9, as: 'error' },
    edits: [
      {
        file: SNAPSHOTS,
        find: 'received.push(slot.copy.slice(data, data + count));',
        replace: `if (isLast && received.length > 0)
            received[received.length - 1] = received[received.length - 1].slice(0, -1);
          received.push(slot.copy.slice(data, data + count + (isLast && received.length > 0 ? 1 : 0)));`,
      },
    ],
  },
  'chunks-of-two-members': {
    title: 'a snapshot is assembled from chunks of two members',
    caughtBy: { seed: 103, as: 'assertion' },
    edits: [
      {
        file: SNAPSHOTS,
        find: 'this.stop();\n        this.source = this.bestSource();',
        replace: 'this.source = this.bestSource();',
      },
      {
        file: SNAPSHOTS,
        find: 'this.wanted = 0;\n        this.nextIndex',
        replace: 'if (this.received.length === 0) this.wanted = 0;\n this.nextIndex',
      },
      {
        file: SNAPSHOTS,
        find: '(this.received.length === 0 || this.isOfSame(slot))',
        replace: 'true',
      },
    ],
  },
  'lacks-state-unnoticed': {
    title: 'a member that lacks the state of its group does not notice it while the log is empty',
    caughtBy: { script: 'begin' },
    edits: [
      {
        file: DELIVERY,
        find: 'const missingState = member.hasState ? 0 : member.layout.sizes.firstIndex;',
        replace: 'const missingState = 0;',
      },
    ],
  },
  'campaigns-without-state': {
    title: 'a member that lacks the state of its group campaigns',
    caughtBy: { script: 'begin' },
    edits: [
      { file: REPLICA, find: ' || !this.member.hasState', replace: '' },
      { file: SUSPICION, find: 'this.member.hasState && ', replace: '' },
    ],
  },
  'trusted-without-state': {
    title: 'a member that lacks the state of its group is trusted as leader',
    caughtBy: { script: 'begin' },
    edits: [
      {
        file: SUSPICION,
        find: 'this.peers[member].delivered < this.member.layout.sizes.firstIndex',
        replace: 'false',
      },
    ],
  },
  'fetched-not-journaled': {
    title: 'a member does not hand the snapshot that it has fetched to its journal',
    caughtBy: { script: 'begin' },
    edits: [{ file: SNAPSHOTS, find: 'this.journalSnapshots?.restored();', replace: '' }],
  },
};
