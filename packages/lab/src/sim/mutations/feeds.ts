/** Mutations that break the rules of feeds: what goes down the tree. */
import { FEED, INBOX, LAYOUT, LEADER, TRUNCATION } from './files.js';
import type { Mutation } from './mutation.js';

export const FEEDS: Readonly<Record<string, Mutation>> = {
  'feed-end-first': {
    title: 'the end of a feed is published before its entries are written',
    caughtBy: { seed: 205, as: 'assertion' },
    edits: [
      {
        file: FEED,
        find: 'if (isQuick && this.leaderIsEnough()) {',
        replace: `if (this.endPosition !== this.sentPosition) for (let other = 0; other < this.member.replicas; other++) if (this.isCurrent(other)) this.tellEnd(other, this.endPosition);
          if (isQuick && this.leaderIsEnough()) {`,
      },
    ],
  },
  'feed-old-start-stays': {
    title: 'a feed that starts again keeps its old start valid while it is written',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: FEED, find: 'this.writeStart(other, NO_BALLOT);', replace: '' }],
  },
  'feed-old-end-stays': {
    title: 'a feed that starts again keeps its old end valid while it is written',
    caughtBy: { seed: 101, as: 'integrity' },
    edits: [{ file: FEED, find: 'this.tellEnd(other, this.oldestPosition);', replace: '' }],
  },
  'feed-copy-unchecked': {
    title: 'entries copied from a feed count although the feed has started again meanwhile',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: LEADER, find: '!parent.isCurrent()', replace: '!parent.isCurrent() && false' }],
  },
  'feed-start-overlooked': {
    title: 'a leader that has read a feed to its end does not look at its start again',
    caughtBy: { seed: 11, as: 'liveness' },
    edits: [{ file: INBOX, find: 'return !this.start.isUnchanged();', replace: 'return false;' }],
  },
  'feed-end-overlooked': {
    title: 'a leader that has read a feed to its end does not look at its end again',
    caughtBy: { seed: 4, as: 'liveness' },
    edits: [
      {
        file: INBOX,
        find: ' || this.window.words[this.end] !== endPosition',
        replace: '',
      },
    ],
  },
  'feed-rest-overlooked': {
    title:
      'a leader that has not read a feed to its end does not look at it again before the end moves',
    caughtBy: { seed: 6, as: 'liveness' },
    edits: [{ file: INBOX, find: 'endPosition !== this.position ||', replace: '' }],
  },
  'feed-dropped-undecided': {
    title: 'a feed drops entries that the child has not decided',
    caughtBy: { seed: 431, as: 'liveness' },
    edits: [
      {
        file: FEED,
        find: 'this.dropBelow(this.decidedByChild);',
        replace: 'this.dropBelow(this.logIndex);',
      },
    ],
  },
  'feed-loss-ignored': {
    title: 'entries that were lost on their way to a feed are not written again',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: FEED, find: 'this.incarnations[other] = UNKNOWN;', replace: '' }],
  },
  'feed-pieces-joined': {
    title:
      'entries that do not lie side by side in the log are written to a feed as one piece of it',
    caughtBy: { seed: 467, as: 'liveness' },
    edits: [
      {
        file: FEED,
        find: 'this.pieces === 0 || pieceEnds[this.pieces - 1] !== position',
        replace: 'this.pieces === 0',
      },
    ],
  },
  'feed-full-overtaken': {
    title: 'a full feed takes later entries as soon as there is room for them',
    caughtBy: { seed: 51, as: 'assertion' },
    edits: [{ file: FEED, find: 'this.isFull || this.lastIndex', replace: 'this.lastIndex' }],
  },
  'feed-taken-twice': {
    title: 'an entry with several destinations below a child goes there several times',
    caughtBy: { seed: 14, as: 'assertion' },
    edits: [{ file: FEED, find: ' || this.lastIndex === index', replace: '' }],
  },
  'feed-forgets-returned': {
    title: 'a child member that came back while its feed was empty does not get later entries',
    caughtBy: { script: 'quick-steps' },
    edits: [
      {
        file: FEED,
        find: 'const hasReturned = this.mayHaveReturned && this.writeToReturned();',
        replace: `const hasReturned = this.mayHaveReturned && this.writeToReturned();
          this.mayHaveReturned = false;`,
      },
    ],
  },
  'feed-drop-uncounted': {
    title: 'a feed keeps its first position when entries are dropped from the log',
    caughtBy: { seed: 50, as: 'liveness' },
    edits: [
      {
        file: FEED,
        find: 'this.oldestPosition = (this.oldestPosition + words) | 0;\n        this.oldestHasMoved = true;',
        replace: 'this.oldestHasMoved = true;',
      },
    ],
  },
  'feed-start-untold': {
    title:
      'a feed that starts under a new ballot does not tell its start to child members that had the last one',
    caughtBy: { script: 'feed-races' },
    edits: [{ file: FEED, find: 'this.incarnations.fill(UNKNOWN);', replace: '' }],
  },
  'truncates-needed': {
    title: 'a leader drops entries that a child has not decided',
    caughtBy: { seed: 29, as: 'liveness' },
    edits: [
      {
        file: TRUNCATION,
        find: 'index < decidedByAll || !forwarding.isNeeded(index, position)',
        replace: 'true',
      },
    ],
  },
  'same-salt': {
    title: 'the checksums of all logs have the same salt',
    caughtBy: { script: 'salted-checks' },
    edits: [{ file: LAYOUT, find: 'check: check ^ (group + 1)', replace: 'check' }],
  },
};
