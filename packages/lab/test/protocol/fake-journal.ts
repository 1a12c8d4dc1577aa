/** A journal without a disk, whose durable index and room the script moves. Each replica has one, and it outlives a crash. */
import type { GroupJournal } from 'tram-multicast/internal/protocol/edges.js';

export class FakeJournal implements GroupJournal {
  next = 0;
  wantsSnapshot = false;
  /** For how many words of entries there is room. */
  roomWords = Number.POSITIVE_INFINITY;
  /** The greatest that was told. */
  stableIndex = 0;
  /** Are entries durable as soon as they are added? */
  isFast = false;
  private synced = 0;

  constructor(readonly isAwaited: boolean) {}

  get durable(): number {
    return this.isFast ? this.next : this.synced;
  }

  /** Everything so far is durable now. */
  sync(): void {
    this.synced = this.next;
  }

  hasRoom(words: number): boolean {
    return words <= this.roomWords;
  }

  add(index: number, entries: Int32Array, at: number, words: number): void {
    if (!this.hasRoom(words)) throw new Error('an entry was added without room for it');
    if (index > this.next) throw new Error(`entry ${index} was added instead of ${this.next}`);
    if (this.wantsSnapshot) return;
    let end = index;
    for (let done = 0; done < words; done += entries[at + done]) end++;
    this.next = Math.max(this.next, end);
    this.roomWords -= words;
  }

  leaveOut(): void {
    this.wantsSnapshot = true;
  }

  beginSnapshot(index: number): void {
    this.next = Math.max(this.next, index);
    this.wantsSnapshot = false;
  }

  addPiece(): void {}

  endSnapshot(): void {}

  dropSnapshot(): void {}

  stable(index: number): void {
    this.stableIndex = Math.max(this.stableIndex, index);
  }
}
