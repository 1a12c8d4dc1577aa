/** Streams: entries in the order of their ids, and groups of consumers that share them. */

import type { Bytes } from '../resp/reply.js';
import { SortedMap } from './sorted-map.js';
import {
  ID_MAX,
  ID_MIN,
  type IdPart,
  idAfter,
  idPart,
  msOf,
  PART_MIN,
  type StreamId,
} from './stream-ids.js';

/** Fields and values, one after the other. */
export type Fields = readonly Bytes[];

/** Redis keeps small entries in nodes of up to so many. Approximate trimming removes whole nodes there. */
const ENTRIES_PER_NODE = 100;

/** An entry that a consumer has got and not acknowledged. */
export interface Pending {
  consumer: Consumer;
  deliveredAtMs: number;
  deliveries: number;
}

export class Consumer {
  readonly pending = new SortedMap<Pending>();

  constructor(
    readonly name: Bytes,
    public seenAtMs: number,
  ) {}
}

/** For a group that does not know how many entries it has read. */
export const UNKNOWN = -1;

export class Group {
  readonly pending = new SortedMap<Pending>();
  readonly consumers = new Map<Bytes, Consumer>();

  constructor(
    /** The last entry that a consumer has got. */
    public lastId: StreamId,
    /** How many entries of the stream are up to there, counting those that are gone; or `UNKNOWN`. */
    public entriesRead: number,
  ) {}

  consumer(name: Bytes, nowMs: number): Consumer {
    let consumer = this.consumers.get(name);
    if (consumer === undefined) {
      consumer = new Consumer(name, nowMs);
      this.consumers.set(name, consumer);
    }
    consumer.seenAtMs = nowMs;
    return consumer;
  }

  /** The entry is the consumer's from now on, whoever had it. */
  assign(id: StreamId, consumer: Consumer, deliveredAtMs: number, deliveries: number): void {
    const before = this.pending.get(id);
    if (before !== undefined && before.consumer !== consumer) before.consumer.pending.delete(id);
    const pending = { consumer, deliveredAtMs, deliveries };
    this.pending.set(id, pending);
    consumer.pending.set(id, pending);
  }

  /** @returns whether it was pending */
  acknowledge(id: StreamId): boolean {
    const pending = this.pending.get(id);
    if (pending === undefined) return false;
    this.pending.delete(id);
    pending.consumer.pending.delete(id);
    return true;
  }

  /** @returns how many entries it had not acknowledged; they are nobody's any more */
  deleteConsumer(name: Bytes): number {
    const consumer = this.consumers.get(name);
    if (consumer === undefined) return 0;
    const { size } = consumer.pending;
    consumer.pending.visit(ID_MIN, ID_MAX, (id) => this.pending.delete(id));
    this.consumers.delete(name);
    return size;
  }
}

export class Stream {
  readonly type = 'stream';
  readonly entries = new SortedMap<Fields>();
  readonly groups = new Map<Bytes, Group>();
  lastId: StreamId = ID_MIN;
  /** The greatest one that XDEL has removed. */
  maxDeletedId: StreamId = ID_MIN;
  /** How many there ever were. */
  entriesAdded = 0;
  #bytes = 0;
  #texts = 0;

  /** How many bytes all fields and values have. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many fields and values there are. */
  get texts(): number {
    return this.#texts;
  }

  /** How many entries are pending in all groups. */
  get pending(): number {
    let count = 0;
    for (const { pending } of this.groups.values()) count += pending.size;
    return count;
  }

  get firstId(): StreamId {
    return this.entries.first?.[0] ?? ID_MIN;
  }

  /** The id of an entry that is added now. @returns undefined if there is none left */
  nextId(nowMs: number): StreamId | undefined {
    const now = idPart(Math.floor(nowMs)) + PART_MIN;
    return now > this.lastId ? now : idAfter(this.lastId);
  }

  /** The next id with this time. @returns undefined if there is none */
  nextIdAt(ms: IdPart): StreamId | undefined {
    const lastMs = msOf(this.lastId);
    if (ms !== lastMs) return ms > lastMs ? ms + PART_MIN : undefined;
    const next = idAfter(this.lastId);
    return next !== undefined && msOf(next) === ms ? next : undefined;
  }

  /** @param id  greater than `lastId` */
  append(id: StreamId, fields: Fields): void {
    this.restore(id, fields);
    this.lastId = id;
    this.entriesAdded++;
  }

  /** Puts an entry back, from a snapshot. */
  restore(id: StreamId, fields: Fields): void {
    this.entries.set(id, fields);
    this.#bytes += bytesOf(fields);
    this.#texts += fields.length;
  }

  delete(id: StreamId): boolean {
    if (!this.#remove(id)) return false;
    if (id > this.maxDeletedId) this.maxDeletedId = id;
    return true;
  }

  /** Removes the first entries while more than `length` are left. @returns how many were removed */
  trimToLength(length: number, approximate: boolean, limit: number): number {
    return this.#trim(this.entries.size - length, approximate, limit);
  }

  /** Removes entries with smaller ids. @returns how many were removed */
  trimBelow(id: StreamId, approximate: boolean, limit: number): number {
    let count = 0;
    this.entries.visit(ID_MIN, id, (other) => {
      if (other < id) count++;
      return other < id;
    });
    return this.#trim(count, approximate, limit);
  }

  #trim(excess: number, approximate: boolean, limit: number): number {
    let count = Math.max(0, Math.min(excess, limit));
    if (approximate && count < this.entries.size) {
      // What the first node has lost already, if only first entries are gone, and the stream was never empty.
      const lost = Math.max(0, this.entriesAdded - this.entries.size) % ENTRIES_PER_NODE;
      count = Math.max(0, count - ((lost + count) % ENTRIES_PER_NODE));
    }
    for (let i = 0; i < count; i++) this.#remove(this.entries.first![0]);
    return count;
  }

  #remove(id: StreamId): boolean {
    const fields = this.entries.get(id);
    if (fields === undefined) return false;
    this.#bytes -= bytesOf(fields);
    this.#texts -= fields.length;
    return this.entries.delete(id);
  }

  // ── How far groups are ──

  /** Whether XDEL has removed an entry after this id, and after the first one that is left. */
  hasGapsAfter(id: StreamId): boolean {
    if (this.entries.size === 0 || this.maxDeletedId === ID_MIN) return false;
    return this.firstId <= this.maxDeletedId && id <= this.maxDeletedId;
  }

  /** How many entries there ever were up to this id. @returns `UNKNOWN` if removed entries do not let it be known */
  entriesUpTo(id: StreamId): number {
    if (this.entriesAdded === 0) return 0;
    if (this.entries.size === 0 && id <= this.lastId) return this.entriesAdded;
    if (id === this.lastId) return this.entriesAdded;
    if (id > this.lastId) return UNKNOWN;
    const { firstId } = this;
    if (this.maxDeletedId === ID_MIN || this.maxDeletedId < firstId) {
      if (id < firstId) return this.entriesAdded - this.entries.size;
      if (id === firstId) return this.entriesAdded - this.entries.size + 1;
    }
    return UNKNOWN;
  }

  /** How many entries the group has not read. @returns undefined if that cannot be known */
  lagOf(group: Group): number | undefined {
    if (this.entriesAdded === 0) return 0;
    if (group.entriesRead !== UNKNOWN && !this.hasGapsAfter(group.lastId)) {
      return this.entriesAdded - group.entriesRead;
    }
    const read = this.entriesUpTo(group.lastId);
    return read === UNKNOWN ? undefined : this.entriesAdded - read;
  }
}

function bytesOf(fields: Fields): number {
  let bytes = 0;
  for (const text of fields) bytes += text.length;
  return bytes;
}
