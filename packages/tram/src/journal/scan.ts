/**
 * Reads the segments of one era: which batches are intact, and where the sections of each group lie in them.
 *
 * A batch that is not intact ends the journal: the power was cut before it was durable. It is corruption instead if a later
 * batch says that it was durable, or if there are batches in a later segment that continue it: the writer makes a segment
 * durable before it begins the next one. A host that starts again writes to a new segment, and its first batch takes the
 * number of the one that was cut.
 *
 * Invariant: only the last segments of an era have no intact batch.
 */

import { MESSAGE, markNumberIn, parentIndexIn } from '../protocol/layout.js';
import { readWide } from '../protocol/wide.js';
import type { Disk } from './disk.js';
import {
  BATCH_HEAD_WORDS,
  type BatchHeader,
  batchAt,
  bytesOf,
  decodeSegmentHeader,
  eraFolder,
  FormatError,
  type JournalIdentity,
  SECTION,
  SECTOR_WORDS,
  type SegmentHeader,
  sectors,
  segmentOf,
  segmentPath,
} from './format.js';
import { checked, corrupt, readWords } from './identity.js';
import type { SequencePart } from './sequence.js';

/** @internal Entries of one group that lie side by side: the indices `first` to `end - 1`, and what they have in common. */
export interface Section extends SequencePart {
  readonly group: number;
  readonly leaps: boolean;
  /** The number of the last mark among them; 0 if there is none. */
  readonly lastMark: number;
  readonly segment: number;
  readonly path: string;
  /** Where its entries begin in the file, in words, and how many words they take. */
  readonly at: number;
  readonly words: number;
}

/** @internal */
export interface ScannedSegment {
  readonly segment: number;
  /** The number of its last intact batch; undefined if it has none. */
  readonly last: number | undefined;
  /** By group: the index after its last entry there. */
  readonly ends: ReadonlyMap<number, number>;
  /** Where its batches end. */
  readonly words: number;
}

/** @internal What the segments of an era contain. */
export interface Scan {
  readonly segments: readonly ScannedSegment[];
  /** The number of the last intact batch; 0 if there is none. */
  readonly lastBatch: number;
  /** The size of all segments. */
  readonly bytes: number;
}

/** @internal @param see  is shown each section, in the order of writing @throws TRAM_CORRUPT */
export function scanSegments(
  disk: Disk,
  era: number,
  identity: JournalIdentity,
  see: (section: Section) => void,
): Scan {
  const segments: ScannedSegment[] = [];
  let before: SegmentScan | undefined;
  let buffer: ArrayBuffer | undefined;
  let lastBatch = 0;
  let bytes = 0;
  for (const segment of segmentsOf(disk, era)) {
    if (before !== undefined && segment !== before.segment + 1) {
      throw corrupt(segmentPath(era, before.segment + 1), 0, 'is missing');
    }
    const path = segmentPath(era, segment);
    // Segments are large: all are read into one buffer, and nothing of a scan is kept but its summary.
    const words = readWords(disk, path, buffer);
    buffer = words.buffer as ArrayBuffer;
    const scan = new SegmentScan(words, path, { ...identity, era, segment });
    if (before !== undefined && scan.first !== undefined && scan.first !== lastBatch + 1) {
      throw corrupt(before.path, before.endBytes, `lacks the batch ${lastBatch + 1}`);
    }
    if (before?.first === undefined && before !== undefined && scan.first !== undefined) {
      throw corrupt(before.path, before.endBytes, 'lacks all its batches');
    }
    lastBatch = scan.last ?? lastBatch;
    scan.requireTornEnd(lastBatch === 0 ? undefined : lastBatch + 1);
    scan.showSections(see);
    bytes += words.length * 4;
    segments.push({ segment, last: scan.last, ends: scan.ends, words: scan.end });
    before = scan;
  }
  return { segments, lastBatch, bytes };
}

/**
 * @internal Writes the last batches of an era again, in their place: those of which no later batch says that they are durable. The
 * caller syncs them. If a sync of them has failed, and the host has started again since, they may be in the page cache only; and
 * the kernel takes them for synced, so a sync alone would not write them. Bytes that are on the disk are replaced by the same ones.
 * @throws TRAM_CORRUPT
 */
export function rewriteEnd(disk: Disk, era: number, identity: JournalIdentity): void {
  for (const segment of segmentsOf(disk, era).reverse()) {
    const path = segmentPath(era, segment);
    const scan = new SegmentScan(readWords(disk, path), path, { ...identity, era, segment });
    if (scan.last === undefined) continue;
    // A segment is durable before the next one has a batch. So those before this one are.
    scan.rewriteEnd(disk);
    return;
  }
}

function segmentsOf(disk: Disk, era: number): number[] {
  const numbers = disk.list(eraFolder(era)).flatMap((name) => segmentOf(name) ?? []);
  return numbers.sort((one, other) => one - other);
}

class SegmentScan {
  readonly segment: number;
  readonly ends = new Map<number, number>();
  /** The numbers of its first and its last intact batch. */
  readonly first: number | undefined;
  readonly last: number | undefined;
  /** What the last one says: the number of the last batch that was known to be durable. */
  private readonly synced: number = 0;
  /** Where the sections of each of them begin and end, in words. */
  private readonly batches: { readonly at: number; readonly end: number }[] = [];
  /** Where they end, in words. */
  readonly end: number;

  constructor(
    private readonly words: Int32Array,
    readonly path: string,
    expected: SegmentHeader,
  ) {
    this.segment = expected.segment;
    let at = SECTOR_WORDS;
    const isIntact = this.checkHeader(expected);
    for (let last: number | undefined; isIntact; ) {
      const batch = batchAt(words, at, this.segment);
      if (batch === undefined || (last !== undefined && batch.number !== last + 1)) break;
      const sections = at + BATCH_HEAD_WORDS;
      this.batches.push({ at: sections, end: sections + batch.words });
      last = batch.number;
      this.first ??= last;
      this.last = last;
      this.synced = batch.synced;
      at += sectors(BATCH_HEAD_WORDS + batch.words) * SECTOR_WORDS;
    }
    this.end = at;
  }

  /** False if the header is not intact. It is made durable before the first batch is written. */
  private checkHeader(expected: SegmentHeader): boolean {
    const { path, words } = this;
    let header: SegmentHeader;
    try {
      header = decodeSegmentHeader(words);
    } catch (error) {
      if (error instanceof FormatError && error.version === undefined) {
        if (this.batchAfter(SECTOR_WORDS) === undefined) return false;
      }
      return checked(path, 0, () => {
        throw error;
      });
    }
    const { clusterId, host, era, segment } = header;
    const isOurs = clusterId === expected.clusterId && host === expected.host;
    if (isOurs && era === expected.era && segment === expected.segment) return true;
    throw corrupt(path, 0, 'is a segment of another journal');
  }

  get endBytes(): number {
    return this.end * 4;
  }

  /** @param next  the number of the batch that would follow, if it is known @throws TRAM_CORRUPT */
  requireTornEnd(next: number | undefined): void {
    for (let at = this.end; ; ) {
      const later = this.batchAfter(at);
      if (later === undefined) return;
      const { number, synced } = later.batch;
      if (synced >= (next ?? number - 1)) {
        const known = `the batch ${number} behind it says that it was durable`;
        throw corrupt(this.path, this.endBytes, `has no intact batch there, but ${known}`);
      }
      at = later.at + SECTOR_WORDS;
    }
  }

  /** The next intact batch. */
  private batchAfter(
    from: number,
  ): { readonly at: number; readonly batch: BatchHeader } | undefined {
    for (let at = from; at < this.words.length; at += SECTOR_WORDS) {
      const batch = batchAt(this.words, at, this.segment);
      if (batch !== undefined) return { at, batch };
    }
    return undefined;
  }

  /** Writes the batches again that are not known to be durable. There is at least one batch. */
  rewriteEnd(disk: Disk): void {
    const { words, batches, first, synced, end } = this;
    const from = batches[Math.max(0, synced + 1 - first!)].at - BATCH_HEAD_WORDS;
    const file = disk.open(this.path, 'write');
    try {
      file.write(from * 4, bytesOf(words, from, Math.min(end, words.length)));
    } finally {
      file.close();
    }
  }

  showSections(see: (section: Section) => void): void {
    for (const { at: start, end } of this.batches) {
      for (let at = start; at < end; ) {
        const section = this.sectionAt(at);
        see(section);
        const { group } = section;
        this.ends.set(group, Math.max(section.end, this.ends.get(group) ?? 0));
        at = section.at + section.words;
      }
    }
  }

  private sectionAt(head: number): Section {
    const { words, path } = this;
    const at = head + SECTION.head;
    const size = words[head + SECTION.words];
    const first = readWide(words, head + SECTION.index);
    let count = 0;
    let lastMark = 0;
    let nextFromParent = 0;
    let destinationsLow = 0;
    let destinationsHigh = 0;
    for (let body = at + 1; body <= at + size; body += 1 + words[body - 1]) {
      count++;
      lastMark = markNumberIn(words, body) || lastMark;
      nextFromParent = parentIndexIn(words, body, words[body - 1]) + 1 || nextFromParent;
      destinationsLow |= words[body + MESSAGE.destinationsLow];
      destinationsHigh |= words[body + MESSAGE.destinationsHigh];
    }
    return {
      group: words[head + SECTION.group],
      leaps: words[head + SECTION.leaps] === 1,
      first,
      end: first + count,
      lastMark,
      nextFromParent,
      destinationsLow,
      destinationsHigh,
      segment: this.segment,
      path,
      at,
      words: size,
    };
  }
}
