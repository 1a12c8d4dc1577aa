/**
 * What the journal of a host has of one group in one era: a snapshot, and the decided entries that follow it. The reader of
 * journals makes these; recovery and the start of a replica read them. One sequence starts with the snapshot that counts. Others
 * may start with snapshots at marks that do not count yet. All are parts of the group's one order.
 *
 * Entries are read in *stretches*: consecutive entries, side by side in the reader's buffer. Those of several groups that lie in
 * the same files are read together, in one pass.
 */
import { assert } from '../protocol/assert.js';
import type { Stretch } from '../protocol/member.js';

/** @internal A stretch has so many entries at most: the host that replays must poll its network in between. */
export const STRETCH_ENTRIES_MAX = 256;

/** @internal Valid until the next one is taken. */
export interface GroupStretch extends Stretch {
  readonly group: number;
}

/** @internal The entries `from` to `below - 1` of a group. */
export interface Span {
  readonly group: number;
  readonly from: number;
  readonly below: number;
}

/** @internal Where entries lie, of one group or of several. */
export interface EntryStore {
  /**
   * All that is asked for, in one pass. Stretches of different groups come in any order, those of one group in its own.
   * @param spans  at most one for each group, of which the store has all @throws TRAM_CORRUPT
   */
  read(spans: readonly Span[]): Iterable<GroupStretch>;
}

/** @internal A span, and where it lies. */
export interface StoredSpan extends Span {
  readonly store: EntryStore;
}

/** @internal Those in the same store in one pass. @param spans  at most one for each group @throws TRAM_CORRUPT */
export function* readTogether(spans: readonly StoredSpan[]): Iterable<GroupStretch> {
  for (const store of new Set(spans.map((span) => span.store))) {
    yield* store.read(spans.filter((span) => span.store === store));
  }
}

/** @internal */
export interface GroupSequence {
  readonly group: number;
  /** The index of the first entry after the snapshot. The entries are `snapshotIndex` to `end - 1`, without a gap. */
  readonly snapshotIndex: number;
  /** The snapshot is the opening snapshot of the first era: no state, the service starts as it is. */
  readonly isFirst: boolean;
  /** `counters.nextFromParent` of the snapshot. */
  readonly snapshotFromParent: number;
  readonly end: number;
  /** Has the entries. */
  readonly store: EntryStore;
  /** The words of the member's snapshot; undefined if it `isFirst`. @throws TRAM_CORRUPT */
  readSnapshot(): Int32Array | undefined;
}

/** @internal As it is on the disk. */
export interface JournalSequence extends GroupSequence {
  /** The mark at which its snapshot was taken; 0 if the snapshot counts. */
  readonly mark: number;
  /** The last mark that the snapshot has seen, or that an entry is; 0 if there is none. */
  readonly lastMark: number;
  /** The size of the entries. */
  readonly bytes: number;
  /** Its entries, one part for each segment: which of them need not be read to answer a question. */
  readonly parts: readonly SequencePart[];
}

/** @internal What the entries `first` to `end - 1` have in common. */
export interface SequencePart {
  readonly first: number;
  readonly end: number;
  /** One more than the parent's index of the last one that has come from the parent; 0 if none has. */
  readonly nextFromParent: number;
  /** All their destinations. */
  readonly destinationsLow: number;
  readonly destinationsHigh: number;
}

/** @internal The sequence that starts with the snapshot that counts. */
export interface CountedSequence extends JournalSequence {
  /** Those that start with later snapshots, at marks, which do not count yet. Ascending. */
  readonly pending: readonly JournalSequence[];
}

/** @internal The entries `from` to `below - 1`, as far as the sequence has them. @throws TRAM_CORRUPT */
export function between(
  { group, snapshotIndex, end, store }: GroupSequence,
  from: number,
  below: number,
): Iterable<Stretch> {
  assert(from >= snapshotIndex, 'a sequence has the entries after its snapshot');
  return from < below ? store.read([{ group, from, below: Math.min(below, end) }]) : [];
}

/**
 * @internal The body of a decided entry, as in the log but without its frame: the message, then its source (layout.ts). Its
 * words are valid until the next entry is taken.
 */
export interface JournalEntry {
  readonly index: number;
  readonly words: Int32Array;
  readonly at: number;
  readonly count: number;
}

/** @internal One entry after the other, where speed does not matter. @throws TRAM_CORRUPT */
export function* entriesOf(
  sequence: GroupSequence,
  from: number = sequence.snapshotIndex,
): Iterable<JournalEntry> {
  for (const stretch of between(sequence, from, sequence.end)) yield* entriesIn(stretch);
}

/** @internal */
export function* entriesIn({ first, words, at, end }: Stretch): Iterable<JournalEntry> {
  let index = first;
  for (let body = at + 1; body <= end; body += words[body - 1] + 1) {
    yield { index: index++, words, at: body, count: words[body - 1] };
  }
}
