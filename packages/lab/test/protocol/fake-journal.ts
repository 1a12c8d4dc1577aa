/** A journal without a disk, whose durable index and room the script moves. Each replica has one, and it outlives a crash. */

import { FRAME_WORDS, HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import type { GroupJournal } from 'tram-multicast/internal/protocol/edges.js';
import { indexOf, joined } from 'tram-multicast/internal/protocol/leadership/snapshot.js';
import type { Start, StartEntry } from 'tram-multicast/internal/protocol/member.js';

export class FakeJournal implements GroupJournal {
  next = 0;
  wantsSnapshot = false;
  /** For how many words of entries there is room. */
  roomWords = Number.POSITIVE_INFINITY;
  /** The greatest that was told. */
  stableIndex = 0;
  /** Are entries durable as soon as they are added? */
  isFast = false;
  /** The last whole snapshot that was handed over, and the entries since the one before it. */
  snapshot: Int32Array | undefined;
  private entries: StartEntry[] = [];
  private pieces: Int32Array[] = [];
  private synced = 0;
  /** It goes on from a snapshot at this index, which counts once it is stable; until then, this much is durable. */
  private leapt = 0;
  private durableBefore = 0;

  constructor(readonly isAwaited: boolean) {}

  get durable(): number {
    if (this.leapt > this.stableIndex) return this.durableBefore;
    return this.isFast ? this.next : Math.max(this.synced, this.leapt);
  }

  /** Everything so far, or everything below `index`, is durable now. */
  sync(index = this.next): void {
    this.synced = index;
  }

  hasRoom(words: number): boolean {
    return words <= this.roomWords;
  }

  add(index: number, entries: Int32Array, at: number, words: number): void {
    if (this.wantsSnapshot || index > this.next) return;
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
    const words = entries.slice(at + HEAD_WORDS, at + HEAD_WORDS + count);
    this.entries.push({ index, words, at: 0, count });
  }

  /** What a replica begins from after this journal was read. @param opened  the first index of the log */
  start(opened: number): Start {
    const { snapshot } = this;
    const first = snapshot === undefined ? opened : indexOf(snapshot);
    const entries = this.entries.filter(({ index }) => index >= first);
    return { snapshot, entries, opensEra: false };
  }

  leaveOut(): void {
    this.wantsSnapshot = true;
  }

  beginSnapshot(index: number): void {
    if (this.wantsSnapshot) {
      this.durableBefore = this.durable;
      this.leapt = index;
    }
    this.next = Math.max(this.next, index);
    this.wantsSnapshot = false;
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
    this.wantsSnapshot = true;
  }

  stable(index: number): void {
    this.stableIndex = Math.max(this.stableIndex, index);
  }
}
