/**
 * Snapshots that are written piece by piece while commands go on, and that show the keyspace as it was when they began.
 *
 * A snapshot begins with copies of the arrays of keys and entries. Whoever changes an entry in place says so before: if a snapshot has
 * still to write the entry, its bytes as they are now are kept for it. An entry that is replaced or deleted needs nothing, because
 * the snapshot has it in its array. How the keys are used changes with every command: a snapshot begins with a copy of that, too.
 */

import type { Bytes } from '../resp/reply.js';
import { ByteReader, ByteWriter } from './bytes.js';
import { decodeEntry, encodeEntry } from './codec.js';
import type { Entry } from './entry.js';
import type { UsageState } from './usage.js';

/**
 * What a snapshot holds. Positions of entries, versions of absent keys, and places in the queue of keys that expire are part of the
 * state: replicas must not differ.
 */
export interface KeyspaceState {
  readonly nowMs: number;
  readonly version: number;
  /** By hash. */
  readonly absentVersions: Float64Array;
  readonly keys: readonly Bytes[];
  readonly entries: readonly Entry[];
  readonly usage: UsageState;
  /** The keys that expire, in the order of their places in the queue. */
  readonly expiring: readonly Bytes[];
}

export const PIECE_BYTES = 64 * 1024;

const FORMAT = 2;

export class Snapshots {
  /** Those that are not at their end, the oldest first. */
  #active: Snapshot[] = [];
  #taken = 0;
  readonly #writer = new ByteWriter();

  /**
   * @param state  its arrays are not changed any more
   * @param pieceBytes  a piece ends with the first entry that makes it this long
   */
  take(state: KeyspaceState, pieceBytes: number): IterableIterator<Uint8Array> {
    const snapshot = new Snapshot(++this.#taken, state, pieceBytes, this);
    this.#active.push(snapshot);
    return snapshot;
  }

  /** Whether a snapshot still has to write this entry. */
  need(entry: Entry): boolean {
    return this.#active.length > 0 && entry.savedUpTo < this.#taken;
  }

  /** To be called for an entry that `need` needs, before it is changed in place. */
  keep(entry: Entry): void {
    encodeEntry(entry, this.#writer.reset());
    const bytes = this.#writer.copy();
    for (const snapshot of this.#active) {
      if (snapshot.id > entry.savedUpTo) snapshot.kept.set(entry, bytes);
    }
    entry.savedUpTo = this.#taken;
  }

  /** An entry that is new, or was restored, is in no snapshot that was taken before. */
  added(entry: Entry): void {
    entry.savedUpTo = this.#taken;
  }

  /** A younger snapshot must not say so: an older one may not have written the entry yet. */
  written(entry: Entry, by: Snapshot): void {
    if (this.#active[0] === by && entry.savedUpTo < by.id) entry.savedUpTo = by.id;
  }

  ended(snapshot: Snapshot): void {
    this.#active = this.#active.filter((other) => other !== snapshot);
  }
}

/** Not a generator: `return` of one that has not begun would not end the snapshot. */
class Snapshot implements IterableIterator<Uint8Array> {
  /** Entries that were changed since, as they were. */
  readonly kept = new Map<Entry, Uint8Array>();
  #state: KeyspaceState | undefined;
  #position = -1;
  /** How many of the keys that expire are written. */
  #expiring = 0;
  readonly #writer = new ByteWriter();

  constructor(
    readonly id: number,
    state: KeyspaceState,
    private readonly pieceBytes: number,
    private readonly snapshots: Snapshots,
  ) {
    this.#state = state;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Uint8Array> {
    const state = this.#state;
    if (state === undefined) return { done: true, value: undefined };
    const writer = this.#writer.reset();
    if (this.#position < 0) {
      writeHead(state, writer);
      this.#position = 0;
    }
    const { keys, entries, usage, expiring } = state;
    while (this.#position < keys.length && writer.length < this.pieceBytes) {
      const entry = entries[this.#position];
      writer.bytes(keys[this.#position]).uint32(usage.words[this.#position++]);
      const bytes = this.kept.get(entry);
      if (bytes === undefined) encodeEntry(entry, writer);
      else writer.raw(bytes);
      this.kept.delete(entry);
      this.snapshots.written(entry, this);
    }
    while (this.#expiring < expiring.length && writer.length < this.pieceBytes) {
      writer.bytes(expiring[this.#expiring++]);
    }
    if (writer.length === 0) return this.return();
    return { done: false, value: writer.copy() };
  }

  return(): IteratorResult<Uint8Array> {
    this.#state = undefined;
    this.kept.clear();
    this.snapshots.ended(this);
    return { done: true, value: undefined };
  }
}

function writeHead(state: KeyspaceState, out: ByteWriter): void {
  const { absentVersions, usage } = state;
  out.uint8(FORMAT).float64(state.nowMs).float64(state.version);
  out.uint32(usage.random).uint8(usage.countsFrequency ? 1 : 0);
  let known = 0;
  for (const version of absentVersions) if (version !== 0) known++;
  out.uint32(known);
  absentVersions.forEach((version, hash) => {
    if (version !== 0) out.uint32(hash).float64(version);
  });
  out.uint32(state.keys.length).uint32(state.expiring.length);
}

/** @param absentVersions  where the versions of absent keys go */
export function readSnapshot(bytes: Uint8Array, absentVersions: Float64Array): KeyspaceState {
  const input = new ByteReader(bytes);
  const format = input.uint8();
  if (format !== FORMAT) throw new RangeError(`a snapshot has the unknown format ${format}`);
  const nowMs = input.float64();
  const version = input.float64();
  const random = input.uint32();
  const countsFrequency = input.uint8() === 1;
  absentVersions.fill(0);
  for (let left = input.uint32(); left > 0; left--) {
    const hash = input.uint32();
    absentVersions[hash] = input.float64();
  }
  const keys: Bytes[] = [];
  const entries: Entry[] = [];
  const size = input.uint32();
  const words = new Int32Array(size);
  const expiring = new Array<Bytes>(input.uint32());
  for (let i = 0; i < size; i++) {
    keys.push(input.bytes());
    words[i] = input.uint32();
    entries.push(decodeEntry(input));
  }
  for (let i = 0; i < expiring.length; i++) expiring[i] = input.bytes();
  const usage = { words, random, countsFrequency };
  return { nowMs, version, absentVersions, keys, entries, usage, expiring };
}
