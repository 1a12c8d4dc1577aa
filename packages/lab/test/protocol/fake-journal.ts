/** A journal without a disk, whose durable index and room the script moves. It outlives a crash. */

import { FRAME_WORDS, HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import type { GroupJournal } from 'tram-multicast/internal/protocol/edges.js';
import { markNumberIn } from 'tram-multicast/internal/protocol/layout.js';
import { indexOf, joined } from 'tram-multicast/internal/protocol/leadership/snapshot.js';
import type { Stretch } from 'tram-multicast/internal/protocol/member.js';
import type { ScriptedStart } from '../../src/sim/world.js';

export class FakeJournal implements GroupJournal {
  next = 0;
  wantsSnapshot = false;
  wantsMark = false;
  isBusy = false;
  /** By number: the index after each mark among its entries. */
  readonly markedAt = new Map<number, number>();
  /** For how many words of entries there is room. */
  roomWords = Number.POSITIVE_INFINITY;
  /** The greatest that was told. */
  stableIndex = 0;
  completeMark = 0;
  /** Are entries durable as soon as they are added? */
  isFast = false;
  /** The last whole snapshot that was handed over, and the entries since the one before it. */
  snapshot: Int32Array | undefined;
  private entries: Stretch[] = [];
  private pieces: Int32Array[] = [];
  private synced = 0;
  /**
   * It goes on from a snapshot at this index, taken at this mark, which counts once it is stable or the mark is complete; until
   * then, this much is durable.
   */
  leapt = 0;
  leaptMark = 0;
  private durableBefore = 0;
  /** Marks that were told, and the index after each. */
  private readonly marks: { readonly index: number; readonly number: number }[] = [];
  /** Does the snapshot that is being handed over fill a gap? */
  private hasLeapt = false;

  constructor(readonly isAwaited: boolean) {}

  get awaitsMark(): boolean {
    return this.wantsMark || !this.leapCounts;
  }

  get heldMark(): number {
    const leapt = Number.isFinite(this.leaptMark) ? this.leaptMark : 0;
    // Entries after a snapshot at a mark hold later marks, even if the snapshot does not count.
    const end = leapt > 0 && !this.wantsMark ? this.written : this.durable;
    const reached = this.marks.filter(({ index }) => index <= end);
    return Math.max(leapt, ...reached.map(({ number }) => number));
  }

  private get leapCounts(): boolean {
    return this.leapt <= this.stableIndex || this.leaptMark <= this.completeMark;
  }

  get durable(): number {
    return this.leapCounts ? this.written : this.durableBefore;
  }

  /** Entries below this index are on the disk, perhaps behind a gap. */
  private get written(): number {
    return this.isFast ? this.next : Math.max(this.synced, this.leapt);
  }

  /** Everything so far, or everything below `index`, is durable now. */
  sync(index = this.next): void {
    this.synced = index;
  }

  hasRoom(words: number): boolean {
    return words <= this.roomWords;
  }

  hasRoomForPiece(words: number): boolean {
    return this.hasRoom(words);
  }

  add(index: number, entries: Int32Array, at: number, words: number): void {
    if (this.wantsMark || index > this.next) return;
    if (!this.hasRoom(words)) throw new Error('an entry was added without room for it');
    let end = index;
    for (let done = 0; done < words; done += entries[at + done]) {
      if (end >= this.next) this.keep(end, entries, at + done);
      end++;
    }
    this.next = Math.max(this.next, end);
    this.roomWords -= words;
  }

  private keep(index: number, entries: Int32Array, at: number): void {
    const count = entries[at] - FRAME_WORDS;
    const words = Int32Array.of(
      count,
      ...entries.subarray(at + HEAD_WORDS, at + HEAD_WORDS + count),
    );
    const mark = markNumberIn(words, 1);
    if (mark > 0) this.markedAt.set(mark, index + 1);
    this.entries.push({ first: index, count: 1, words, at: 0, end: words.length });
  }

  /** What a replica begins from after this journal was read. @param opened  the first index of the log */
  start(opened: number): ScriptedStart {
    const { snapshot } = this;
    const next = snapshot === undefined ? opened : indexOf(snapshot);
    const stretches = this.entries.filter(({ first }) => first >= next);
    return { snapshot, stretches, opensEra: false };
  }

  leaveOut(): void {
    this.wantsMark = true;
  }

  beginSnapshot(index: number, marks: number, isAtMark: boolean): void {
    if (index > this.next && !isAtMark) throw new Error('a snapshot elsewhere leaves a gap');
    this.hasLeapt = this.wantsMark;
    if (this.hasLeapt) {
      this.durableBefore = this.durable;
      this.leapt = index;
      this.leaptMark = isAtMark ? marks : Number.POSITIVE_INFINITY;
    }
    this.next = Math.max(this.next, index);
    this.wantsSnapshot = false;
    this.wantsMark = false;
    this.pieces = [];
  }

  addPiece(words: Int32Array): void {
    if (!this.hasRoom(words.length)) throw new Error('a piece was added without room for it');
    this.pieces.push(words.slice());
  }

  endSnapshot(): void {
    this.snapshot = joined(this.pieces);
  }

  dropSnapshot(): void {
    this.pieces = [];
    if (this.hasLeapt) this.wantsMark = true;
    else this.wantsSnapshot = true;
  }

  stable(index: number): void {
    this.stableIndex = Math.max(this.stableIndex, index);
  }

  mark(index: number, number: number): void {
    this.marks.push({ index, number });
  }

  complete(number: number): void {
    this.completeMark = Math.max(this.completeMark, number);
  }
}
