/**
 * What the journal of a host has of one group in one era: a snapshot, and the decided entries that follow it. The reader of
 * journals makes these; recovery and the start of a replica read them. There is one that starts with the snapshot that counts.
 * There may be others, that start with snapshots at marks which do not count yet. All are parts of the group's one order.
 */
import { assert } from '../protocol/assert.js';
import type { StartEntry } from '../protocol/member.js';

/**
 * @internal The body of a decided entry, as in the log but without its frame: the message, then its source (layout.ts). Its
 * words are valid until the next entry is taken.
 */
export type JournalEntry = StartEntry;

/** @internal */
export interface GroupSequence {
  /** The index of the first entry after the snapshot. The entries are `snapshotIndex` to `end - 1`, without a gap. */
  readonly snapshotIndex: number;
  /** The snapshot is the opening snapshot of the first era: no state, the service starts as it is. */
  readonly isFirst: boolean;
  /** `counters.nextFromParent` of the snapshot. */
  readonly snapshotFromParent: number;
  readonly end: number;
  /** The words of the member's snapshot; undefined if it `isFirst`. @throws TRAM_CORRUPT */
  readSnapshot(): Int32Array | undefined;
  /** @throws TRAM_CORRUPT */
  entries(from: number): Iterable<JournalEntry>;
}

/** @internal As it is on the disk. */
export interface JournalSequence extends GroupSequence {
  /** The mark at which its snapshot was taken; 0 if the snapshot counts. */
  readonly mark: number;
  /** The last mark that the snapshot has seen, or that an entry is; 0 if there is none. */
  readonly lastMark: number;
  /** The size of the entries. */
  readonly bytes: number;
}

/** @internal The sequence that starts with the snapshot that counts. */
export interface CountedSequence extends JournalSequence {
  /** Those that start with later snapshots, at marks, which do not count yet. Ascending. */
  readonly pending: readonly JournalSequence[];
}

/** @internal The entries `from` to `below - 1`, as far as the sequence has them. */
export function* between(
  sequence: GroupSequence,
  from: number,
  below: number,
): Iterable<JournalEntry> {
  assert(from >= sequence.snapshotIndex, 'a sequence has the entries after its snapshot');
  if (from >= below) return;
  for (const entry of sequence.entries(from)) {
    if (entry.index >= below) return;
    yield entry;
  }
}
