/**
 * Mutations that break the rules of durability: until when replies are held, when a full journal holds up its member,
 * which entries are stable (recoverable.ts, journaling.ts), what counts of an earlier era, and what a new journal begins
 * with. Scripts with a fake journal catch them.
 */
import {
  DELIVERY,
  FEED,
  INBOX,
  JOURNAL_SNAPSHOTS,
  JOURNALING,
  LEADER,
  RECOVERABLE,
  ROWS,
  SNAPSHOT,
  TRUNCATION,
} from './files.js';
import type { Mutation } from './mutation.js';

const caughtBy = { script: 'durability' } as const;
const NEW_JOURNAL = { script: 'new-journal' } as const;

export const DURABILITY: Readonly<Record<string, Mutation>> = {
  'not-awaited': {
    title: 'replies do not wait until their entries are recoverable',
    caughtBy,
    edits: [
      {
        file: LEADER,
        find: 'return Math.min(this.settling.gate, this.recoverable.gate);',
        replace: 'return this.settling.gate;',
      },
    ],
  },
  'durable-at-one': {
    title: 'an entry counts as durable in its group once one member has it durable',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'reachedBy(durableBy, member.quorum)',
        replace: 'reachedBy(durableBy, 1)',
      },
    ],
  },
  'durable-is-recoverable': {
    title: 'an entry counts as recoverable although its parent may lose it',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'this.index = Math.min(this.durable, this.passed.index);',
        replace: 'this.index = this.durable;',
      },
    ],
  },
  'durable-not-in-rows': {
    title: 'a leader does not learn from the rows of its members what they have durable',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'durableBy[other] = Math.max(durableBy[other], peer.durable);',
        replace: ';',
      },
    ],
  },
  'dropped-not-counted': {
    title: 'a leader does not look at entries that it drops before they are durable',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'this.fromParent.onDrop(end);',
        replace: '',
      },
    ],
  },
  'full-journal-stops-all': {
    title: 'a member whose journal is full delivers nothing, even if the quorum does not need it',
    caughtBy,
    edits: [{ file: JOURNALING, find: 'return further < member.quorum;', replace: 'return true;' }],
  },
  'full-journal-stops-none': {
    title: 'a member whose journal is full goes on, even if the quorum needs it',
    caughtBy,
    edits: [
      { file: JOURNALING, find: 'return further < member.quorum;', replace: 'return false;' },
    ],
  },
  'kept-and-new-together': {
    title:
      'a member delivers what the journal has, and what it lacks, without a look whether there is room',
    caughtBy,
    edits: [
      {
        file: JOURNALING,
        find: 'return next > this.member.nextToDeliver ? Math.min(decided, next) : decided;',
        replace: 'return decided;',
      },
    ],
  },
  'drops-undelivered': {
    title: 'a leader whose journal is full drops entries that it has not delivered',
    caughtBy,
    edits: [{ file: TRUNCATION, find: 'this.member.nextToDeliver, this', replace: 'this' }],
  },
  'stable-before-children': {
    title: 'entries count as stable before they are durable in the children that they go to',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'if (durableByChild <= member.sentTo[place])',
        replace: 'if (false)',
      },
    ],
  },
  'stable-before-parent': {
    title: 'entries count as stable before the parent can recover them',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'Math.min(this.passed.index, member.nextToDeliver)',
        replace: 'member.nextToDeliver',
      },
    ],
  },
  'stable-not-heard': {
    title: 'a member does not learn from the rows of others which entries are stable',
    caughtBy,
    edits: [
      {
        file: ROWS,
        find: 'this.member.stable = Math.max(this.member.stable, peer.stable);',
        replace: '',
      },
    ],
  },
  'sent-not-restored': {
    title:
      'a member that restores a snapshot does not know which entries went to its children last',
    caughtBy,
    edits: [{ file: SNAPSHOT, find: 'sentTo[place] = readWide(words, at);', replace: ';' }],
  },
  'durable-of-any-era': {
    title: 'a leader believes what a member told in an earlier era of what it has durable',
    caughtBy,
    edits: [
      {
        file: RECOVERABLE,
        find: 'if (slot.poll() && slot.epoch === peer.incarnation)',
        replace: 'if (slot.poll())',
      },
    ],
  },
  'gates-of-any-era': {
    title: 'a leader believes the gates that the parent told in an earlier era',
    caughtBy,
    edits: [
      {
        file: INBOX,
        find: 'return this.epoch !== NO_BALLOT && this.gates.poll();',
        replace: 'return this.gates.poll();',
      },
    ],
  },
  'settled-of-any-era': {
    title: 'a leader believes what a child told in an earlier era of what is settled there',
    caughtBy,
    edits: [
      {
        file: FEED,
        find: 'if (!slot.poll() || slot.epoch !== peers[other].incarnation)',
        replace: 'if (!slot.poll())',
      },
    ],
  },
  'new-journal-begins-anywhere': {
    title: 'a journal that replaces a lost one begins with an older state than that one had',
    caughtBy: NEW_JOURNAL,
    edits: [
      {
        file: JOURNAL_SNAPSHOTS,
        find: "if (journal.next > 0 || member.past === 'none')",
        replace: 'if (true)',
      },
    ],
  },
  'kept-log-suffices': {
    title: 'a journal that replaces a lost one begins with what a log has that was kept in memory',
    caughtBy: NEW_JOURNAL,
    edits: [{ file: JOURNAL_SNAPSHOTS, find: '!member.hasPromisedAnew || ', replace: '' }],
  },
  'candidate-told-decided': {
    title:
      'a journal that replaces a lost one begins with what a candidate has delivered of its log',
    caughtBy: NEW_JOURNAL,
    edits: [
      {
        file: JOURNAL_SNAPSHOTS,
        find: 'log && member.log.extentOf(log, member.near).endIndex',
        replace: 'log && member.nextToDeliver + ((log.decided - member.nextToDeliver) | 0)',
      },
    ],
  },
  'any-new-log-suffices': {
    title:
      'a journal that replaces a lost one begins with the log of a leader that others follow no more',
    caughtBy: NEW_JOURNAL,
    edits: [{ file: JOURNAL_SNAPSHOTS, find: ' || !this.isHighest(promised)', replace: '' }],
  },
  'replaced-call-waits': {
    title: 'a call whose end is lost waits for ever, because a later one has taken its slot',
    caughtBy: { script: 'begin' },
    edits: [{ file: DELIVERY, find: 'this.abandonReplaced();', replace: '{}' }],
  },
};
