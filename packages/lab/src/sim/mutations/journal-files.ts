/**
 * Mutations of the files of a journal and of what a host promises: harm needs a power cut, or a rival recovery, between two
 * particular calls to the disk. Scripts over a simulated disk catch them.
 */
import {
  FORMAT,
  GROUP_PROGRESS,
  JOURNAL_IDENTITY,
  JOURNAL_READER,
  JOURNAL_WRITER,
  RECOVERY_HOST,
  SEGMENTS,
  TURNS,
} from './files.js';
import type { Mutation } from './mutation.js';

const caughtBy = { script: 'journal-files' } as const;

export const JOURNAL_FILES: Readonly<Record<string, Mutation>> = {
  'fetched-counts': {
    title: 'a snapshot that fills a gap counts at once',
    caughtBy,
    edits: [
      {
        file: GROUP_PROGRESS,
        find: 'endSnapshot() {',
        replace: `endSnapshot() {
          if (this.draft.index > this.counted.end) this.stable = Math.max(this.stable, this.draft.index);`,
      },
    ],
  },
  'gap-as-whole': {
    title: 'entries behind a gap are called durable',
    caughtBy,
    edits: [
      {
        file: GROUP_PROGRESS,
        find: 'if (first <= one.end)',
        replace: 'if (true)',
      },
    ],
  },
  'stale-batches': {
    title: 'batches of an earlier use of a segment are read again',
    caughtBy,
    edits: [{ file: FORMAT, find: ' || words[at + BATCH.segment] !== segment) {', replace: ') {' }],
  },
  'checksum-ignored': {
    title: 'a torn batch is read',
    caughtBy,
    edits: [
      {
        file: FORMAT,
        find: 'if (words[at + HEAD.crc] !== checksum(words, at + CHECKED, end))',
        replace: 'if (false)',
      },
    ],
  },
  'folder-not-synced': {
    title: 'what a snapshot replaces is removed before its new name is durable',
    caughtBy,
    edits: [
      {
        file: JOURNAL_WRITER,
        find: `        disk.syncFolder(folder);
        yield true;
        const older`,
        replace: '        const older',
      },
    ],
  },
  'segments-freed-together': {
    title: 'several segments get other names before any of these is durable',
    caughtBy,
    edits: [
      {
        file: SEGMENTS,
        find: `            disk.syncFolder(eraFolder(options.era));
            yield true;
            if (spare !== undefined)`,
        replace: '            if (spare !== undefined)',
      },
    ],
  },
  'cache-not-settled': {
    title: 'a host that starts again relies on what may be in the page cache only',
    caughtBy,
    edits: [
      {
        file: JOURNAL_READER,
        find: 'for (const file of disk.list(name))',
        replace: 'for (const file of [])',
      },
    ],
  },
  'promises-lower-eras': {
    title: 'a host that has promised an era promises lower ones too',
    caughtBy,
    edits: [
      {
        file: RECOVERY_HOST,
        find: 'if (era <= promised || !isOurs)',
        replace: 'if (era === promised || !isOurs)',
      },
    ],
  },
  'promise-not-synced': {
    title: 'a host does not make its promise durable',
    caughtBy,
    edits: [
      {
        file: JOURNAL_IDENTITY,
        find: "disk.rename(draft, IDENTITY_FILE);\n    disk.syncFolder('');",
        replace: 'disk.rename(draft, IDENTITY_FILE);',
      },
      {
        file: JOURNAL_READER,
        find: "if (disk.list('').length > 0)\n        disk.syncFolder('');",
        replace: '',
      },
    ],
  },
  'withdrawn-not-told': {
    title: 'a host that has withdrawn its promise can still open the later era',
    caughtBy,
    edits: [
      {
        file: JOURNAL_IDENTITY,
        find: 'promised < era ? era : promised + 1',
        replace: 'Math.max(promised, era)',
      },
    ],
  },
  'withdrawn-era-kept': {
    title: 'a host that has withdrawn its promise keeps what it has of the later era',
    caughtBy,
    edits: [
      { file: JOURNAL_IDENTITY, find: 'if ((eraOf(name) ?? 0) > era)', replace: 'if (false)' },
    ],
  },
  'turns-not-kept': {
    title: 'a group takes room in a full ring out of turn, although another one has waited longer',
    caughtBy: { script: 'turns' },
    edits: [
      {
        file: TURNS,
        find: 'ring.hasRoom(first.words + words, allRecords)',
        replace: 'ring.hasRoom(words, records + reservedRecords)',
      },
    ],
  },
  'turn-never-over': {
    title: 'room in a full ring is kept for one that never comes back',
    caughtBy: { script: 'turns' },
    edits: [{ file: TURNS, find: 'this.passedBy >= ring.size', replace: 'false' }],
  },
};
