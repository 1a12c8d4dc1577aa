/**
 * The keys of a shard, with their values, expiry times and versions. No clock and no randomness: whoever runs a command sets `nowMs`.
 *
 * A command that changes a value in place calls `forWrite` before, and `changed` after. A command that finds nothing to change does not
 * call `changed`: a client that watches the key must not notice.
 */

import { type Bytes, ErrorReply } from '../resp/reply.js';
import { Entry } from './entry.js';
import { ExpiryQueue } from './expiry-queue.js';
import { IndexedMap } from './indexed-map.js';
import { memoryOf } from './memory.js';
import { grown, ownBuffer } from './own-buffer.js';
import { PIECE_BYTES, readSnapshot, Snapshots } from './snapshot.js';
import { Usage } from './usage.js';
import { typeOf, type Value, type ValueType } from './values.js';

export { Entry };

/** Told of changes: by a shard to serve blocked clients, by a transaction to collect what it writes. */
export interface KeyspaceObserver {
  /** The key has another value, another expiry time, or is gone. */
  changed(key: Bytes): void;
}

const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';

/** What has happened so far. */
export interface KeyspaceCounts {
  /** Keys that were removed because their time had come. */
  expired: number;
  /** Lookups that count, by whether the key was there. */
  hits: number;
  misses: number;
}

/** How many versions are kept of keys that are not there: keys with the same hash share one. A power of two. */
const ABSENT_VERSIONS = 1 << 16;

/** How many keys are prefetched at a time. */
export const PREFETCH_MAX = 256;

export class Keyspace {
  /** The time of the command that is run. */
  nowMs = 0;
  /** Lookups count: those of commands that only read. */
  countsLookups = false;
  readonly counts: KeyspaceCounts = { expired: 0, hits: 0, misses: 0 };
  readonly entries = new IndexedMap<Entry>(true);
  /** By the positions of the entries. */
  readonly usage = new Usage();
  readonly expiryQueue = new ExpiryQueue();
  /** The version that was given last. */
  #version = 0;
  /** The version of the last deletion of a key with this hash. */
  readonly #absent = new Float64Array(ABSENT_VERSIONS);
  #memory = 0;
  readonly #snapshots = new Snapshots();
  /** Of the keys that are prefetched. */
  readonly #positions = new Int32Array(PREFETCH_MAX);

  constructor(private readonly observer: KeyspaceObserver) {}

  /** How many keys expire some time. */
  get expiring(): number {
    return this.expiryQueue.size;
  }

  /** About how many bytes all entries take. */
  get memory(): number {
    return this.#memory;
  }

  /**
   * Brings what commands on these keys read into the caches of the processor. A command alone waits for main memory several times, one
   * read after the other. Here the reads of many keys overlap. Nothing changes.
   * @param keys  `PREFETCH_MAX` at most
   * @returns a number that depends on all that was read, as in `IndexedMap`
   */
  prefetch(keys: readonly Bytes[]): number {
    const positions = this.#positions;
    let sum = this.entries.prefetch(keys, positions);
    for (let i = 0; i < keys.length; i++) {
      if (positions[i] < 0) continue;
      const { value, memory } = this.entries.valueAt(positions[i]);
      sum += memory;
      if (typeof value === 'string') sum += value.length;
    }
    return sum;
  }

  /** The key counts as used. @returns undefined if it is not there, or has expired */
  find(key: Bytes): Entry | undefined {
    const position = this.entries.positionOf(key);
    const found = position === undefined ? undefined : this.entries.valueAt(position);
    const entry = this.#alive(key, found);
    if (entry !== undefined) this.usage.used(position!);
    return entry;
  }

  /** As `find`, for commands that do not count as a use of the key. */
  peek(key: Bytes): Entry | undefined {
    return this.#alive(key, this.entries.get(key));
  }

  /** The entry of a key that was looked up. */
  #alive(key: Bytes, entry: Entry | undefined): Entry | undefined {
    const hasExpired = entry !== undefined && this.hasExpired(entry);
    if (hasExpired) {
      this.delete(key);
      this.counts.expired++;
    }
    const alive = hasExpired ? undefined : entry;
    if (this.countsLookups) {
      if (alive === undefined) this.counts.misses++;
      else this.counts.hits++;
    }
    return alive;
  }

  /** Of a key that is there. */
  stalenessOf(key: Bytes): number {
    return this.usage.staleness(this.entries.positionOf(key)!);
  }

  /** For a key that is there. */
  setStaleness(key: Bytes, staleness: number): void {
    this.usage.setStaleness(this.entries.positionOf(key)!, staleness);
  }

  hasExpired(entry: Entry): boolean {
    return entry.expires && entry.expiresAtMs <= this.nowMs;
  }

  /** The value of a key that has to be of this type, or absent. */
  read<T extends ValueType>(key: Bytes, type: T): Extract<Value, { type: T }> | undefined {
    return this.#typed(this.find(key), type);
  }

  /** As `read`, for a value that is then changed in place: a snapshot that is being taken keeps it as it was. */
  forWrite<T extends ValueType>(key: Bytes, type: T): Extract<Value, { type: T }> | undefined {
    const entry = this.find(key);
    const value = this.#typed(entry, type);
    if (entry !== undefined) this.#beforeWrite(entry);
    return value;
  }

  /** The bytes of a string. */
  readString(key: Bytes): Bytes | undefined {
    const entry = this.find(key);
    if (entry === undefined) return undefined;
    const { value } = entry;
    if (typeof value === 'string') return value;
    if (Buffer.isBuffer(value)) return value.toString('latin1');
    throw new ErrorReply(WRONG_TYPE);
  }

  /** The bytes of a string as a buffer, which must not be changed. */
  readBuffer(key: Bytes): Buffer | undefined {
    const value = this.find(key)?.value;
    if (value === undefined || Buffer.isBuffer(value)) return value;
    if (typeof value === 'string') return Buffer.from(value, 'latin1');
    throw new ErrorReply(WRONG_TYPE);
  }

  /**
   * The bytes of a string as a buffer that can be changed in place, with zeros up to `length` if it is shorter. Creates the key if it is
   * absent.
   */
  bufferForWrite(key: Bytes, length: number): Buffer {
    const entry = this.find(key);
    if (entry === undefined) {
      const created = ownBuffer(length);
      this.#add(key, new Entry(created));
      return created;
    }
    const { value } = entry;
    if (typeOf(value) !== 'string') throw new ErrorReply(WRONG_TYPE);
    this.#beforeWrite(entry);
    let buffer: Buffer;
    if (typeof value === 'string') {
      buffer = ownBuffer(Math.max(length, value.length));
      buffer.write(value, 'latin1');
    } else buffer = value as Buffer;
    if (length > buffer.length) buffer = grown(buffer, length);
    entry.value = buffer;
    // Also if the command finds nothing to change: a replica that has restored a snapshot counts the same.
    this.#account(key, entry);
    return buffer;
  }

  /** Replaces whatever the key has, its expiry time included. */
  set(key: Bytes, value: Value, expiresAtMs = Infinity): void {
    const position = this.entries.positionOf(key);
    let entry: Entry;
    if (position === undefined) {
      entry = new Entry(value);
      this.#add(key, entry);
    } else {
      this.usage.used(position);
      entry = this.entries.valueAt(position);
      if (this.#snapshots.need(entry)) entry = this.#succeed(entry, position, value);
      else entry.value = value;
    }
    if (entry.expires || expiresAtMs !== Infinity) this.#setExpiry(key, entry, expiresAtMs);
    this.#entryChanged(key, entry);
  }

  /** Replaces the value, and keeps the expiry time. */
  replace(key: Bytes, value: Value): void {
    this.set(key, value, this.peek(key)?.expiresAtMs);
  }

  /** For a value that was changed in place (after `forWrite`), or that was created because the key is absent. */
  put(key: Bytes, value: Value): void {
    const entry = this.entries.get(key);
    if (entry?.value === value) this.#entryChanged(key, entry);
    else this.set(key, value);
  }

  /** @returns whether the key was there */
  delete(key: Bytes): boolean {
    const position = this.entries.positionOf(key);
    if (position === undefined) return false;
    const entry = this.entries.valueAt(position);
    this.entries.delete(key);
    this.usage.removed(position, this.entries.size);
    this.expiryQueue.remove(entry);
    this.#memory -= entry.memory;
    this.#absent[hashOf(key)] = ++this.#version;
    this.observer.changed(key);
    return true;
  }

  /** The value and expiry time of a key that is there go to another key. */
  rename(from: Bytes, to: Bytes): void {
    const entry = this.entries.get(from)!;
    // The value is then changed in place under the other key: a snapshot that has the entry must not notice.
    this.#beforeWrite(entry);
    const { value, expiresAtMs } = entry;
    const staleness = this.stalenessOf(from);
    this.delete(from);
    this.set(to, value, expiresAtMs);
    this.setStaleness(to, staleness);
  }

  clear(): void {
    const keys = this.entries.keys().slice();
    this.entries.clear();
    this.expiryQueue.clear();
    this.#memory = 0;
    for (const key of keys) {
      this.#absent[hashOf(key)] = ++this.#version;
      this.observer.changed(key);
    }
  }

  expireAt(key: Bytes, expiresAtMs: number): void {
    const entry = this.peek(key);
    if (entry === undefined) return;
    this.#beforeWrite(entry);
    this.#setExpiry(key, entry, expiresAtMs);
    this.#entryChanged(key, entry);
  }

  /**
   * Removes keys that have expired, first those that expired first.
   * @param max  how many at most
   * @param skip  whether the key has to stay for now
   * @returns how many were removed
   */
  expireSome(max: number, skip: (key: Bytes) => boolean): number {
    const queue = this.expiryQueue;
    if (queue.firstMs > this.nowMs) return 0;
    const skipped: Bytes[] = [];
    let removed = 0;
    while (removed < max && queue.firstMs <= this.nowMs) {
      const key = queue.firstKey;
      if (skip(key)) {
        skipped.push(key);
        queue.remove(this.entries.get(key)!);
      } else if (this.delete(key)) removed++;
    }
    for (const key of skipped) queue.put(key, this.entries.get(key)!);
    this.counts.expired += removed;
    return removed;
  }

  /** @param skip  whether the key does not count. @returns undefined if there is none */
  firstToExpire(skip: (key: Bytes) => boolean): Bytes | undefined {
    const queue = this.expiryQueue;
    const skipped: Bytes[] = [];
    while (queue.size > 0 && skip(queue.firstKey)) {
      skipped.push(queue.firstKey);
      queue.remove(this.entries.get(queue.firstKey)!);
    }
    const first = queue.size === 0 ? undefined : queue.firstKey;
    for (const key of skipped) queue.put(key, this.entries.get(key)!);
    return first;
  }

  /** To be called after every change: gives the key a new version. */
  changed(key: Bytes): void {
    const entry = this.entries.get(key);
    if (entry !== undefined) this.#entryChanged(key, entry);
  }

  /**
   * Differs from an earlier version if the key has changed since. For a key that is not there, it also differs if another one with the
   * same hash was deleted: a watch may fail without need, but never holds by mistake.
   */
  versionOf(key: Bytes): number {
    return this.peek(key)?.version ?? this.#absent[hashOf(key)];
  }

  /** The keyspace as it is now, in pieces. Commands can go on before all pieces are read. */
  snapshot(pieceBytes = PIECE_BYTES): IterableIterator<Uint8Array> {
    const state = {
      nowMs: this.nowMs,
      version: this.#version,
      absentVersions: this.#absent.slice(),
      keys: this.entries.keys().slice(),
      entries: this.entries.values().slice(),
      usage: this.usage.state(this.entries.size),
      expiring: this.expiryQueue.keys().slice(),
    };
    return this.#snapshots.take(state, pieceBytes);
  }

  /** Replaces everything. Nobody is told. @param bytes  the pieces of a snapshot, put together */
  restore(bytes: Uint8Array): void {
    const state = readSnapshot(bytes, this.#absent);
    this.entries.clear();
    this.expiryQueue.clear();
    this.#memory = 0;
    this.nowMs = state.nowMs;
    this.#version = state.version;
    state.keys.forEach((key, i) => {
      this.#add(key, state.entries[i]);
    });
    this.usage.restore(state.usage);
    for (const key of state.expiring) this.expiryQueue.append(key, this.entries.get(key)!);
    state.keys.forEach((key, i) => {
      this.#account(key, state.entries[i]);
    });
  }

  #typed<T extends ValueType>(
    entry: Entry | undefined,
    type: T,
  ): Extract<Value, { type: T }> | undefined {
    if (entry === undefined) return undefined;
    if (typeOf(entry.value) !== type) throw new ErrorReply(WRONG_TYPE);
    return entry.value as Extract<Value, { type: T }>;
  }

  #add(key: Bytes, entry: Entry): void {
    this.#snapshots.added(entry);
    this.entries.set(key, entry);
    this.usage.added(this.entries.size - 1);
  }

  /** A snapshot has the old entry. A new one spares its bytes. */
  #succeed(old: Entry, position: number, value: Value): Entry {
    const entry = new Entry(value);
    entry.expiresAtMs = old.expiresAtMs;
    entry.memory = old.memory;
    this.expiryQueue.replace(old, entry);
    this.#snapshots.added(entry);
    this.entries.setAt(position, entry);
    return entry;
  }

  #beforeWrite(entry: Entry): void {
    if (this.#snapshots.need(entry)) this.#snapshots.keep(entry);
  }

  #entryChanged(key: Bytes, entry: Entry): void {
    entry.version = ++this.#version;
    this.#account(key, entry);
    this.observer.changed(key);
  }

  #account(key: Bytes, entry: Entry): void {
    const memory = memoryOf(key, entry);
    this.#memory += memory - entry.memory;
    entry.memory = memory;
  }

  #setExpiry(key: Bytes, entry: Entry, expiresAtMs: number): void {
    if (entry.expiresAtMs === expiresAtMs) return;
    entry.expiresAtMs = expiresAtMs;
    if (expiresAtMs === Infinity) this.expiryQueue.remove(entry);
    else this.expiryQueue.put(key, entry);
  }
}

/** FNV-1a, folded. */
function hashOf(key: Bytes): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 16)) & (ABSENT_VERSIONS - 1);
}
