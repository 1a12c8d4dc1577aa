/**
 * Writes the journal of a host for one era: takes entries and snapshots from the ring, and publishes how far each group is
 * durable. Runs in the journal thread of the host, and in the simulator.
 *
 * It works in steps, and no step makes more than one call to the disk. So a simulator can cut the power between any two.
 * (`prepare` makes a few, to files that nobody needs yet.) A round gathers what the ring has, of all groups, into one batch,
 * writes it, makes it durable, and publishes. With `everySecond` it makes batches durable when it is asked to, or when many
 * bytes are not.
 *
 * A snapshot is written beside the entries. Once it is durable, and the group says that it is stable, or taken at a mark that
 * is complete, it counts: older snapshots are removed, and segments that have only older entries are used again.
 *
 * Invariants: an index is published only when everything below it, from a snapshot that counts on, is durable. A segment
 * is durable before the next one has a batch. A file that may be needed after a power cut is not written to.
 */
import { FRAME_WORDS, HEAD_WORDS } from '../memory/record.js';
import { assert } from '../protocol/assert.js';
import { writeWide } from '../protocol/wide.js';
import type { Disk } from './disk.js';
import {
  BATCH_HEAD_WORDS,
  bytesOf,
  eraFolder,
  SECTION,
  SECTOR_WORDS,
  sealBatch,
  sectors,
  snapshotOf,
  snapshotPath,
} from './format.js';
import { type GroupContents, GroupProgress } from './group-progress.js';
import { type JournalRing, KIND, type RingRecord } from './ring.js';
import { Segments, type SegmentsStart } from './segments.js';
import { SnapshotDraft } from './snapshot-file.js';

/** @internal */
export interface WriterOptions {
  readonly clusterId: string;
  readonly host: number;
  readonly era: number;
  /** Makes every batch durable: `durability: 'always'`. */
  readonly syncsEachBatch: boolean;
  readonly segmentBytes: number;
  /** At least as large as the largest entry. */
  readonly batchBytesMax: number;
  /** Is told that a group is durable up to a higher index, or holds a later mark. */
  readonly onDurable: (group: number) => void;
}

/** @internal What the journal has of a group when the writer begins. All of it is durable. */
export interface GroupStart {
  readonly group: number;
  /** Undefined if there is no snapshot that counts. Then others that wait are removed. */
  readonly has?: GroupContents | undefined;
}

/** A longer sync would hold up the ring. */
const UNSYNCED_BYTES_MAX = 8 * 2 ** 20;
/** Of a snapshot that is being written. */
const UNSYNCED_DRAFT_BYTES_MAX = 2 ** 20;

/** @internal */
export class JournalWriter {
  private readonly folder: string;
  private readonly segments: Segments;
  private readonly progress = new Map<number, GroupProgress>();
  private readonly record: RingRecord = { kind: 0, group: 0, index: 0, words: 0, position: 0 };
  /** The batch that is being gathered, and how many words of sections it has. */
  private readonly batch: Int32Array;
  private gathered = 0;
  /** By group: the index after its last entry in the batch. */
  private readonly batchEnds = new Map<number, number>();
  private piece = new Int32Array(0);
  private readonly drafts = new Map<number, SnapshotDraft>();
  private unsyncedBytes = 0;
  private isSyncWanted = false;
  private readonly steps: Iterator<boolean, never>;

  /** @param starts  all groups of the host */
  constructor(
    private readonly disk: Disk,
    private readonly ring: JournalRing,
    private readonly options: WriterOptions,
    starts: readonly GroupStart[],
    segments?: SegmentsStart,
  ) {
    this.folder = eraFolder(options.era);
    // A batch is filled up to whole sectors.
    const words = sectors(BATCH_HEAD_WORDS + (options.batchBytesMax >> 2)) * SECTOR_WORDS;
    this.batch = new Int32Array(words);
    this.segments = new Segments(disk, options, segments);
    for (const { group, has } of starts) {
      const progress = new GroupProgress(group, has);
      this.progress.set(group, progress);
      ring.publishDurable(group, progress.durable);
      ring.publishSnapshot(group, progress.snapshotIndex);
    }
    const kept = starts.flatMap(({ group, has }) =>
      (has?.pending ?? []).map(({ snapshotIndex }) => this.pendingPath(group, snapshotIndex)),
    );
    this.steps = this.work(new Set(kept));
  }

  /** Does the next piece of work. False if there is nothing to do. @throws what the disk throws: then it has failed for good */
  step(): boolean {
    return this.steps.next().value;
  }

  /** Is the next segment there already? */
  get isPrepared(): boolean {
    return this.segments.isPrepared;
  }

  /** Prepares a part of the next segment, when there is nothing else to do. @param bytes  how much of it */
  prepare(bytes?: number): void {
    this.segments.prepare(bytes);
  }

  /** Makes durable what was written, with the next steps. */
  wantSync(): void {
    this.isSyncWanted = true;
  }

  /** How often it has made batches durable, and how many bytes these have. */
  get syncs(): number {
    return this.segments.syncs;
  }

  get syncedBytes(): number {
    return this.segments.syncedBytes;
  }

  /** Snapshots that do not count yet. */
  get pendingSnapshots(): number {
    let count = 0;
    for (const progress of this.progress.values()) count += progress.pendingCount;
    return count;
  }

  close(): void {
    for (const draft of this.drafts.values()) draft.close();
    this.segments.close();
  }

  /** @param kept  the paths of snapshots that wait until they count */
  private *work(kept: ReadonlySet<string>): Generator<boolean, never> {
    yield* this.segments.begin(kept);
    for (;;) {
      const hasTaken = yield* this.gather();
      if (this.gathered > 0) yield* this.write();
      if (this.unsyncedBytes > 0 && this.isSyncDue) yield* this.sync();
      const hasCounted = yield* this.countSnapshots();
      if (!hasTaken && !hasCounted) yield false;
    }
  }

  // --- batches -------------------------------------------------------------------------------------

  /** Takes records until the ring is empty or the batch is full. Returns whether it has taken any. */
  private *gather(): Generator<boolean, boolean> {
    const { ring, record } = this;
    let hasTaken = false;
    while (ring.peek(record)) {
      if (record.kind === KIND.entries) {
        if (!this.addSection()) break;
      } else if (record.kind === KIND.stable) {
        this.groupOf(record).noteStable(record.index);
      } else if (record.kind === KIND.complete) {
        this.groupOf(record).noteComplete(record.index);
      } else if (record.kind === KIND.mark) {
        const progress = this.groupOf(record);
        progress.noteMark(record.index, ring.wordAt(record.position));
        this.publish(progress);
      } else {
        // Entries are more urgent than snapshots. But if the disk is behind, pieces between them must not make batches small.
        const isInPassing = record.kind === KIND.piece && ring.isBehind;
        if (this.gathered > 0 && !isInPassing) break;
        yield* this.takeSnapshotRecord();
      }
      ring.take(record);
      hasTaken = true;
    }
    return hasTaken;
  }

  /** Adds the entries of the record to the batch. False if there is no room. */
  private addSection(): boolean {
    const { ring, record, batch, gathered } = this;
    const head = BATCH_HEAD_WORDS + gathered;
    // Without its frame, each entry takes fewer words than in the ring.
    if (head + SECTION.head + record.words > batch.length) {
      assert(gathered > 0, 'a record fits into an empty batch');
      return false;
    }
    const progress = this.groupOf(record);
    let to = head + SECTION.head;
    let index = record.index;
    for (let at = record.position; at < record.position + record.words; index++) {
      const words = ring.wordAt(at);
      const body = words - FRAME_WORDS;
      batch[to] = body;
      ring.copyOut(at + HEAD_WORDS, batch, to + 1, body);
      to += 1 + body;
      at += words;
    }
    batch[head + SECTION.group] = record.group;
    batch[head + SECTION.leaps] = progress.write(record.index, index) ? 1 : 0;
    batch[head + SECTION.words] = to - head - SECTION.head;
    writeWide(batch, head + SECTION.index, record.index);
    this.batchEnds.set(record.group, index);
    this.gathered = to - BATCH_HEAD_WORDS;
    return true;
  }

  private *write(): Generator<boolean, void> {
    const { batch, segments } = this;
    yield* segments.makeRoom(BATCH_HEAD_WORDS + this.gathered);
    const words = sealBatch(batch, segments.headerOf(this.gathered));
    segments.write(bytesOf(batch, 0, words), this.batchEnds);
    this.unsyncedBytes += words * 4;
    this.gathered = 0;
    this.batchEnds.clear();
    yield true;
  }

  private get isSyncDue(): boolean {
    const isMuch = this.unsyncedBytes >= UNSYNCED_BYTES_MAX;
    return this.options.syncsEachBatch || this.isSyncWanted || isMuch;
  }

  private *sync(): Generator<boolean, void> {
    this.segments.sync();
    this.unsyncedBytes = 0;
    this.isSyncWanted = false;
    yield true;
    for (const progress of this.progress.values()) {
      progress.sync();
      this.publish(progress);
    }
    // Replies wait for this news: it is told before the next batch is written.
    yield true;
  }

  // --- snapshots -----------------------------------------------------------------------------------

  private *takeSnapshotRecord(): Generator<boolean, void> {
    const { kind, group, index, position } = this.record;
    const progress = this.groupOf(this.record);
    if (kind === KIND.snapshot) {
      const { clusterId, era } = this.options;
      const marks = this.ring.wordAt(position);
      const isAtMark = this.ring.wordAt(position + 1) === 1;
      progress.beginSnapshot(index, marks, isAtMark);
      const subject = { clusterId, era, group, index, marks, isAtMark };
      this.drafts.set(group, new SnapshotDraft(this.disk, subject));
      yield true;
    } else if (kind === KIND.piece) {
      yield* this.addPiece(this.drafts.get(group)!);
    } else if (kind === KIND.snapshotEnd && progress.needsSnapshot) {
      yield* this.endSnapshot(progress, this.drafts.get(group)!);
    } else {
      this.drafts.get(group)?.remove();
      this.drafts.delete(group);
      progress.dropSnapshot();
      yield true;
    }
  }

  private *addPiece(draft: SnapshotDraft): Generator<boolean, void> {
    const { position, words } = this.record;
    if (this.piece.length < words) this.piece = new Int32Array(words);
    this.ring.copyOut(position, this.piece, 0, words);
    draft.add(this.piece.subarray(0, words));
    yield true;
    if (draft.unsyncedBytes < UNSYNCED_DRAFT_BYTES_MAX) return;
    draft.sync();
    yield true;
  }

  private *endSnapshot(progress: GroupProgress, draft: SnapshotDraft): Generator<boolean, void> {
    draft.writeHeader();
    yield true;
    draft.sync();
    yield true;
    draft.rename('pending');
    this.drafts.delete(progress.group);
    yield true;
    this.disk.syncFolder(this.folder);
    yield true;
    const needless = progress.endSnapshot();
    this.publish(progress);
    for (const index of needless) {
      this.disk.remove(this.pendingPath(progress.group, index));
      yield true;
    }
  }

  /** Lets snapshots count that may count now. Returns whether there were any. */
  private *countSnapshots(): Generator<boolean, boolean> {
    let hasCounted = false;
    for (const progress of this.progress.values()) {
      const index = progress.countable;
      if (index === undefined) continue;
      yield* this.countSnapshot(progress, index);
      hasCounted = true;
    }
    if (hasCounted) {
      yield* this.segments.free((group) => this.progress.get(group)!.snapshotIndex);
    }
    return hasCounted;
  }

  private *countSnapshot(progress: GroupProgress, index: number): Generator<boolean, void> {
    const { disk, folder, options } = this;
    const { group } = progress;
    disk.rename(
      this.pendingPath(group, index),
      snapshotPath(options.era, group, index, 'snapshot'),
    );
    yield true;
    disk.syncFolder(folder);
    yield true;
    const older = progress.count(index);
    this.ring.publishSnapshot(group, index);
    this.publish(progress);
    for (const pending of older) {
      disk.remove(this.pendingPath(group, pending));
      yield true;
    }
    for (const name of disk.list(folder)) {
      const found = snapshotOf(name);
      if (found?.group !== group || found.name === index) continue;
      disk.remove(`${folder}/${name}`);
      yield true;
    }
  }

  /** If there is something new. */
  private publish({ group, durable, heldMark }: GroupProgress): void {
    const { ring } = this;
    if (ring.durable(group) === durable && ring.heldMark(group) === heldMark) return;
    ring.publishDurable(group, durable);
    ring.publishHeldMark(group, heldMark);
    this.options.onDurable(group);
  }

  private pendingPath(group: number, index: number): string {
    return snapshotPath(this.options.era, group, index, 'pending');
  }

  private groupOf({ group }: RingRecord): GroupProgress {
    return this.progress.get(group)!;
  }
}
