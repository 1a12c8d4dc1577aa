/**
 * Reads entries from the segments of an era, of one group or of several, in one pass: a segment at a time, into one buffer.
 *
 * The segments were scanned before, so it is known which of them are needed, and where they end. Each batch is checked once more:
 * the disk may return other bytes than at the scan, and a checksum costs little compared with the delivery.
 */
import { readWide } from '../protocol/wide.js';
import type { Disk } from './disk.js';
import {
  BATCH_HEAD_WORDS,
  batchAt,
  eraFolder,
  SECTION,
  SECTOR_WORDS,
  sectors,
  segmentPath,
} from './format.js';
import { corrupt, readWords } from './identity.js';
import type { ScannedSegment } from './scan.js';
import { type EntryStore, type GroupStretch, type Span, STRETCH_ENTRIES_MAX } from './sequence.js';

/** What is still to be read of a group. */
interface Wanted {
  next: number;
  readonly below: number;
}

/** @internal */
export class EraEntries implements EntryStore {
  /** As they were scanned, ascending. */
  segments: readonly ScannedSegment[] = [];
  /** Where a pass was left before its end. The next one probably goes on there. */
  private left: { readonly segment: number; readonly words: Int32Array } | undefined;

  constructor(
    private readonly disk: Disk,
    private readonly era: number,
  ) {}

  *read(spans: readonly Span[]): Generator<GroupStretch, void> {
    const { disk, era } = this;
    const wanted = new Map<number, Wanted>();
    for (const { group, from, below } of spans) wanted.set(group, { next: from, below });
    // A pass within another one has a buffer of its own.
    let loaded = this.left;
    this.left = undefined;
    try {
      for (const scanned of this.segments) {
        if (!isNeeded(scanned.ends, wanted)) continue;
        const { segment } = scanned;
        if (loaded?.segment !== segment) {
          const buffer = loaded?.words.buffer as ArrayBuffer | undefined;
          loaded = { segment, words: readWords(disk, segmentPath(era, segment), buffer) };
        }
        yield* this.readSegment(loaded.words, scanned, wanted);
      }
      loaded = undefined;
    } finally {
      this.left = loaded;
    }
    for (const [group, { next, below }] of wanted) {
      if (next < below) throw corrupt(eraFolder(era), 0, `lost entry ${next} of group ${group}`);
    }
  }

  /** One group after the other: as long as a replica goes on, the processor has its state at hand. */
  private *readSegment(
    words: Int32Array,
    { segment, words: size }: ScannedSegment,
    wanted: ReadonlyMap<number, Wanted>,
  ): Iterable<GroupStretch> {
    const stretch = new SectionStretch(words);
    for (const [group, heads] of this.sectionsIn(words, segment, size)) {
      const ofGroup = wanted.get(group);
      if (ofGroup === undefined) continue;
      for (const head of heads) {
        stretch.enter(head);
        while (stretch.advance(ofGroup.next, ofGroup.below)) {
          ofGroup.next = stretch.first + stretch.count;
          yield stretch;
        }
      }
    }
  }

  /** By group: where its sections begin. @throws TRAM_CORRUPT */
  private sectionsIn(
    words: Int32Array,
    segment: number,
    size: number,
  ): ReadonlyMap<number, readonly number[]> {
    const sections = new Map<number, number[]>();
    for (let at = SECTOR_WORDS; at < size; ) {
      const batch = batchAt(words, at, segment);
      if (batch === undefined) {
        throw corrupt(segmentPath(this.era, segment), at * 4, 'had a batch there a moment ago');
      }
      const end = at + BATCH_HEAD_WORDS + batch.words;
      for (let head = at + BATCH_HEAD_WORDS; head < end; ) {
        const group = words[head + SECTION.group];
        const ofGroup = sections.get(group);
        if (ofGroup === undefined) sections.set(group, [head]);
        else ofGroup.push(head);
        head += SECTION.head + words[head + SECTION.words];
      }
      at += sectors(BATCH_HEAD_WORDS + batch.words) * SECTOR_WORDS;
    }
    return sections;
  }
}

/** Does a segment have entries that are still wanted? Some may lie behind a gap: then it is read in vain. */
function isNeeded(ends: ReadonlyMap<number, number>, wanted: ReadonlyMap<number, Wanted>): boolean {
  for (const [group, { next, below }] of wanted) {
    if (next < below && (ends.get(group) ?? 0) > next) return true;
  }
  return false;
}

/** Goes through a section, stretch by stretch. */
class SectionStretch implements GroupStretch {
  group = 0;
  first = 0;
  count = 0;
  at = 0;
  end = 0;
  private sectionEnd = 0;

  constructor(readonly words: Int32Array) {}

  /** The section that begins at `head`; before its first stretch. */
  enter(head: number): void {
    const { words } = this;
    this.group = words[head + SECTION.group];
    this.first = readWide(words, head + SECTION.index);
    this.count = 0;
    this.end = head + SECTION.head;
    this.sectionEnd = this.end + words[head + SECTION.words];
  }

  /** The next stretch, if the section has one that begins with the entry `next`. It ends below the entry `below`. */
  advance(next: number, below: number): boolean {
    const { words, sectionEnd } = this;
    let index = this.first + this.count;
    let end = this.end;
    for (; index < next && end < sectionEnd; index++) end += 1 + words[end];
    this.first = index;
    this.at = end;
    const last = Math.min(below, index + STRETCH_ENTRIES_MAX);
    for (; index < last && end < sectionEnd; index++) end += 1 + words[end];
    this.count = index - this.first;
    this.end = end;
    return this.count > 0 && this.first === next;
  }
}
