/**
 * What a writer knows of one group: which entries are written and durable, which snapshots wait until they count, and which
 * mark the disk holds.
 *
 * A snapshot and the entries that continue it without a gap are a *sequence*, as a reader finds it (reader.ts): one starts
 * with the snapshot that counts, and one with each snapshot that waits. Entries continue every sequence that they leave no
 * gap in. After entries were left out, they continue only the sequence of the next snapshot. Once the host has started
 * again, they may fill the gap: then they continue older sequences too.
 *
 * A snapshot counts once its entries are stable, or once it was taken at a mark that is complete. One that was taken at a
 * mark is kept until it counts, or a later one does, or one at a later mark is durable. Others may rely on it: the host holds
 * the mark from then on. Only the last mark gets complete, and each mark says which one is. So when a snapshot is taken at a
 * mark, it is known of all earlier ones whether they ever are.
 *
 * Invariants: `durable` and `heldMark` never go back. If `heldMark` is k, the sequence that counts, or one that starts at
 * the mark k or an earlier one, is durable beyond k.
 */

/** @internal A sequence that starts with a snapshot at a mark, which does not count yet. */
export interface PendingContents {
  readonly snapshotIndex: number;
  /** At which the snapshot was taken. */
  readonly mark: number;
  /** The index after the last entry, and the last mark that the snapshot or an entry has. */
  readonly end: number;
  readonly lastMark: number;
}

/** @internal What a journal has of a group. */
export interface GroupContents {
  /** The index of the snapshot that counts, the index after the last entry, and the last mark up to there; 0 if there is none. */
  readonly snapshotIndex: number;
  readonly end: number;
  readonly lastMark: number;
  /** Of the entries. They count for the next snapshot. */
  readonly bytes?: number | undefined;
  /** Snapshots at marks that wait until they count, ascending. */
  readonly pending: readonly PendingContents[];
}

/** @internal The highest mark that a disk holds with these contents; 0 if there is none. */
export function heldMarkOf(has: GroupContents | undefined): number {
  const { lastMark = 0, pending = [] } = has ?? {};
  return Math.max(lastMark, ...pending.map((one) => one.lastMark));
}

interface Sequence {
  /** Of its snapshot. */
  readonly index: number;
  /** The last mark that the snapshot has seen; and whether it was taken right after it. */
  readonly marks: number;
  readonly isAtMark: boolean;
  /** The index after the last entry that was written; and after the last one that is durable. */
  end: number;
  durable: number;
}

/** @internal */
export class GroupProgress {
  /** The highest mark that the disk holds; 0 if there is none. */
  heldMark: number;
  private counted: Sequence;
  /** Its snapshot is being written. */
  private draft: Sequence | undefined;
  /** Their snapshots are durable and do not count yet. Ascending. */
  private readonly pending: Sequence[];
  /** Snapshots at or below this index may count; and those at this mark or an earlier one. */
  private stable = 0;
  private complete = 0;
  /** The index after the entries that were written last. */
  private writtenEnd: number;
  /** Marks that are written and not held, and the index after each. */
  private marks: { readonly index: number; readonly number: number }[] = [];

  constructor(
    readonly group: number,
    has: GroupContents | undefined,
  ) {
    const { snapshotIndex = 0, end = 0, lastMark = 0, pending = [] } = has ?? {};
    this.counted = sequence(snapshotIndex, lastMark, false, end);
    this.pending = pending.map((one) => sequence(one.snapshotIndex, one.mark, true, one.end));
    this.heldMark = heldMarkOf(has);
    this.writtenEnd = end;
  }

  /** The index of the snapshot that counts; 0 if none does. */
  get snapshotIndex(): number {
    return this.counted.index;
  }

  /** Entries below this index are durable. */
  get durable(): number {
    return this.counted.durable;
  }

  /** Notes that entries are written. Returns true if others were left out before them: then they continue nothing older. */
  write(first: number, end: number): boolean {
    const leaps = first > this.writtenEnd;
    this.writtenEnd = end;
    for (const one of this.sequences) if (first <= one.end) one.end = Math.max(one.end, end);
    return leaps;
  }

  /** Notes that all that is written is durable. */
  sync(): void {
    for (const one of this.sequences) one.durable = one.end;
    this.hold();
  }

  noteStable(index: number): void {
    this.stable = Math.max(this.stable, index);
  }

  noteComplete(mark: number): void {
    this.complete = Math.max(this.complete, mark);
  }

  /** The entry before `index` is a mark. */
  noteMark(index: number, number: number): void {
    this.marks.push({ index, number });
    this.hold();
  }

  /** A snapshot begins. Entries may have been left out before it. */
  beginSnapshot(index: number, marks: number, isAtMark: boolean): void {
    this.draft = sequence(index, marks, isAtMark, index);
  }

  dropSnapshot(): void {
    this.draft = undefined;
  }

  /** Is the snapshot that is being written of use? Not if a later one counts, or if the same one is there. */
  get needsSnapshot(): boolean {
    const { index } = this.draft!;
    if (index <= this.snapshotIndex) return false;
    return !this.pending.some((one) => one.index === index && one.isAtMark);
  }

  /**
   * The snapshot that was being written is durable. Returns the indices of those that are not needed any more. If it was taken at
   * a mark, the marks before it that are not complete never will be.
   */
  endSnapshot(): number[] {
    const { pending, complete } = this;
    const draft = this.draft!;
    const isNeedless = ({ index, isAtMark, marks }: Sequence): boolean =>
      draft.isAtMark && isAtMark && index < draft.index && marks > complete;
    const needless = pending.filter(isNeedless).map(({ index }) => index);
    const kept = pending.filter((one) => !isNeedless(one) && one.index !== draft.index);
    const all = [...kept, draft].sort((one, other) => one.index - other.index);
    pending.splice(0, pending.length, ...all);
    this.draft = undefined;
    this.hold();
    return needless;
  }

  get pendingCount(): number {
    return this.pending.length;
  }

  /** The index of the snapshot that may count now; undefined if there is none. */
  get countable(): number | undefined {
    const { stable, complete } = this;
    return this.pending.findLast(
      ({ index, marks, isAtMark }) => index <= stable || (isAtMark && marks <= complete),
    )?.index;
  }

  /** The snapshot counts. Returns the indices of those that waited and are older. */
  count(index: number): number[] {
    const { pending } = this;
    const older = pending.splice(
      0,
      pending.findIndex((one) => one.index === index),
    );
    this.counted = pending.shift()!;
    this.hold();
    return older.map((one) => one.index);
  }

  private get sequences(): Sequence[] {
    const { counted, pending, draft } = this;
    return draft === undefined ? [counted, ...pending] : [counted, ...pending, draft];
  }

  /** Notes which mark is held now. A host on which nothing counts holds none: a recovery can't rely on its journal. */
  private hold(): void {
    if (this.snapshotIndex === 0) return;
    for (const one of [this.counted, ...this.pending]) {
      if (one !== this.counted && !one.isAtMark) continue;
      const reached = this.marks.findLast(({ index }) => index <= one.durable);
      this.heldMark = Math.max(this.heldMark, one.marks, reached?.number ?? 0);
    }
    this.marks = this.marks.filter(({ number }) => number > this.heldMark);
  }
}

function sequence(index: number, marks: number, isAtMark: boolean, end: number): Sequence {
  return { index, marks, isAtMark, end, durable: end };
}
