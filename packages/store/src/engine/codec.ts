/**
 * Entries as bytes: for snapshots, and for transactions that take entries to a gateway and back.
 *
 * | bytes | what |
 * |---|---|
 * | 1 | the tag of the form of the value; 128 is added if the entry expires |
 * | 8 | when it expires, only if it does |
 * | 8 | the version |
 * | … | the value, in the form that the tag names |
 *
 * A form never changes. A new form gets a new tag, and the old one can still be read.
 */

import type { Bytes } from '../resp/reply.js';
import { ByteReader, ByteWriter } from './bytes.js';
import { Entry } from './entry.js';
import { ownCopy } from './own-buffer.js';
import type { Stream } from './stream.js';
import { decodeStream, encodeStream } from './stream-codec.js';
import {
  Hash,
  List,
  Members,
  ScoredMembers,
  typeOf,
  type Value,
  type ValueType,
} from './values.js';

/** One form of values. */
interface Form<V extends Value = Value> {
  readonly tag: number;
  encode(value: V, out: ByteWriter): void;
  decode(input: ByteReader): V;
}

const STRING: Form<Bytes> = {
  tag: 1,
  encode: (value, out) => void out.bytes(value),
  decode: (input) => input.bytes(),
};

const BUFFER: Form<Buffer> = {
  tag: 2,
  encode: (value, out) => void out.uint32(value.length).raw(value),
  decode: (input) => ownCopy(input.raw(input.uint32())),
};

// Where elements have positions, their order is kept: random picks go by position, and must be the same at all replicas.

const HASH: Form<Hash> = {
  tag: 3,
  encode: (hash, out) => {
    out.uint8(hash.isCompact ? 1 : 0).uint32(hash.size);
    for (let i = 0; i < hash.size; i++) out.bytes(hash.fieldAt(i)).bytes(hash.valueAt(i));
  },
  decode: (input) => {
    const hash = new Hash();
    const isCompact = input.uint8() === 1;
    for (let left = input.uint32(); left > 0; left--) hash.set(input.bytes(), input.bytes());
    hash.isCompact = isCompact;
    return hash;
  },
};

const LIST: Form<List> = {
  tag: 4,
  encode: (list, out) => {
    out.uint32(list.length);
    for (let i = 0; i < list.length; i++) out.bytes(list.at(i));
  },
  decode: (input) => {
    const list = new List();
    for (let left = input.uint32(); left > 0; left--) list.pushRight(input.bytes());
    return list;
  },
};

const SET: Form<Members> = {
  tag: 5,
  encode: (set, out) => {
    out.uint8(set.isCompact ? 1 : 0).uint32(set.size);
    for (const member of set.keys()) out.bytes(member);
  },
  decode: (input) => {
    const set = new Members();
    const isCompact = input.uint8() === 1;
    for (let left = input.uint32(); left > 0; left--) set.add(input.bytes());
    set.isCompact = isCompact;
    return set;
  },
};

const SORTED_SET: Form<ScoredMembers> = {
  tag: 6,
  encode: ({ isCompact, scores }, out) => {
    out.uint8(isCompact ? 1 : 0).uint32(scores.size);
    for (let i = 0; i < scores.size; i++) out.bytes(scores.keyAt(i)).float64(scores.valueAt(i));
  },
  decode: (input) => {
    const set = new ScoredMembers();
    set.isCompact = input.uint8() === 1;
    for (let left = input.uint32(); left > 0; left--) set.set(input.bytes(), input.float64());
    return set;
  },
};

const STREAM: Form<Stream> = { tag: 7, encode: encodeStream, decode: decodeStream };

/** How values of each type are written. */
const WRITTEN: Readonly<Record<ValueType, Form>> = {
  string: STRING,
  hash: HASH,
  list: LIST,
  set: SET,
  zset: SORTED_SET,
  stream: STREAM,
};

/** All forms that can be read. */
const READ: ReadonlyMap<number, Form> = new Map(
  [STRING, BUFFER, HASH, LIST, SET, SORTED_SET, STREAM].map((form) => [form.tag, form]),
);

const EXPIRES = 0x80;

export function encodeEntry(entry: Entry, out: ByteWriter): void {
  const { value, expiresAtMs, version } = entry;
  const form = formOf(value);
  const expires = expiresAtMs !== Infinity;
  out.uint8(expires ? form.tag | EXPIRES : form.tag);
  if (expires) out.float64(expiresAtMs);
  out.float64(version);
  form.encode(value, out);
}

export function decodeEntry(input: ByteReader): Entry {
  const head = input.uint8();
  const form = READ.get(head & ~EXPIRES);
  if (form === undefined) throw new RangeError(`no value has the form ${head & ~EXPIRES}`);
  const expiresAtMs = head & EXPIRES ? input.float64() : Infinity;
  const version = input.float64();
  const entry = new Entry(form.decode(input));
  entry.expiresAtMs = expiresAtMs;
  entry.version = version;
  return entry;
}

/** A copy of the value of an entry. Strings need none. */
export function copyOf({ value }: Entry): Value {
  if (typeof value === 'string') return value;
  const form = formOf(value);
  const writer = new ByteWriter();
  form.encode(value, writer);
  return form.decode(new ByteReader(writer.written()));
}

function formOf(value: Value): Form {
  return Buffer.isBuffer(value) ? BUFFER : WRITTEN[typeOf(value)];
}
