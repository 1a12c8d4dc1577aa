/**
 * How entries and snapshots get from the replicas of a host to its journal thread: a ring with one producer, the host
 * (`host-journal.ts`), and one consumer, the thread (`writer.ts`). Beside it lies a board on which the thread publishes how
 * far each group is durable. Both are one array: shared in production, private in the simulator.
 *
 *   ┌───────────────────────────┬────────────────────────────────────┬────────────────────────────────────┐
 *   │ board: written, taken, …  │ per group: durable, snapshot, held │ ring: records                      │
 *   └───────────────────────────┴────────────────────────────────────┴────────────────────────────────────┘
 *   a record
 *   ┌──────┬───────┬───────┬──────┬──────┬────────────┐
 *   │ kind │ group │ words │ 0    │ index│ contents … │
 *   └──────┴───────┴───────┴──────┴──────┴────────────┘
 *
 * Positions only grow (modulo 2³²), and a record may continue at the ring's start. The position up to which records are
 * written is stored after their words, and the position up to which they are taken after these were copied. An index
 * is published low word first, and read high word first. So a reader may find it too low for a moment, but never too high.
 */
import { copyPart, distance } from '../memory/record.js';
import { align, LINE_WORDS } from '../memory/words.js';
import { assert } from '../protocol/assert.js';
import { readWide, WIDE, writeWide } from '../protocol/wide.js';
import { type JournalStatus, readStatus, writeStatus } from './status.js';

/** @internal What a record contains. */
export const KIND = {
  /** Entries of the log, side by side, with their frames. The index is that of the first. */
  entries: 1,
  /**
   * A snapshot begins. The index is that of the first entry that its state does not include. Contents: how many marks the
   * state has seen, and 1 if it was taken right after the last one.
   */
  snapshot: 2,
  piece: 3,
  snapshotEnd: 4,
  snapshotDropped: 5,
  /** A snapshot at or below the index may count. */
  stable: 6,
  /** The entry before the index is a mark. Contents: its number. */
  mark: 7,
  /** A snapshot at this mark or an earlier one may count. In place of the index: its number. */
  complete: 8,
} as const;

const RECORD = { kind: 0, group: 1, words: 2, index: 4, contents: 6 } as const;

const BOARD = {
  /** Written by the producer. */
  written: 0,
  flushesWanted: 1,
  isClosed: 2,
  /** Written by the consumer. */
  taken: LINE_WORDS,
  flushesDone: LINE_WORDS + 1,
  /** Written by both: 1 while the consumer sleeps or is about to. */
  isAsleep: 2 * LINE_WORDS,
  /** Written by the consumer: what it has done (`status.ts`). */
  status: 3 * LINE_WORDS,
  groups: 4 * LINE_WORDS,
} as const;

/** The words of a group on the board. The first two values are wide. */
const GROUP = { durable: 0, snapshot: 2, heldMark: 4, words: 6 } as const;

/** @internal A record that the consumer looks at. */
export interface RingRecord {
  kind: number;
  group: number;
  index: number;
  /** The words of its contents. */
  words: number;
  /** Where its contents begin. */
  position: number;
}

/** @internal */
export class JournalRing {
  private readonly at: number;
  /** The size of the ring, in words. */
  readonly size: number;
  private readonly mask: number;
  /** Producer only: the last value of `taken` that it has read. */
  private seenTaken = 0;
  private written = 0;
  /** Producer only: has it put records for which it may have to wake the consumer? */
  private hasUrgent = false;
  private taken = 0;

  /** How many words the array must have. @param ringWords  a power of two */
  static wordsFor(groups: number, ringWords: number): number {
    return align(BOARD.groups + groups * GROUP.words) + ringWords;
  }

  /**
   * Each side creates one over the same array.
   * @param words  all zero at first
   * @param isEager  the producer wakes the consumer for all that it has put, not only when a quarter of the ring is full
   */
  constructor(
    private readonly words: Int32Array,
    groups: number,
    private readonly isEager: boolean,
  ) {
    this.at = align(BOARD.groups + groups * GROUP.words);
    this.size = words.length - this.at;
    this.mask = this.size - 1;
    this.written = words[BOARD.written];
    this.taken = words[BOARD.taken];
    this.seenTaken = this.taken;
  }

  // --- the producer ------------------------------------------------------------------------------

  /** Is there room for so many records, with so many words of contents together? */
  hasRoom(words: number, records: number): boolean {
    // Contents are filled up to an even number of words.
    const needed = words + records * (RECORD.contents + 1);
    if (this.size - distance(this.written, this.seenTaken) >= needed) return true;
    return this.size - this.usedWords >= needed;
  }

  /** How many words the consumer has not taken. */
  get usedWords(): number {
    this.seenTaken = Atomics.load(this.words, BOARD.taken);
    return distance(this.written, this.seenTaken);
  }

  get isQuarterFull(): boolean {
    return this.usedWords * 4 >= this.size;
  }

  /** There must be room. */
  put(
    kind: number,
    group: number,
    index: number,
    contents: Int32Array,
    from: number,
    count: number,
  ): void {
    const { words, at, mask, written } = this;
    // Otherwise it would overwrite records that are not taken yet, and nobody would ever notice.
    assert(this.hasRoom(count, 1), 'there is room in the ring for what is put there');
    // Records begin at even positions and have an even number of words before their contents, so the index does not wrap.
    const place = at + (written & mask);
    words[place + RECORD.kind] = kind;
    words[at + ((written + RECORD.group) & mask)] = group;
    words[at + ((written + RECORD.words) & mask)] = count;
    writeWide(words, at + ((written + RECORD.index) & mask), index);
    const start = (written + RECORD.contents) & mask;
    const first = Math.min(count, this.size - start);
    copyPart(contents, from, words, at + start, first);
    if (first < count) copyPart(contents, from + first, words, at, count - first);
    this.written = (written + RECORD.contents + count + (count & 1)) | 0;
    Atomics.store(words, BOARD.written, this.written);
    // Nobody waits for this news, and with `always` there is some after every sync.
    if (kind !== KIND.stable) this.hasUrgent = true;
  }

  /** Wakes the consumer, if it sleeps and there is enough for it. */
  wakeConsumer(): void {
    if (!this.hasUrgent) return;
    this.hasUrgent = false;
    if (this.isEager || this.isQuarterFull) this.wake();
  }

  private wake(): void {
    const { words } = this;
    if (Atomics.load(words, BOARD.isAsleep) === 0) return;
    Atomics.store(words, BOARD.isAsleep, 0);
    Atomics.notify(words, BOARD.isAsleep);
  }

  /** Below which index a group is durable. It may be lower than before, for a moment. */
  durable(group: number): number {
    return this.published(BOARD.groups + group * GROUP.words + GROUP.durable);
  }

  /** The index of a group's last snapshot that counts. It may be lower than before, for a moment. */
  snapshot(group: number): number {
    return this.published(BOARD.groups + group * GROUP.words + GROUP.snapshot);
  }

  /** The highest mark of a group that the disk holds. */
  heldMark(group: number): number {
    return Atomics.load(this.words, BOARD.groups + group * GROUP.words + GROUP.heldMark);
  }

  private published(at: number): number {
    const high = Atomics.load(this.words, at + 1);
    return high * WIDE + (Atomics.load(this.words, at) >>> 0);
  }

  /** For reports. */
  get status(): JournalStatus {
    return readStatus(this.words, BOARD.status);
  }

  /** Asks the consumer to make everything durable that is in the ring now. */
  askToFlush(): void {
    Atomics.add(this.words, BOARD.flushesWanted, 1);
    this.wake();
  }

  get isFlushed(): boolean {
    const { words } = this;
    return Atomics.load(words, BOARD.flushesDone) === Atomics.load(words, BOARD.flushesWanted);
  }

  /** Sleeps until the consumer has flushed once more, or the time is over. Only over shared memory. */
  sleepUntilFlushed(timeoutMs: number): void {
    const done = Atomics.load(this.words, BOARD.flushesDone);
    if (!this.isFlushed) Atomics.wait(this.words, BOARD.flushesDone, done, timeoutMs);
  }

  /** Nothing comes any more. */
  close(): void {
    Atomics.store(this.words, BOARD.isClosed, 1);
    this.wake();
  }

  // --- the consumer ------------------------------------------------------------------------------

  /** Shows the next record; false if there is none. */
  peek(into: RingRecord): boolean {
    const { words, at, mask, taken } = this;
    if (Atomics.load(words, BOARD.written) === taken) return false;
    into.kind = words[at + (taken & mask)];
    into.group = words[at + ((taken + RECORD.group) & mask)];
    into.words = words[at + ((taken + RECORD.words) & mask)];
    into.index = readWide(words, at + ((taken + RECORD.index) & mask));
    into.position = taken + RECORD.contents;
    return true;
  }

  /** Is a quarter of the ring full? */
  get isBehind(): boolean {
    return distance(Atomics.load(this.words, BOARD.written), this.taken) * 4 >= this.size;
  }

  wordAt(position: number): number {
    return this.words[this.at + (position & this.mask)];
  }

  copyOut(position: number, into: Int32Array, to: number, count: number): void {
    const { words, at, mask } = this;
    const start = position & mask;
    const first = Math.min(count, this.size - start);
    copyPart(words, at + start, into, to, first);
    if (first < count) copyPart(words, at, into, to + first, count - first);
  }

  /** Gives the room of the record that was shown last to the producer. */
  take({ position, words }: RingRecord): void {
    this.taken = (position + words + (words & 1)) | 0;
    Atomics.store(this.words, BOARD.taken, this.taken);
  }

  publishDurable(group: number, index: number): void {
    this.publish(BOARD.groups + group * GROUP.words + GROUP.durable, index);
  }

  publishSnapshot(group: number, index: number): void {
    this.publish(BOARD.groups + group * GROUP.words + GROUP.snapshot, index);
  }

  publishHeldMark(group: number, mark: number): void {
    Atomics.store(this.words, BOARD.groups + group * GROUP.words + GROUP.heldMark, mark);
  }

  private publish(at: number, index: number): void {
    Atomics.store(this.words, at, index | 0);
    Atomics.store(this.words, at + 1, Math.floor(index / WIDE));
  }

  publishStatus(status: JournalStatus): void {
    writeStatus(this.words, BOARD.status, status);
  }

  /** The flush that the producer wants; undefined if it wants none. */
  get flushWanted(): number | undefined {
    const { words } = this;
    const wanted = Atomics.load(words, BOARD.flushesWanted);
    return wanted === words[BOARD.flushesDone] ? undefined : wanted;
  }

  publishFlushed(flush: number): void {
    Atomics.store(this.words, BOARD.flushesDone, flush);
    Atomics.notify(this.words, BOARD.flushesDone);
  }

  get isClosed(): boolean {
    return Atomics.load(this.words, BOARD.isClosed) === 1;
  }

  /** Sleeps until the producer wakes it; not at all if it would have woken it already. False if the time was over first. */
  sleep(timeoutMs: number): boolean {
    const { words, size, taken, isEager } = this;
    Atomics.store(words, BOARD.isAsleep, 1);
    const waiting = distance(Atomics.load(words, BOARD.written), taken);
    const hasWork = isEager ? waiting > 0 : waiting * 4 >= size;
    const isWoken = hasWork || this.flushWanted !== undefined || this.isClosed;
    const outcome = isWoken ? 'ok' : Atomics.wait(words, BOARD.isAsleep, 1, timeoutMs);
    Atomics.store(words, BOARD.isAsleep, 0);
    return outcome !== 'timed-out';
  }
}
