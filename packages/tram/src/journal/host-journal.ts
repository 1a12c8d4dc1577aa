/**
 * The journal of a host as its replicas see it. It puts what they hand over into the ring to the journal thread, and shows
 * what the thread has published. Nothing here waits for the disk, and nothing is allocated for entries.
 *
 * Replicas of one group on the same host share one `GroupJournal`. All calls are made by the thread that runs the replicas.
 *
 * If the ring is full, groups get room by turns (`turns.ts`). What a group has to put at a mark finds room without that: a
 * mark comes once, and the next one much later.
 */
import { assert } from '../protocol/assert.js';
import type { GroupJournal } from '../protocol/edges.js';
import { heldMarkOf } from './group-progress.js';
import { type JournalRing, KIND } from './ring.js';
import { Turn, Turns } from './turns.js';
import type { GroupStart } from './writer.js';

/** @internal */
export interface HostJournalOptions {
  /** With `durability: 'always'`. */
  readonly isAwaited: boolean;
  /** How many bytes of a group's entries are journaled between two snapshots. */
  readonly snapshotBytes: number;
  /** At least the words of the largest entry. */
  readonly recordWordsMax: number;
}

/**
 * How many small records a group may put at a mark although entries find no room: which mark is complete, the mark itself,
 * and the beginning of a snapshot.
 */
const RESERVED_AT_MARK = 3;
/** The same at any time: the end of a snapshot. */
const RESERVED_AT_END = 2;
/** While the disk is behind, a snapshot is wanted only once the journal has grown by this many times the usual size. */
const BUSY_FACTOR = 4;
/** The words of contents of the record with which a snapshot begins. */
const SNAPSHOT_WORDS = 2;
const NOTHING = new Int32Array(0);

/** @internal */
export class HostJournal {
  private readonly groups = new Map<number, GroupPart>();

  /** @param starts  all groups of the host */
  constructor(
    private readonly ring: JournalRing,
    options: HostJournalOptions,
    starts: readonly GroupStart[],
  ) {
    const { length } = starts;
    const turns = new Turns(ring, length * (RESERVED_AT_MARK + RESERVED_AT_END));
    for (const start of starts) {
      const part = new GroupPart(ring, options, start, turns, length * RESERVED_AT_END);
      this.groups.set(start.group, part);
    }
  }

  group(group: number): GroupJournal {
    return this.groups.get(group)!;
  }

  /**
   * After each turn of the host. Only now the journal thread is woken: then it takes what all replicas have handed over in
   * this turn as one batch, and a message to several groups waits for one sync.
   */
  endTurn(): void {
    this.ring.wakeConsumer();
  }

  /** Asks the journal thread to make everything durable that was handed over. */
  askToFlush(): void {
    this.ring.askToFlush();
  }

  get isFlushed(): boolean {
    return this.ring.isFlushed;
  }

  /** Ends the journal thread. */
  close(): void {
    this.ring.close();
  }
}

class GroupPart implements GroupJournal {
  readonly isAwaited: boolean;
  next: number;
  private readonly group: number;
  private seenDurable: number;
  private seenSnapshot: number;
  private seenHeldMark: number;
  /** Has the journal left entries out, so that it continues only from a snapshot at a mark? */
  private isLeftOut: boolean;
  /** Is a snapshot being handed over; and does it replace entries that were left out? */
  private isTaking = false;
  private hasLeapt = false;
  /** The index of the last snapshot that was begun after entries were left out, and not dropped; 0 if there is none. */
  private leaptTo: number;
  /** The index of the last snapshot that was begun, and not dropped. */
  private snapshotAt = 0;
  private stableIndex = 0;
  private completeMark = 0;
  /** The last mark that was handed over. */
  private lastMark = 0;
  /** Contents of records. */
  private readonly contents = new Int32Array(2);
  /** The bytes of entries since the last snapshot was begun, and those of that snapshot. */
  private bytes: number;
  private snapshotBytes = 0;
  private readonly entriesTurn = new Turn();
  private readonly pieceTurn = new Turn();

  constructor(
    private readonly ring: JournalRing,
    private readonly options: HostJournalOptions,
    { group, has }: GroupStart,
    private readonly turns: Turns,
    /** How many records stay reserved when a group puts something at a mark. */
    private readonly reservedAtEnd: number,
  ) {
    this.isAwaited = options.isAwaited;
    this.group = group;
    this.next = has?.end ?? 0;
    this.seenDurable = this.next;
    this.seenSnapshot = has?.snapshotIndex ?? 0;
    this.seenHeldMark = heldMarkOf(has);
    this.isLeftOut = has === undefined;
    this.leaptTo = has?.pending.at(-1)?.snapshotIndex ?? 0;
    this.bytes = has?.bytes ?? 0;
    // Replicas look before the journal thread runs.
    ring.publishDurable(group, this.next);
    ring.publishSnapshot(group, this.seenSnapshot);
  }

  get durable(): number {
    this.seenDurable = Math.max(this.seenDurable, this.ring.durable(this.group));
    return this.seenDurable;
  }

  get heldMark(): number {
    this.seenHeldMark = Math.max(this.seenHeldMark, this.ring.heldMark(this.group));
    return this.seenHeldMark;
  }

  get wantsMark(): boolean {
    // Before its beginning, the journal is told which mark is complete.
    return this.isLeftOut && !this.isTaking && this.hasRoomAtMark(SNAPSHOT_WORDS, 2);
  }

  get isBusy(): boolean {
    return this.ring.isQuarterFull;
  }

  get awaitsMark(): boolean {
    return this.isLeftOut || this.leaptTo > this.snapshotCounted;
  }

  get wantsSnapshot(): boolean {
    if (this.isTaking || this.isLeftOut) return false;
    // A snapshot replaces at least as many bytes as it takes, so snapshots are at most half of what the disk writes.
    const least = Math.max(this.options.snapshotBytes, this.snapshotBytes);
    if (this.bytes < least || this.isPending) return false;
    return !this.isBusy || this.bytes >= BUSY_FACTOR * least;
  }

  /** Was a snapshot handed over that does not count yet? */
  private get isPending(): boolean {
    return this.snapshotAt > this.snapshotCounted;
  }

  private get snapshotCounted(): number {
    this.seenSnapshot = Math.max(this.seenSnapshot, this.ring.snapshot(this.group));
    return this.seenSnapshot;
  }

  hasRoom(words: number): boolean {
    // Entries that are left out need none.
    if (this.isLeftOut) return true;
    const records = Math.ceil(words / this.options.recordWordsMax) * 2;
    return this.turns.hasRoom(this.entriesTurn, words, records);
  }

  hasRoomForPiece(words: number): boolean {
    // With the beginning and the end of the snapshot.
    return this.turns.hasRoom(this.pieceTurn, words + SNAPSHOT_WORDS, 3);
  }

  private hasRoomAtMark(words: number, records: number): boolean {
    return this.ring.hasRoom(words, records + this.reservedAtEnd);
  }

  add(index: number, entries: Int32Array, at: number, words: number): void {
    if (this.isLeftOut) return;
    const end = at + words;
    let first = index;
    for (; first < this.next && at < end; first++) at += entries[at];
    if (at === end) return;
    this.turns.use(this.entriesTurn);
    assert(first === this.next, 'entries come to the journal without a gap');
    this.bytes += (end - at) * 4;
    while (at < end) at += this.addRecord(entries, at, end);
  }

  /** Puts as many whole entries as one record may hold. Returns their words. */
  private addRecord(entries: Int32Array, at: number, end: number): number {
    const most = Math.min(end, at + this.options.recordWordsMax);
    const first = this.next;
    let stop = at;
    while (stop < end && stop + entries[stop] <= most) {
      stop += entries[stop];
      this.next++;
    }
    assert(stop > at, 'a record holds at least one entry');
    this.ring.put(KIND.entries, this.group, first, entries, at, stop - at);
    return stop - at;
  }

  leaveOut(): void {
    this.isLeftOut = true;
    this.turns.giveUp(this.entriesTurn);
  }

  beginSnapshot(index: number, marks: number, isAtMark: boolean): void {
    assert(!this.isTaking, 'a group hands over one snapshot at a time');
    this.isTaking = true;
    this.hasLeapt = this.isLeftOut || index > this.next;
    this.isLeftOut = false;
    if (this.hasLeapt) this.leaptTo = index;
    this.next = Math.max(this.next, index);
    this.snapshotAt = index;
    this.bytes = 0;
    this.snapshotBytes = 0;
    this.contents[0] = marks;
    this.contents[1] = isAtMark ? 1 : 0;
    this.ring.put(KIND.snapshot, this.group, index, this.contents, 0, SNAPSHOT_WORDS);
  }

  addPiece(words: Int32Array): void {
    this.turns.use(this.pieceTurn);
    this.snapshotBytes += words.byteLength;
    this.ring.put(KIND.piece, this.group, this.snapshotAt, words, 0, words.length);
  }

  endSnapshot(): void {
    this.isTaking = false;
    this.putEmpty(KIND.snapshotEnd, this.snapshotAt);
  }

  dropSnapshot(): void {
    this.isTaking = false;
    this.turns.giveUp(this.pieceTurn);
    if (this.hasLeapt) {
      this.leaveOut();
      this.leaptTo = 0;
    }
    this.putEmpty(KIND.snapshotDropped, this.snapshotAt);
    this.snapshotAt = 0;
  }

  stable(index: number): void {
    // Without room it is left out: a later one says more.
    if (index <= this.stableIndex || !this.turns.hasRoomForOne) return;
    this.stableIndex = index;
    this.putEmpty(KIND.stable, index);
  }

  mark(index: number, number: number): void {
    if (this.isLeftOut || number <= this.lastMark || !this.hasRoomAtMark(1, 1)) return;
    this.lastMark = number;
    this.contents[0] = number;
    this.ring.put(KIND.mark, this.group, index, this.contents, 0, 1);
  }

  complete(number: number): void {
    if (number <= this.completeMark || !this.hasRoomAtMark(0, 1)) return;
    this.completeMark = number;
    this.putEmpty(KIND.complete, number);
  }

  private putEmpty(kind: number, index: number): void {
    this.ring.put(kind, this.group, index, NOTHING, 0, 0);
  }
}
