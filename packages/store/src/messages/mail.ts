/** Notices of shards to gateways: a gateway asks for its mail with `listen`, and the shard replies once it has a notice. */

import { ByteReader, type ByteWriter } from '../engine/bytes.js';
import type { Bytes } from '../resp/reply.js';

export type Notice =
  /** A blocked call has its reply. */
  | { readonly type: 'unblocked'; readonly blockedAs: number; readonly reply: Uint8Array }
  /** To a channel that the gateway has subscribed to. */
  | {
      readonly type: 'published';
      readonly isSharded: boolean;
      readonly channel: Bytes;
      readonly message: Bytes;
    }
  /** A transaction takes long: its gateway may have died. Its own gateway says that it goes on. Any other one aborts it. */
  | { readonly type: 'overdue'; readonly transaction: Bytes; readonly groups: readonly number[] };

const TYPE = { unblocked: 1, published: 2, shardPublished: 3, overdue: 4 } as const;

export function writeNotice(writer: ByteWriter, notice: Notice): void {
  if (notice.type === 'unblocked') {
    const { blockedAs, reply } = notice;
    writer.uint8(TYPE.unblocked).float64(blockedAs).uint32(reply.length).raw(reply);
  } else if (notice.type === 'published') {
    writer.uint8(notice.isSharded ? TYPE.shardPublished : TYPE.published);
    writer.bytes(notice.channel).bytes(notice.message);
  } else {
    writer.uint8(TYPE.overdue).bytes(notice.transaction).uint32(notice.groups.length);
    for (const group of notice.groups) writer.uint8(group);
  }
}

function readNotice(reader: ByteReader): Notice {
  const type = reader.uint8();
  if (type === TYPE.unblocked) {
    return { type: 'unblocked', blockedAs: reader.float64(), reply: reader.raw(reader.uint32()) };
  }
  if (type === TYPE.overdue) {
    const transaction = reader.bytes();
    const groups = Array.from({ length: reader.uint32() }, () => reader.uint8());
    return { type: 'overdue', transaction, groups };
  }
  const isSharded = type === TYPE.shardPublished;
  return { type: 'published', isSharded, channel: reader.bytes(), message: reader.bytes() };
}

/** The reply to `listen`. */
export interface Mail {
  /** The number of the last notice: the next `listen` acknowledges it. */
  readonly upTo: number;
  readonly notices: readonly Notice[];
}

/** @param notices  as `writeNotice` has written them */
export function writeMail(writer: ByteWriter, upTo: number, notices: readonly Uint8Array[]): void {
  writer.uint8(1).float64(upTo);
  for (const notice of notices) writer.raw(notice);
}

/** The shard has forgotten the gateway, with its subscriptions and its blocked calls. */
export function writeNoMail(writer: ByteWriter): void {
  writer.uint8(0);
}

export function readMail(content: Uint8Array): Mail | undefined {
  const reader = new ByteReader(content);
  if (reader.uint8() === 0) return undefined;
  const upTo = reader.float64();
  const notices: Notice[] = [];
  while (!reader.isAtEnd) notices.push(readNotice(reader));
  return { upTo, notices };
}
