/**
 * The segments of an era, as its writer uses them: the one that it writes to, those that are needed, and spare files.
 *
 * A spare file is filled with zeros and made durable before it becomes a segment, when the writer has nothing else to do:
 * then a sync of a batch writes no metadata of the file system. If there is no spare file when one is needed, the
 * segment grows as it is written: by many zeros from time to time, so that most syncs write no metadata either. A segment
 * that is not needed any more becomes a spare file.
 *
 * Generators yield after each call to the disk.
 */
import type { Disk, DiskFile } from './disk.js';
import {
  type BatchHeader,
  encodeSegmentHeader,
  eraFolder,
  openedPath,
  SECTOR_BYTES,
  sectors,
  segmentOf,
  segmentPath,
  snapshotOf,
  sparePath,
} from './format.js';
import type { ScannedSegment } from './scan.js';

/** @internal What is there when a writer begins. */
export interface SegmentsStart {
  readonly segments: readonly ScannedSegment[];
  readonly lastBatch: number;
}

interface SegmentsOptions {
  readonly clusterId: string;
  readonly host: number;
  readonly era: number;
  readonly segmentBytes: number;
}

interface Segment {
  readonly number: number;
  /** By group: the index after its last entry there. */
  readonly ends: Map<number, number>;
}

/** What one step fills with zeros, in a spare file or behind a batch: the next batch waits for it. */
const ZERO_BYTES = 2 ** 18;
const SPARES_MAX = 8;

/** @internal */
export class Segments {
  /** In the order of their numbers. The writer writes to the last one, if its file is open. */
  private readonly segments: Segment[];
  private file: DiskFile | undefined;
  private position = 0;
  /** The size of the file. What lies behind the position is zero, or from an earlier use of the file. */
  private size = 0;
  private nextSegment: number;
  private lastBatch: number;
  private syncedBatch: number;
  /** How often batches were made durable, and how many bytes these have. */
  syncs = 0;
  syncedBytes = 0;
  private unsyncedBytes = 0;
  /** The numbers of spare files. */
  private readonly spares: number[] = [];
  private nextSpare = 1;
  /** A spare file that is being filled with zeros. */
  private filling: { readonly file: DiskFile; readonly number: number; bytes: number } | undefined;

  constructor(
    private readonly disk: Disk,
    private readonly options: SegmentsOptions,
    { segments, lastBatch }: SegmentsStart = { segments: [], lastBatch: 0 },
  ) {
    // The last ones may have no intact batch. Their numbers are used again.
    const used = segments.filter(({ last }) => last !== undefined);
    this.segments = used.map(({ segment, ends }) => ({ number: segment, ends: new Map(ends) }));
    this.nextSegment = (used.at(-1)?.segment ?? 0) + 1;
    this.lastBatch = lastBatch;
    this.syncedBatch = lastBatch;
  }

  /**
   * Removes what an earlier writer has left and nobody needs: spare files, drafts, snapshots that did not count.
   * @param kept  the paths of those that wait until they count
   */
  *begin(kept: ReadonlySet<string>): Generator<boolean, void> {
    const { disk, options } = this;
    const folder = eraFolder(options.era);
    const needed = new Set(this.segments.map(({ number }) => number));
    const needless = disk.list(folder).filter((name) => {
      const segment = segmentOf(name);
      if (segment !== undefined) return !needed.has(segment);
      const path = `${folder}/${name}`;
      return snapshotOf(name) === undefined && path !== openedPath(options.era) && !kept.has(path);
    });
    // The last segments first, one after the other: after a power cut, none may be missing between two others.
    needless.sort((one, other) => (segmentOf(other) ?? 0) - (segmentOf(one) ?? 0));
    for (const name of needless) {
      disk.remove(`${folder}/${name}`);
      yield true;
      disk.syncFolder(folder);
      yield true;
    }
  }

  // --- batches -------------------------------------------------------------------------------------

  /** Makes room for a batch of so many words, in the present segment or in a new one. */
  *makeRoom(words: number): Generator<boolean, void> {
    const bytes = sectors(words) * SECTOR_BYTES;
    if (this.file !== undefined && this.position + bytes > this.options.segmentBytes) {
      this.sync();
      yield true;
      this.file.close();
      this.file = undefined;
    }
    if (this.file === undefined) yield* this.beginSegment();
    if (this.position + bytes > this.size) yield* this.growBehind(this.position + bytes);
  }

  /** A batch will end there: puts zeros behind it, up to the next multiple. They are made durable with it. */
  private *growBehind(end: number): Generator<boolean, void> {
    const multiple = Math.ceil(end / ZERO_BYTES) * ZERO_BYTES;
    // A batch may be larger than a segment.
    this.size = Math.max(end, Math.min(multiple, this.options.segmentBytes));
    if (this.size === end) return;
    this.file!.write(end, new Uint8Array(this.size - end));
    yield true;
  }

  headerOf(words: number): BatchHeader {
    const segment = this.segments[this.segments.length - 1].number;
    return { words, segment, number: this.lastBatch + 1, synced: this.syncedBatch };
  }

  /** @param ends  by group: the index after its last entry in the batch */
  write(bytes: Uint8Array, ends: ReadonlyMap<number, number>): void {
    this.file!.write(this.position, bytes);
    this.position += bytes.length;
    this.unsyncedBytes += bytes.length;
    this.lastBatch++;
    const segment = this.segments[this.segments.length - 1];
    for (const [group, end] of ends) {
      segment.ends.set(group, Math.max(end, segment.ends.get(group) ?? 0));
    }
  }

  sync(): void {
    this.file!.sync();
    this.syncs++;
    this.syncedBytes += this.unsyncedBytes;
    this.unsyncedBytes = 0;
    this.syncedBatch = this.lastBatch;
  }

  private *beginSegment(): Generator<boolean, void> {
    const { disk, options } = this;
    const number = this.nextSegment++;
    const path = segmentPath(options.era, number);
    const spare = this.spares.shift();
    const draft = spare === undefined ? path : sparePath(options.era, spare);
    const file = disk.open(draft, spare === undefined ? 'create' : 'write');
    yield true;
    file.write(0, encodeSegmentHeader({ ...options, segment: number }));
    yield true;
    file.sync();
    yield true;
    if (spare !== undefined) {
      disk.rename(draft, path);
      yield true;
    }
    disk.syncFolder(eraFolder(options.era));
    yield true;
    this.file = file;
    this.position = SECTOR_BYTES;
    this.size = spare === undefined ? SECTOR_BYTES : options.segmentBytes;
    this.segments.push({ number, ends: new Map() });
  }

  // --- spare files ---------------------------------------------------------------------------------

  /** Turns segments into spare files that have only entries below snapshots that count. @param keptFrom  by group */
  *free(keptFrom: (group: number) => number): Generator<boolean, void> {
    const { disk, options, segments, spares } = this;
    while (segments.length > 1 && isBelow(segments[0], keptFrom)) {
      const path = segmentPath(options.era, segments.shift()!.number);
      const spare = spares.length < SPARES_MAX ? this.nextSpare++ : undefined;
      if (spare === undefined) disk.remove(path);
      else disk.rename(path, sparePath(options.era, spare));
      yield true;
      // One after the other: after a power cut, no segment may be missing between two others.
      disk.syncFolder(eraFolder(options.era));
      yield true;
      // Only now: a file whose name may be that of a segment after a power cut must not be changed.
      if (spare !== undefined) spares.push(spare);
    }
  }

  /** Is there a spare file? */
  get isPrepared(): boolean {
    return this.spares.length > 0;
  }

  /** Fills a part of a spare file with zeros. @param bytes  how much of it */
  prepare(bytes: number = ZERO_BYTES): void {
    const { disk, options } = this;
    this.filling ??= this.createSpare();
    const { filling } = this;
    const count = Math.min(bytes, options.segmentBytes - filling.bytes);
    filling.file.write(filling.bytes, new Uint8Array(count));
    filling.file.sync();
    filling.bytes += count;
    if (filling.bytes < options.segmentBytes) return;
    filling.file.close();
    disk.syncFolder(eraFolder(options.era));
    this.spares.push(filling.number);
    this.filling = undefined;
  }

  private createSpare(): NonNullable<Segments['filling']> {
    const number = this.nextSpare++;
    const file = this.disk.open(sparePath(this.options.era, number), 'create');
    return { file, number, bytes: 0 };
  }

  close(): void {
    this.file?.close();
    this.filling?.file.close();
  }
}

function isBelow({ ends }: Segment, keptFrom: (group: number) => number): boolean {
  return [...ends].every(([group, end]) => end <= keptFrom(group));
}
