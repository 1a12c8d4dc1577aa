/** What a member sends to one that catches up, chunk by chunk: entries of its backlog, or a snapshot (snapshots.ts). */
import type { SnapshotTaking } from './snapshot.js';

const NO_CHUNK = new Int32Array(0);

/** What is served, chunk by chunk. */
export interface Chunks {
  /**
   * Go on towards this chunk. Returns it, nothing of it if it can't be had, or undefined if that takes another step.
   * @throws if the service does
   */
  at(chunk: number): Int32Array | undefined;
  /** How many words there are. 0 as long as the last chunk was not taken. */
  readonly totalWords: number;
  close(): void;
}

/** Entries of a backlog, which are there already. */
export class EntryChunks implements Chunks {
  readonly totalWords: number;

  constructor(
    private readonly words: Int32Array,
    private readonly chunkWords: number,
  ) {
    this.totalWords = words.length;
  }

  at(chunk: number): Int32Array {
    const start = chunk * this.chunkWords;
    return this.words.subarray(start, start + this.chunkWords);
  }

  close(): void {
    // Nothing is held.
  }
}

/** A snapshot that is being taken. A fetcher that asks for a chunk has all earlier ones, so only the last one is kept. */
export class SnapshotChunks implements Chunks {
  totalWords = 0;
  private taken = -1;
  private takenWords = 0;
  private last: Int32Array = NO_CHUNK;

  constructor(private readonly taking: SnapshotTaking) {}

  at(chunk: number): Int32Array | undefined {
    if (chunk > this.taken && !this.taking.isDone) this.takeNext();
    if (chunk === this.taken) return this.last;
    return chunk < this.taken || this.taking.isDone ? NO_CHUNK : undefined;
  }

  private takeNext(): void {
    const next = this.taking.take();
    if (next === undefined) return;
    this.last = next;
    this.taken++;
    this.takenWords += next.length;
    if (this.taking.isDone) this.totalWords = this.takenWords;
  }

  close(): void {
    this.taking.close();
  }
}
