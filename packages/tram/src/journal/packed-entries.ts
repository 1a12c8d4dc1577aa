/** Entries of one group in memory, packed as in a journal: a recovery appends them, or another host has sent them. */
import { type EntryStore, type GroupStretch, type Span, STRETCH_ENTRIES_MAX } from './sequence.js';

/** @internal */
export class PackedEntries implements EntryStore {
  /** The index of the next one. */
  end: number;
  private readonly stretches: GroupStretch[] = [];

  /** @param first  the index of the first entry */
  constructor(
    private readonly group: number,
    first: number,
  ) {
    this.end = first;
  }

  /** The entries that follow. */
  add(bodies: readonly Int32Array[]): void {
    for (let done = 0; done < bodies.length; done += STRETCH_ENTRIES_MAX) {
      this.addStretch(bodies.slice(done, done + STRETCH_ENTRIES_MAX));
    }
  }

  private addStretch(bodies: readonly Int32Array[]): void {
    const words = new Int32Array(bodies.reduce((sum, body) => sum + 1 + body.length, 0));
    let end = 0;
    for (const body of bodies) {
      words[end] = body.length;
      words.set(body, end + 1);
      end += 1 + body.length;
    }
    const { group, end: first } = this;
    this.stretches.push({ group, first, count: bodies.length, words, at: 0, end });
    this.end += bodies.length;
  }

  *read([{ from, below }]: readonly Span[]): Generator<GroupStretch, void> {
    for (const stretch of this.stretches) {
      const first = Math.max(from, stretch.first);
      const count = Math.min(below, stretch.first + stretch.count) - first;
      if (count <= 0) continue;
      const at = after(stretch, stretch.at, first - stretch.first);
      yield { ...stretch, first, count, at, end: after(stretch, at, count) };
    }
  }
}

/** Where the entry lies that follows so many others. */
function after({ words }: GroupStretch, at: number, entries: number): number {
  for (let i = 0; i < entries; i++) at += 1 + words[at];
  return at;
}
