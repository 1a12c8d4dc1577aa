/**
 * Reads the journal of a host: which eras it has, and what it has of each group.
 *
 * The entries of a group continue its last snapshot that counts. Entries behind a gap, which were left out because the
 * disk was slow, are ignored until a snapshot that counts lies behind the gap. But they may continue a snapshot at a mark
 * that does not count yet: such sequences are beside the one that counts. What is read may be in the page cache only: a
 * reader that relies on it calls `settle` first.
 */
import { nextFromParentOf } from '../protocol/leadership/snapshot.js';
import type { Disk } from './disk.js';
import { EraEntries } from './era-entries.js';
import {
  eraFolder,
  eraOf,
  type JournalIdentity,
  openedPath,
  type SnapshotHeader,
  snapshotOf,
  snapshotPath,
} from './format.js';
import { corrupt, readIdentity } from './identity.js';
import { rewriteEnd, type Scan, type Section, scanSegments } from './scan.js';
import type { CountedSequence, JournalSequence, SequencePart } from './sequence.js';
import { readSnapshotHeader, readSnapshotWords } from './snapshot-file.js';

/** Of a snapshot: enough for its counters. */
const FIRST_WORDS = 64;

/**
 * @internal Makes all that a journal contains durable, before it is read by somebody who relies on it. An earlier process may have
 * ended before it has synced, or because a sync has failed. Apart from the last batches, nothing is read of which a sync has
 * failed: drafts are renamed, and segments followed by others, only after a sync. @throws TRAM_CORRUPT
 */
export function settle(disk: Disk): void {
  const identity = readIdentity(disk);
  for (const name of disk.list('')) {
    const era = eraOf(name);
    if (era === undefined) continue;
    if (identity !== undefined) rewriteEnd(disk, era, identity);
    for (const file of disk.list(name)) syncFile(disk, `${name}/${file}`);
    disk.syncFolder(name);
  }
  if (disk.list('').length > 0) disk.syncFolder('');
}

function syncFile(disk: Disk, path: string): void {
  const file = disk.open(path, 'write');
  try {
    file.sync();
  } finally {
    file.close();
  }
}

/** @internal */
export class JournalReader {
  /** Undefined if there is no journal yet. */
  readonly identity: JournalIdentity | undefined;
  /** Ascending. */
  readonly eras: readonly number[];
  private readonly scanned = new Map<number, EraContents>();

  /** @throws TRAM_CORRUPT; so do the methods, which read more */
  constructor(private readonly disk: Disk) {
    this.identity = readIdentity(disk);
    const eras = disk.list('').flatMap((name) => eraOf(name) ?? []);
    this.eras = eras.sort((one, other) => one - other);
  }

  /** Was the era opened by all groups? */
  isOpened(era: number): boolean {
    return this.disk
      .list(eraFolder(era))
      .some((name) => `${eraFolder(era)}/${name}` === openedPath(era));
  }

  /** The groups of which the era has a snapshot that counts, ascending. */
  groups(era: number): number[] {
    return [...this.contents(era).sequences.keys()].sort((one, other) => one - other);
  }

  /** Undefined if the journal has no snapshot of the group that counts. */
  sequence(era: number, group: number): CountedSequence | undefined {
    return this.contents(era).sequences.get(group);
  }

  /** What the journal has of a group: first the sequence that counts, then those that do not yet. Empty if none counts. */
  sequences(era: number, group: number): readonly JournalSequence[] {
    const counted = this.sequence(era, group);
    return counted === undefined ? [] : [counted, ...counted.pending];
  }

  /** All snapshots of an era that do not count yet, by group and index: also those that no recovery uses. */
  pendingSnapshots(era: number): readonly PendingSnapshot[] {
    if (this.identity === undefined) return [];
    const entries = new EraEntries(this.disk, era);
    const found = [...readSnapshots(this.disk, era, this.identity, 'pending', entries)];
    return found.sort(
      (one, other) => one.group - other.group || one.snapshotIndex - other.snapshotIndex,
    );
  }

  /** The segments of an era. */
  segments(era: number): Scan {
    return this.contents(era).scan;
  }

  private contents(era: number): EraContents {
    let contents = this.scanned.get(era);
    if (contents === undefined) {
      contents = readEra(this.disk, era, this.identity);
      this.scanned.set(era, contents);
    }
    return contents;
  }
}

/** @internal A sequence of which only the snapshot was read. */
export type PendingSnapshot = Pick<JournalSequence, 'snapshotIndex' | 'mark' | 'readSnapshot'> & {
  readonly group: number;
};

interface EraContents {
  readonly sequences: ReadonlyMap<number, Sequence>;
  readonly scan: Scan;
}

function readEra(disk: Disk, era: number, identity: JournalIdentity | undefined): EraContents {
  if (identity === undefined) {
    throw corrupt(eraFolder(era), 0, 'is there, but the journal has no identity');
  }
  const sequences = new Map<number, Sequence>();
  const entries = new EraEntries(disk, era);
  for (const found of readSnapshots(disk, era, identity, 'snapshot', entries)) {
    const other = sequences.get(found.group);
    if (other !== undefined && other.snapshotIndex >= found.snapshotIndex) continue;
    sequences.set(found.group, found);
  }
  for (const found of readSnapshots(disk, era, identity, 'pending', entries)) {
    // Where none counts, the era is not present. One that is older than that which counts was about to be removed.
    const counted = sequences.get(found.group);
    if (counted === undefined || found.snapshotIndex <= counted.snapshotIndex) continue;
    if (found.mark > 0) counted.pending.push(found);
  }
  for (const { pending } of sequences.values()) {
    pending.sort((one, other) => one.snapshotIndex - other.snapshotIndex);
  }
  const scan = scanSegments(disk, era, identity, (section) => {
    const counted = sequences.get(section.group);
    counted?.add(section);
    for (const pending of counted?.pending ?? []) pending.add(section);
  });
  entries.segments = scan.segments;
  return { sequences, scan };
}

function* readSnapshots(
  disk: Disk,
  era: number,
  { clusterId }: JournalIdentity,
  state: 'snapshot' | 'pending',
  entries: EraEntries,
): Iterable<Sequence> {
  for (const file of disk.list(eraFolder(era))) {
    const found = snapshotOf(file, state);
    if (found === undefined) continue;
    const { group, name } = found;
    const path = snapshotPath(era, group, name, state);
    const header = readSnapshotHeader(disk, path);
    if (
      header.era !== era ||
      header.group !== group ||
      header.clusterId !== clusterId ||
      (name !== 'opening' && header.index !== name)
    ) {
      throw corrupt(path, 0, 'is a snapshot of something else');
    }
    yield new Sequence(disk, path, header, state === 'snapshot', entries);
  }
}

class Sequence implements CountedSequence {
  readonly group: number;
  readonly snapshotIndex: number;
  readonly isFirst: boolean;
  readonly mark: number;
  readonly pending: Sequence[] = [];
  end: number;
  lastMark: number;
  bytes = 0;
  readonly parts: SequencePart[] = [];
  /** Has the journal left out entries from `end` on? */
  private isCut = false;
  /** That of the last part. */
  private lastSegment: number | undefined;

  constructor(
    private readonly disk: Disk,
    private readonly path: string,
    private readonly header: SnapshotHeader,
    counts: boolean,
    readonly store: EraEntries,
  ) {
    this.group = header.group;
    this.snapshotIndex = header.index;
    this.mark = !counts && header.isAtMark ? header.marks : 0;
    this.lastMark = header.marks;
    this.isFirst = header.words === 0;
    this.end = header.index;
  }

  /** @throws TRAM_CORRUPT */
  add(section: Section): void {
    const { first, end, leaps, path, at } = section;
    if (first > this.end) {
      if (!leaps && !this.isCut) {
        const missing = `lacks the entries ${this.end} to ${first - 1} of group ${section.group}`;
        throw corrupt(path, at * 4, missing);
      }
      this.isCut = true;
      return;
    }
    this.isCut = false;
    if (end <= this.end) return;
    this.addPart(section);
    this.bytes += section.words * 4;
    this.end = end;
    this.lastMark = Math.max(this.lastMark, section.lastMark);
  }

  /** Sections of one segment make one part. So what is kept of a journal does not grow with its batches. */
  private addPart({
    segment,
    end,
    nextFromParent,
    destinationsLow,
    destinationsHigh,
  }: Section): void {
    const before = segment === this.lastSegment ? this.parts.pop() : undefined;
    this.parts.push({
      first: before?.first ?? this.end,
      end,
      nextFromParent: nextFromParent || (before?.nextFromParent ?? 0),
      destinationsLow: destinationsLow | (before?.destinationsLow ?? 0),
      destinationsHigh: destinationsHigh | (before?.destinationsHigh ?? 0),
    });
    this.lastSegment = segment;
  }

  get snapshotFromParent(): number {
    // Every count of an era starts with the index of its opening snapshot.
    if (this.isFirst) return this.snapshotIndex;
    return nextFromParentOf(this.readState(FIRST_WORDS));
  }

  readSnapshot(): Int32Array | undefined {
    return this.isFirst ? undefined : this.readState();
  }

  private readState(count?: number): Int32Array {
    return readSnapshotWords(this.disk, this.path, this.header, count);
  }
}
