/**
 * What gateways multicast to shards, and how shards reply.
 *
 *     message:  kind u8 | shards u8 | stamp f64 | seed u32 | sender | subject | sections
 *     section:  group u8 | form u8 | length u32 | content, or the number of an upload (f64)
 *     reply:    form u8 | content, or the number (f64) and the length (u32) of a stored reply
 *               128 is added to the form if the memory of the shard is short
 *
 * A message has one section for each of its destinations. Each shard reads its own. What is longer than a message goes ahead as an
 * upload in pieces, and the message refers to it. A reply that is too long is stored at the shard, and fetched in pieces. If it is that
 * to a batch, its long parts are stored one by one (`contents.ts`).
 */

import { ByteReader, type ByteWriter } from '../engine/bytes.js';
import type { Bytes } from '../resp/reply.js';
import { VERSION } from '../version.js';

/** The limits of a cluster that the store starts. */
export const PAYLOAD_BYTES_MAX = 64 * 1024;
export const REPLY_BYTES_MAX = 16 * 1024;

/** Gateways and shards of other versions may not understand each other. */
export const GREETING = `tram-store ${VERSION}`;

export const KIND = {
  /** Run these calls. */
  batch: 1,
  /** The transaction named by the subject claims keys, and asks for what they hold once it is first on all of them. */
  prepare: 2,
  /** The transaction writes and runs calls, and lets its keys go. */
  decide: 3,
  /** The transaction lets its keys go. */
  abort: 4,
  /** A piece of an upload. */
  upload: 5,
  /** A piece of a stored reply is asked for. */
  fetch: 6,
  /** The gateway asks for its mail. */
  listen: 7,
  /** A blocked call of the gateway is given up. */
  unblock: 8,
  /** The transaction is not over: its gateway lives. */
  keep: 9,
  /** A gateway asks what it speaks to, before it sends anything else. The reply is `GREETING`. */
  hello: 10,
} as const;

export type Kind = (typeof KIND)[keyof typeof KIND];

const FORM = { inline: 0, elsewhere: 1 } as const;
const SHORT = 0x80;

export interface Header {
  readonly kind: Kind;
  /** How many there are: from that, a shard knows which keys it has. */
  readonly shards: number;
  /** The clock of the sender, in milliseconds since 1970. */
  readonly stampMs: number;
  /** For commands that pick at random. */
  readonly seed: number;
  /** The gateway. */
  readonly sender: Bytes;
  /** The transaction. */
  readonly subject: Bytes;
}

export interface Section {
  readonly group: number;
  /** A number: of an upload that has it. */
  readonly content: Uint8Array | number;
}

export function writeMessage(
  writer: ByteWriter,
  header: Header,
  sections: readonly Section[],
): Uint8Array {
  writer
    .reset()
    .uint8(header.kind)
    .uint8(header.shards)
    .float64(header.stampMs)
    .uint32(header.seed)
    .bytes(header.sender)
    .bytes(header.subject);
  for (const { group, content } of sections) {
    writer.uint8(group);
    if (typeof content === 'number') writer.uint8(FORM.elsewhere).uint32(8).float64(content);
    else writer.uint8(FORM.inline).uint32(content.length).raw(content);
  }
  return writer.written();
}

/** How many bytes a message has besides the contents of its sections. */
export function overheadBytes(header: Header, sections: number): number {
  return 2 + 8 + 4 + 4 + header.sender.length + 4 + header.subject.length + sections * (6 + 8);
}

/** @returns the header, and the section for this group */
export function readMessage(
  payload: Uint8Array,
  group: number,
): { header: Header; content: Uint8Array | number } {
  const reader = new ByteReader(payload);
  const header: Header = {
    kind: reader.uint8() as Kind,
    shards: reader.uint8(),
    stampMs: reader.float64(),
    seed: reader.uint32(),
    sender: reader.bytes(),
    subject: reader.bytes(),
  };
  while (!reader.isAtEnd) {
    const isOurs = reader.uint8() === group;
    const form = reader.uint8();
    const length = reader.uint32();
    if (!isOurs) reader.skip(length);
    else if (form === FORM.elsewhere) return { header, content: reader.float64() };
    else return { header, content: reader.raw(length) };
  }
  throw new Error(`the message has no section for group ${group}`);
}

export function writeInlineReply(
  writer: ByteWriter,
  content: Uint8Array,
  isShort: boolean,
): Uint8Array {
  return writer.reset().uint8(formOf(FORM.inline, isShort)).raw(content).copy();
}

export function writeStoredReply(
  writer: ByteWriter,
  { number, length }: StoredReply,
  isShort: boolean,
): Uint8Array {
  const form = formOf(FORM.elsewhere, isShort);
  return writer.reset().uint8(form).float64(number).uint32(length).copy();
}

function formOf(form: number, isShort: boolean): number {
  return isShort ? form | SHORT : form;
}

export interface StoredReply {
  readonly number: number;
  readonly length: number;
}

/** Whether the memory of the shard was short when it replied. */
export function tellsShort(reply: Uint8Array): boolean {
  return (reply[0] & SHORT) !== 0;
}

export function readReply(reply: Uint8Array): Buffer | StoredReply {
  const reader = new ByteReader(reply);
  if ((reader.uint8() & ~SHORT) === FORM.inline) return reader.raw(reply.length - 1);
  return { number: reader.float64(), length: reader.uint32() };
}
