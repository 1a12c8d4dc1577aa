/** Streams as bytes. */

import type { Bytes } from '../resp/reply.js';
import type { ByteReader, ByteWriter } from './bytes.js';
import { Group, Stream } from './stream.js';
import { ID_MAX, ID_MIN } from './stream-ids.js';

export function encodeStream(stream: Stream, out: ByteWriter): void {
  out.bytes(stream.lastId).bytes(stream.maxDeletedId).float64(stream.entriesAdded);
  out.uint32(stream.entries.size);
  stream.entries.visit(ID_MIN, ID_MAX, (id, fields) => {
    out.bytes(id).uint32(fields.length);
    for (const text of fields) out.bytes(text);
    return true;
  });
  out.uint32(stream.groups.size);
  for (const [name, group] of stream.groups) {
    out.bytes(name).bytes(group.lastId).float64(group.entriesRead);
    out.uint32(group.consumers.size);
    for (const consumer of group.consumers.values()) {
      out.bytes(consumer.name).float64(consumer.seenAtMs).uint32(consumer.pending.size);
      consumer.pending.visit(ID_MIN, ID_MAX, (id, { deliveredAtMs, deliveries }) => {
        out.bytes(id).float64(deliveredAtMs).float64(deliveries);
        return true;
      });
    }
  }
}

export function decodeStream(input: ByteReader): Stream {
  const stream = new Stream();
  stream.lastId = input.bytes();
  stream.maxDeletedId = input.bytes();
  stream.entriesAdded = input.float64();
  for (let left = input.uint32(); left > 0; left--) {
    const id = input.bytes();
    const fields: Bytes[] = [];
    for (let texts = input.uint32(); texts > 0; texts--) fields.push(input.bytes());
    stream.restore(id, fields);
  }
  for (let left = input.uint32(); left > 0; left--) {
    stream.groups.set(input.bytes(), decodeGroup(input));
  }
  return stream;
}

function decodeGroup(input: ByteReader): Group {
  const group = new Group(input.bytes(), input.float64());
  for (let left = input.uint32(); left > 0; left--) {
    const consumer = group.consumer(input.bytes(), input.float64());
    for (let pending = input.uint32(); pending > 0; pending--) {
      group.assign(input.bytes(), consumer, input.float64(), input.float64());
    }
  }
  return group;
}
