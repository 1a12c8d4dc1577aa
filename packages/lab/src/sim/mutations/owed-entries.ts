/** Mutations that break the rules of owed entries: what only the leader of a child has got, and when the others get it. */
import { FEED, FORWARDING, REPLICA } from './files.js';
import type { Mutation } from './mutation.js';

export const OWED: Readonly<Record<string, Mutation>> = {
  'owed-entries-forgotten': {
    title: 'a full step does not post the entries that only the leader of a child has',
    caughtBy: { seed: 18, as: 'assertion' },
    edits: [{ file: FORWARDING, find: 'feed.flush(isQuick);', replace: 'feed.flush(true);' }],
  },
  'owed-feeds-passed-over': {
    title: 'a full step does not look at feeds that owe something, but have got nothing new',
    caughtBy: { seed: 89, as: 'assertion' },
    edits: [{ file: FORWARDING, find: 'this.owes && !isQuick', replace: 'false' }],
  },
  'owed-though-ended': {
    title:
      'a leader does not notice that the leader of a child has ended, and owes new entries to the others',
    caughtBy: { script: 'owed-entries' },
    edits: [
      {
        file: FEED,
        find: 'return !member.edges.memory.hasEnded(firstMember + leader);',
        replace: 'return true;',
      },
    ],
  },
  'owed-end-told': {
    title: 'child members that are owed entries are told the end of the feed behind them',
    caughtBy: { script: 'owed-entries' },
    edits: [
      {
        file: FEED,
        find: 'this.owesEnd = this.pieces > 0 || (isQuick && this.leaderIsEnough());',
        replace: 'this.owesEnd = false;',
      },
    ],
  },
  'owed-end-after-loss': {
    title:
      'the leader of a child is told the end of a feed although entries were lost on their way to it',
    caughtBy: { script: 'owed-entries' },
    edits: [
      { file: FORWARDING, find: 'this.tellsAll || (this.owes', replace: '(this.owes' },
      {
        file: FORWARDING,
        find: 'if (!isQuick)\n            this.owes = false;',
        replace:
          'if (!isQuick)\n            this.owes = false;\n if (this.tellsAll) this.touchAll();',
      },
    ],
  },
  'owed-end-forgotten': {
    title: 'child members get the entries that they were owed, but not the end of the feed',
    caughtBy: { script: 'owed-entries' },
    edits: [{ file: FEED, find: 'isTold || (this.owesEnd && !isQuick)', replace: 'isTold' }],
  },
  'owed-end-wakes-leader': {
    title: 'the leader of a child is woken when the others get what they were owed',
    caughtBy: { script: 'owed-entries' },
    edits: [
      {
        file: FEED,
        find: 'if (isTold || hasReturned)',
        replace: 'if (tellsCurrent || hasReturned)',
      },
    ],
  },
  'owed-end-wakes-nobody': {
    title: 'a new leader of a child is not woken for what was owed to it',
    caughtBy: { script: 'owed-entries' },
    edits: [{ file: FEED, find: 'this.endHasMoved ||= this.owesEnd;', replace: ';' }],
  },
  'owed-by-new-leader': {
    title: 'what is owed goes to all but the new leader of the child, which does not have it',
    caughtBy: { script: 'owed-entries' },
    edits: [
      {
        file: FEED,
        find: 'this.post();\n        this.mayHaveReturned = true;',
        replace: 'this.mayHaveReturned = true;',
      },
    ],
  },
  'owed-after-start': {
    title:
      'the leader of a child gets new entries without the new start, which the others are owed',
    caughtBy: { script: 'owed-entries' },
    edits: [
      {
        file: FEED,
        find: 'this.oldestHasMoved || !this.isCurrent(leader)',
        replace: '!this.isCurrent(leader)',
      },
    ],
  },
  'owed-before-drop': {
    title: 'a full feed drops entries before it has posted what it owes',
    caughtBy: { seed: 6, as: 'assertion' },
    edits: [
      {
        file: FEED,
        find: 'this.post();\n        this.dropBelow(this.decidedByChild);',
        replace: 'this.dropBelow(this.decidedByChild);',
      },
    ],
  },
  'owed-piece-replaced': {
    title: 'a feed that owes as many pieces of the log as it can remember forgets the last of them',
    caughtBy: { script: 'owed-entries' },
    edits: [
      {
        file: FEED,
        find: 'if (this.pieces === PIECES_MAX)',
        replace: 'if (this.pieces === PIECES_MAX) this.pieces--;\n else if (false)',
      },
    ],
  },
  'owed-never-due': {
    title: 'the host of a leader does not know when it has to post what its feeds owe',
    caughtBy: { script: 'owed-entries' },
    edits: [{ file: REPLICA, find: '|| this.leader.forwarding.owes', replace: '' }],
  },
};
