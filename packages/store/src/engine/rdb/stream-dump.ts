/** Streams as Redis 7.0 dumps them: entries in listpacks of up to a hundred, which name the fields of their first entry only once. */

import type { Bytes } from '../../resp/reply.js';
import { type Fields, Group, Stream } from '../stream.js';
import { ID_MAX, ID_MIN, type StreamId } from '../stream-ids.js';
import { Listpack, listpackElements } from './packed.js';

const NODE_ENTRIES_MAX = 100;
const DELETED = 1;
const SAME_FIELDS = 2;

/** A text, a length, or bytes as they are. */
export type DumpPart = Bytes | bigint | Buffer;

export interface PartReader {
  text(): Bytes;
  buffer(): Buffer;
  length64(): bigint;
  take(length: number): Buffer;
}

type Entry = readonly [id: StreamId, fields: Fields];

/** The parts of a dump, in their order. */
export function streamParts(stream: Stream): DumpPart[] {
  const parts: DumpPart[] = [];
  const nodes = nodesOf(stream);
  parts.push(BigInt(nodes.length));
  for (const node of nodes) parts.push(node[0][0], packedNode(node));
  parts.push(BigInt(stream.entries.size));
  for (const id of [stream.lastId, stream.firstId, stream.maxDeletedId]) parts.push(...idParts(id));
  parts.push(BigInt(stream.entriesAdded), BigInt(stream.groups.size));
  for (const [name, group] of stream.groups) parts.push(name, ...groupParts(group));
  return parts;
}

function nodesOf(stream: Stream): Entry[][] {
  const nodes: Entry[][] = [];
  stream.entries.visit(ID_MIN, ID_MAX, (id, fields) => {
    const last = nodes.at(-1);
    if (last !== undefined && last.length < NODE_ENTRIES_MAX) last.push([id, fields]);
    else nodes.push([[id, fields]]);
    return true;
  });
  return nodes;
}

function packedNode(entries: readonly Entry[]): Bytes {
  const [firstId, firstFields] = entries[0];
  const [ms, sequence] = idParts(firstId);
  const names = firstFields.filter((_, i) => i % 2 === 0);
  const pack = new Listpack();
  for (const count of [entries.length, 0, names.length]) pack.addInteger(BigInt(count));
  for (const name of names) pack.addText(name);
  pack.addInteger(0n);
  for (const [id, fields] of entries) {
    const isAlike =
      fields.length === firstFields.length && names.every((name, i) => fields[2 * i] === name);
    const [entryMs, entrySequence] = idParts(id);
    const from = pack.size;
    pack.addInteger(isAlike ? BigInt(SAME_FIELDS) : 0n);
    pack.addInteger(BigInt.asIntN(64, entryMs - ms));
    pack.addInteger(BigInt.asIntN(64, entrySequence - sequence));
    if (!isAlike) pack.addInteger(BigInt(fields.length / 2));
    for (const [i, text] of fields.entries()) if (!isAlike || i % 2 === 1) pack.addText(text);
    pack.addInteger(BigInt(pack.size - from));
  }
  return pack.bytes();
}

function idParts(id: StreamId): [ms: bigint, sequence: bigint] {
  const bytes = Buffer.from(id, 'latin1');
  return [bytes.readBigUInt64BE(0), bytes.readBigUInt64BE(8)];
}

function groupParts({ lastId, entriesRead, pending, consumers }: Group): DumpPart[] {
  const parts: DumpPart[] = [...idParts(lastId), BigInt.asUintN(64, BigInt(entriesRead))];
  parts.push(BigInt(pending.size));
  pending.visit(ID_MIN, ID_MAX, (id, { deliveredAtMs, deliveries }) => {
    parts.push(Buffer.from(id, 'latin1'), time(deliveredAtMs), BigInt(deliveries));
    return true;
  });
  parts.push(BigInt(consumers.size));
  for (const consumer of consumers.values()) {
    parts.push(consumer.name, time(consumer.seenAtMs), BigInt(consumer.pending.size));
    consumer.pending.visit(ID_MIN, ID_MAX, (id) => {
      parts.push(Buffer.from(id, 'latin1'));
      return true;
    });
  }
  return parts;
}

function time(ms: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(Math.floor(ms)));
  return bytes;
}

// ── Reading ──

/** That of the form: 1 is of Redis 5; 2 of Redis 7.0, which counts what was added; 3 of Redis 7.2, with more times of consumers. */
type FormVersion = 1 | 2 | 3;

/** @throws RangeError if it is damaged */
export function readStream(reader: PartReader, version: FormVersion): Stream {
  const stream = new Stream();
  for (let left = count(reader); left > 0; left--) readNode(reader, stream);
  if (stream.entries.size !== count(reader)) throw new RangeError('entries are missing');
  stream.lastId = readId(reader);
  if (stream.entries.size > 0 && stream.entries.last![0] > stream.lastId) {
    throw new RangeError('the last id is too small');
  }
  stream.entriesAdded = stream.entries.size;
  if (version > 1) {
    readId(reader);
    stream.maxDeletedId = readId(reader);
    stream.entriesAdded = count(reader);
  }
  for (let left = count(reader); left > 0; left--) {
    const name = reader.text();
    if (stream.groups.has(name)) throw new RangeError('a group is there twice');
    stream.groups.set(name, readGroup(reader, stream, version));
  }
  return stream;
}

function count(reader: PartReader): number {
  return Number(reader.length64());
}

function readId(reader: PartReader): StreamId {
  return idOf(reader.length64(), reader.length64());
}

function idOf(ms: bigint, sequence: bigint): StreamId {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, ms), 0);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, sequence), 8);
  return bytes.toString('latin1');
}

function readNode(reader: PartReader, stream: Stream): void {
  const [ms, sequence] = idParts(requireId(reader.text()));
  const elements = listpackElements(reader.buffer());
  let at = 0;
  const text = (): Bytes => {
    if (at === elements.length) throw new RangeError('a listpack is not whole');
    return elements[at++];
  };
  const integer = (): bigint => {
    const digits = text();
    if (!/^-?[0-9]{1,20}$/.test(digits)) throw new RangeError('not an integer');
    return BigInt(digits);
  };
  const entries = Number(integer() + integer());
  const names: Bytes[] = [];
  for (let left = Number(integer()); left > 0; left--) names.push(text());
  integer();
  for (let left = entries; left > 0; left--) {
    const flags = Number(integer());
    const id = idOf(ms + integer(), sequence + integer());
    const fields: Bytes[] = [];
    if (flags & SAME_FIELDS) for (const name of names) fields.push(name, text());
    else for (let pairs = Number(integer()); pairs > 0; pairs--) fields.push(text(), text());
    integer();
    if (flags & DELETED) continue;
    if (id <= (stream.entries.last?.[0] ?? ID_MIN)) throw new RangeError('ids are not in order');
    stream.restore(id, fields);
  }
}

function requireId(id: Bytes): StreamId {
  if (id.length !== ID_MIN.length) throw new RangeError('not an id');
  return id;
}

function readGroup(reader: PartReader, stream: Stream, version: FormVersion): Group {
  const lastId = readId(reader);
  const entriesRead =
    version > 1 ? Number(BigInt.asIntN(64, reader.length64())) : stream.entriesUpTo(lastId);
  const group = new Group(lastId, entriesRead);
  const deliveries = new Map<StreamId, readonly [atMs: number, count: number]>();
  for (let left = count(reader); left > 0; left--) {
    deliveries.set(rawId(reader), [readTime(reader), count(reader)]);
  }
  for (let left = count(reader); left > 0; left--) {
    const name = reader.text();
    if (group.consumers.has(name)) throw new RangeError('a consumer is there twice');
    const consumer = group.consumer(name, readTime(reader));
    // When it last got an entry: only the time is kept at which it was last there.
    if (version === 3) readTime(reader);
    for (let pending = count(reader); pending > 0; pending--) {
      const id = rawId(reader);
      const delivery = deliveries.get(id);
      if (delivery === undefined) throw new RangeError('a pending entry is missing');
      group.assign(id, consumer, ...delivery);
      deliveries.delete(id);
    }
  }
  if (deliveries.size > 0) throw new RangeError('a pending entry has no consumer');
  return group;
}

function rawId(reader: PartReader): StreamId {
  return reader.take(ID_MIN.length).toString('latin1');
}

function readTime(reader: PartReader): number {
  return Number(reader.take(8).readBigInt64LE());
}
