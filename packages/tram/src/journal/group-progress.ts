/**
 * What a writer knows of one group: which entries are written and durable, and which snapshots wait until they count.
 *
 * The entries are written in *stretches*. A stretch has no gap. The first stretch continues the snapshot that counts; each
 * later one continues a snapshot that does not count yet, and begins where entries were left out before it.
 *
 * Invariant: `durable` never goes back.
 */

interface Stretch {
  readonly first: number;
  /** The index after the last entry that was written; and after the last one that is durable. */
  end: number;
  durable: number;
  /** The next section continues nothing that is older. */
  leaps: boolean;
}

/** How many snapshots may wait. The oldest one counts first, and the newest one replaces the most. */
const PENDING_MAX = 2;

/** @internal */
export class GroupProgress {
  /** The index of the snapshot that counts; 0 if none does. */
  snapshotIndex: number;
  /** All snapshots at or below this index may count. */
  private stable = 0;
  /** The indices of snapshots that are durable and do not count yet, ascending. */
  private readonly pending: number[] = [];
  private readonly stretches: Stretch[] = [];

  constructor(
    readonly group: number,
    has: { readonly snapshotIndex: number; readonly end: number } | undefined,
  ) {
    this.snapshotIndex = has?.snapshotIndex ?? 0;
    const end = has?.end ?? 0;
    this.stretches.push({ first: this.snapshotIndex, end, durable: end, leaps: false });
  }

  /** Entries below this index are durable. */
  get durable(): number {
    return this.stretches[0].durable;
  }

  /** Notes that entries are written. Returns true if they continue nothing that is older. */
  write(first: number, end: number): boolean {
    const last = this.last;
    if (first !== last.end) this.leapTo(first);
    const stretch = this.last;
    const { leaps } = stretch;
    stretch.end = end;
    stretch.leaps = false;
    return leaps;
  }

  /** Notes that all that is written is durable. Returns whether `durable` has advanced. */
  sync(): boolean {
    const before = this.durable;
    for (const stretch of this.stretches) stretch.durable = stretch.end;
    return this.durable > before;
  }

  noteStable(index: number): void {
    this.stable = Math.max(this.stable, index);
  }

  /** A snapshot begins. Entries may have been left out before it. */
  beginSnapshot(index: number): void {
    if (index > this.last.end) this.leapTo(index);
  }

  /** A snapshot is durable. Returns the index of one that is not needed any more, if there is one. */
  addPending(index: number): number | undefined {
    const { pending } = this;
    if (pending.includes(index)) return undefined;
    if (index <= this.snapshotIndex) return index;
    pending.push(index);
    pending.sort((one, other) => one - other);
    if (pending.length <= PENDING_MAX) return undefined;
    return pending.splice(1, 1)[0];
  }

  get pendingCount(): number {
    return this.pending.length;
  }

  /** The snapshot that may count now; undefined if there is none. */
  get countable(): number | undefined {
    return this.pending.findLast((index) => index <= this.stable);
  }

  /** The snapshot counts. Returns the indices of those that waited and are older. */
  count(index: number): number[] {
    const { stretches, pending } = this;
    this.snapshotIndex = index;
    while (stretches.length > 1 && stretches[0].end < index) stretches.shift();
    stretches[0].durable = Math.max(stretches[0].durable, index);
    stretches[0].end = Math.max(stretches[0].end, index);
    return pending.splice(0, pending.indexOf(index) + 1).slice(0, -1);
  }

  private get last(): Stretch {
    return this.stretches[this.stretches.length - 1];
  }

  private leapTo(index: number): void {
    // Stretches that continue no snapshot can't become durable any more.
    const [base, ...others] = this.stretches;
    const useful = others.filter(({ first, end }) =>
      this.pending.some((snapshot) => snapshot >= first && snapshot <= end),
    );
    this.stretches.splice(0, this.stretches.length, base, ...useful);
    this.stretches.push({ first: index, end: index, durable: index, leaps: true });
  }
}
