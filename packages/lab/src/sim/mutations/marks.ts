/**
 * Mutations that break the rules of marks: when they are proposed and counted, where journals that have left entries out take
 * their snapshots, when these count, and which of them a recovery uses.
 */
import {
  DELIVERY,
  GROUP_PROGRESS,
  JOURNAL_SNAPSHOTS,
  OWN_ENTRIES,
  RECOVERABLE,
  RECOVERY_PLAN,
  SNAPSHOT,
} from './files.js';
import type { Mutation } from './mutation.js';

const ALWAYS = { durability: 'always' } as const;
const SCRIPT = { script: 'marks' } as const;

export const MARKS: Readonly<Record<string, Mutation>> = {
  'marks-not-passed-up': {
    title: 'a leader does not tell its parent that a journal below it waits for a mark',
    caughtBy: SCRIPT,
    edits: [{ file: RECOVERABLE, find: 'if (leader.awaitsMark)', replace: 'if (false)' }],
  },
  'marks-not-completed': {
    title: 'a mark does not say which mark is complete',
    caughtBy: SCRIPT,
    edits: [
      {
        file: OWN_ENTRIES,
        find: 'this.set(MESSAGE.number, isComplete ? member.marks : member.completeMark);',
        replace: ';',
      },
    ],
  },
  'mark-held-by-one': {
    title: 'a mark is complete once one member of each group holds it',
    caughtBy: SCRIPT,
    edits: [
      {
        file: RECOVERABLE,
        find: 'let isHeld = holders >= member.quorum;',
        replace: 'let isHeld = holders >= 1;',
      },
    ],
  },
  'mark-without-children': {
    title: 'a mark is complete although groups below do not hold it',
    caughtBy: SCRIPT,
    edits: [{ file: RECOVERABLE, find: 'isHeld &&= isHeldBelow;', replace: ';' }],
  },
  'mark-held-roughly': {
    title: 'a mark is complete if hosts hold other marks, whose snapshots cannot give its state',
    caughtBy: SCRIPT,
    edits: [
      { file: RECOVERABLE, find: 'journal.heldMark === marks', replace: 'journal.heldMark > 0' },
      { file: RECOVERABLE, find: 'if (heldMark === marks)', replace: 'if (heldMark > 0)' },
      { file: RECOVERABLE, find: 'child.subtreeMark === marks', replace: 'child.subtreeMark > 0' },
    ],
  },
  'marks-undelivered': {
    title: 'a leader proposes a mark while another one is not delivered, with the same number',
    caughtBy: { seed: 104, as: 'assertion', options: ALWAYS },
    edits: [{ file: OWN_ENTRIES, find: ' || this.endOfMark > member.nextToDeliver', replace: '' }],
  },
  'adopted-mark-overlooked': {
    title: 'a new leader proposes a mark although its log has one that it has not delivered',
    caughtBy: SCRIPT,
    edits: [
      {
        file: OWN_ENTRIES,
        find: 'this.endOfMark = this.replication.endIndex;\n    }\n    get',
        replace: '}\n    get',
      },
    ],
  },
  'marks-not-restored': {
    title: 'a member that restores a snapshot does not know how many marks there were',
    caughtBy: { seed: 31, as: 'assertion', options: ALWAYS },
    edits: [{ file: SNAPSHOT, find: 'member.marks = words[FIXED.marks];', replace: '' }],
  },
  'snapshot-behind-mark': {
    title: 'a snapshot at a mark has entries that follow the mark',
    caughtBy: SCRIPT,
    edits: [
      {
        file: DELIVERY,
        find: 'if (member.marks !== marks)\n                break;',
        replace: '',
      },
    ],
  },
  'leaps-without-mark': {
    title: 'a journal that has left entries out takes any state for that at the last mark',
    caughtBy: SCRIPT,
    edits: [
      {
        file: JOURNAL_SNAPSHOTS,
        find: 'if (!journal.wantsSnapshot || this.nowUs',
        replace:
          'if (!(journal.wantsSnapshot || (journal.wantsMark && member.marks > 0 && this.mayBegin())) || this.nowUs',
      },
      {
        file: JOURNAL_SNAPSHOTS,
        find: 'this.handing ??= this.begin(false);',
        replace: 'this.handing ??= this.begin(journal.wantsMark);',
      },
    ],
  },
  'snapshot-ahead': {
    title: 'a member that is ahead of the journal on its host hands it a snapshot of any state',
    caughtBy: SCRIPT,
    edits: [
      {
        file: JOURNAL_SNAPSHOTS,
        find: 'member.nextToDeliver === journal.next',
        replace: 'member.nextToDeliver >= journal.next',
      },
    ],
  },
  'marks-impatient': {
    title: 'marks follow each other at most so many suspicions apart, although disks take longer',
    caughtBy: SCRIPT,
    edits: [{ file: OWN_ENTRIES, find: ', MARK_WAIT_US)', replace: ')' }],
  },
  'busy-disk-never-begins': {
    title:
      'a journal that has left entries out waits until its disk is idle, even if the quorum needs it',
    caughtBy: SCRIPT,
    edits: [
      { file: JOURNAL_SNAPSHOTS, find: 'journal.isBusy && !isNeeded', replace: 'journal.isBusy' },
    ],
  },
  'counts-incomplete': {
    title: 'a snapshot at a mark counts before the mark is complete',
    caughtBy: { script: 'journal-files' },
    edits: [{ file: GROUP_PROGRESS, find: '(isAtMark && marks <= complete)', replace: 'isAtMark' }],
  },
  'mark-held-unsynced': {
    title: 'a host holds a mark before its entries are durable',
    caughtBy: { script: 'journal-files' },
    edits: [{ file: GROUP_PROGRESS, find: 'index <= one.durable', replace: 'index <= one.end' }],
  },
  'marks-not-used': {
    title: 'a recovery does not use snapshots at marks that do not count yet',
    caughtBy: { seed: 64, as: 'recovery', options: ALWAYS },
    edits: [
      {
        file: RECOVERY_PLAN,
        find: 'const candidates = fitting(found, isShort);',
        replace: 'const candidates = found.map((group) => group.filter(({ mark }) => mark === 0));',
      },
    ],
  },
  'marks-used-beyond': {
    title: 'a recovery uses snapshots at marks that some group does not reach',
    caughtBy: { script: 'recovery-plan' },
    edits: [
      {
        file: RECOVERY_PLAN,
        find: 'const candidates = fitting(found, isShort);',
        replace: 'const candidates = found;',
      },
    ],
  },
};
