/** The values of keys. */

import type { Bytes } from '../resp/reply.js';
import { Deque } from './deque.js';
import { IndexedMap } from './indexed-map.js';
import { SortedSet } from './sorted-set.js';
import type { Stream } from './stream.js';

/** Beyond these, Redis keeps a hash in another form, and OBJECT ENCODING names it. A hash never goes back. */
const COMPACT_FIELDS_MAX = 512;
const COMPACT_BYTES_MAX = 64;

/** Fields and their values. */
export class Hash {
  readonly type = 'hash';
  isCompact = true;
  readonly #fields = new IndexedMap<Bytes>();
  #valueBytes = 0;

  get size(): number {
    return this.#fields.size;
  }

  /** How many bytes all fields and values have. */
  get bytes(): number {
    return this.#fields.keyBytes + this.#valueBytes;
  }

  has(field: Bytes): boolean {
    return this.#fields.has(field);
  }

  get(field: Bytes): Bytes | undefined {
    return this.#fields.get(field);
  }

  /** @returns whether the field is new */
  set(field: Bytes, value: Bytes): boolean {
    const old = this.#fields.replace(field, value);
    this.#valueBytes += value.length - (old === undefined ? 0 : old.length);
    if (this.isCompact && this.#isLarge(field, value)) this.isCompact = false;
    return old === undefined;
  }

  delete(field: Bytes): boolean {
    const value = this.#fields.get(field);
    if (value === undefined) return false;
    this.#valueBytes -= value.length;
    return this.#fields.delete(field);
  }

  fieldAt(position: number): Bytes {
    return this.#fields.keyAt(position);
  }

  valueAt(position: number): Bytes {
    return this.#fields.valueAt(position);
  }

  fields(): readonly Bytes[] {
    return this.#fields.keys();
  }

  values(): readonly Bytes[] {
    return this.#fields.values();
  }

  scan(cursor: number, count: number, visit: (field: Bytes, value: Bytes) => void): number {
    return this.#fields.scan(cursor, count, visit);
  }

  #isLarge(field: Bytes, value: Bytes): boolean {
    return (
      field.length > COMPACT_BYTES_MAX ||
      value.length > COMPACT_BYTES_MAX ||
      this.size > COMPACT_FIELDS_MAX
    );
  }
}

export class List extends Deque {
  readonly type = 'list';
}

/** Beyond these, Redis keeps sets and sorted sets in other forms. They never go back. */
const COMPACT_INTEGERS_MAX = 512;
const COMPACT_MEMBERS_MAX = 128;

/** The values of the map mean nothing. */
export class Members extends IndexedMap<true> {
  readonly type = 'set';
  /** Whether it is a small set that had nothing but integers. */
  isCompact = true;

  /** @returns whether the member is new */
  add(member: Bytes): boolean {
    if (!this.set(member, true)) return false;
    if (this.isCompact && (this.size > COMPACT_INTEGERS_MAX || !isInteger(member))) {
      this.isCompact = false;
    }
    return true;
  }
}

export class ScoredMembers extends SortedSet {
  readonly type = 'zset';
  isCompact = true;

  override set(member: Bytes, score: number): boolean {
    if (this.isCompact && this.#isLargeWith(member)) this.isCompact = false;
    // In its compact form, Redis keeps integers as such: minus zero becomes zero.
    return super.set(member, this.isCompact ? score + 0 : score);
  }

  #isLargeWith(member: Bytes): boolean {
    if (member.length > COMPACT_BYTES_MAX) return true;
    return this.size >= COMPACT_MEMBERS_MAX && this.score(member) === undefined;
  }
}

/**
 * A string is a byte string, or a buffer (see own-buffer.ts) once a command has changed a part of it in place (APPEND, SETBIT,
 * SETRANGE).
 */
export type Value = Bytes | Buffer | Hash | List | Members | ScoredMembers | Stream;

export type ValueType = 'string' | 'hash' | 'list' | 'set' | 'zset' | 'stream';

export function typeOf(value: Value): ValueType {
  return typeof value === 'string' || Buffer.isBuffer(value) ? 'string' : value.type;
}

/** Whether it is what an integer of 64 bits looks like. */
function isInteger(member: Bytes): boolean {
  if (!/^(?:0|-?[1-9][0-9]{0,18})$/.test(member)) return false;
  return member.length < 19 || BigInt.asIntN(64, BigInt(member)) === BigInt(member);
}
