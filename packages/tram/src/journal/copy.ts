/**
 * Writes a new journal from what another one has of some groups, up to an index of each: for backups, in both directions.
 * The new journal has one era, the first, which is open. Everything is durable when this returns. All its snapshots count,
 * so it does not matter that its opening snapshots may have seen marks.
 */

import { writeWide } from '../protocol/wide.js';
import type { Disk } from './disk.js';
import {
  BATCH_HEAD_WORDS,
  bytesOf,
  eraFolder,
  type JournalIdentity,
  SECTION,
  SECTOR_WORDS,
  sealBatch,
} from './format.js';
import { markOpened, writeIdentity } from './identity.js';
import { Segments } from './segments.js';
import { entriesIn, type GroupSequence, type JournalEntry, readTogether } from './sequence.js';
import { writeOpening } from './snapshot-file.js';

/** @internal The era of a journal that was copied. */
export const COPY_ERA = 1;

/** @internal */
export interface CopiedGroup {
  readonly group: number;
  readonly sequence: GroupSequence;
  /** Entries below this index are copied. Not below the snapshot that the sequence starts with. */
  readonly below: number;
}

const SEGMENT_BYTES = 2 ** 26;
/** There is one for each group. */
const BATCH_WORDS = 2 ** 18;

/** @internal @param disk  an empty folder */
export function copyJournal(
  disk: Disk,
  identity: Omit<JournalIdentity, 'promisedEra'>,
  groups: readonly CopiedGroup[],
): void {
  const { clusterId, host } = identity;
  const era = COPY_ERA;
  disk.makeFolder(eraFolder(era));
  for (const { group, sequence } of groups) {
    const subject = { clusterId, era, group, index: sequence.snapshotIndex };
    writeOpening(disk, subject, sequence.readSnapshot());
  }
  const segments = new Segments(disk, { clusterId, host, era, segmentBytes: SEGMENT_BYTES });
  try {
    copyEntries(segments, groups);
  } finally {
    segments.close();
  }
  markOpened(disk, era);
  // Last: a folder without an identity is no journal.
  writeIdentity(disk, { ...identity, promisedEra: era });
}

/** Of all groups together: their entries lie side by side, and a journal that its host writes to should be read quickly. */
function copyEntries(segments: Segments, groups: readonly CopiedGroup[]): void {
  const batches = new Map(
    groups.map(({ group, sequence }) => [group, new GroupBatch(group, sequence.snapshotIndex)]),
  );
  const spans = groups.map(({ group, sequence, below }) => {
    const { store, snapshotIndex: from, end } = sequence;
    return { group, store, from, below: Math.min(below, end) };
  });
  for (const stretch of readTogether(spans)) {
    const batch = batches.get(stretch.group)!;
    for (const entry of entriesIn(stretch)) {
      if (!batch.hasRoom(entry.count)) batch.writeTo(segments);
      batch.add(entry);
    }
  }
  for (const batch of batches.values()) batch.writeTo(segments);
}

const HEAD_WORDS = BATCH_HEAD_WORDS + SECTION.head;

/** A batch with one section. */
class GroupBatch {
  private words = new Int32Array(BATCH_WORDS);
  /** Where its next entry goes. */
  private at: number = HEAD_WORDS;
  private next: number;

  constructor(
    private readonly group: number,
    private first: number,
  ) {
    this.next = first;
  }

  hasRoom(entryWords: number): boolean {
    return this.sizeWith(entryWords) <= this.words.length;
  }

  /** The last sector is filled up with zeros. */
  private sizeWith(entryWords: number): number {
    return this.at + 1 + entryWords + SECTOR_WORDS;
  }

  /** There must be room, or no other entry. */
  add({ words, at, count }: JournalEntry): void {
    if (!this.hasRoom(count)) this.words = new Int32Array(this.sizeWith(count));
    this.words[this.at] = count;
    this.words.set(words.subarray(at, at + count), this.at + 1);
    this.at += 1 + count;
    this.next++;
  }

  /** Then it is empty, for the entries that follow. */
  writeTo(segments: Segments): void {
    const { words, at, first, next, group } = this;
    if (next === first) return;
    words[BATCH_HEAD_WORDS + SECTION.group] = group;
    words[BATCH_HEAD_WORDS + SECTION.leaps] = 0;
    words[BATCH_HEAD_WORDS + SECTION.words] = at - HEAD_WORDS;
    writeWide(words, BATCH_HEAD_WORDS + SECTION.index, first);
    for (const _ of segments.makeRoom(at));
    const sealed = sealBatch(words, segments.headerOf(at - BATCH_HEAD_WORDS));
    segments.write(bytesOf(words, 0, sealed), new Map([[group, next]]));
    segments.sync();
    this.first = next;
    this.at = HEAD_WORDS;
  }
}
