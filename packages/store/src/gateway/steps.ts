/**
 * What a connection has to reply to the requests that it has taken in one piece. Each request is a *step*: it knows how to write its
 * reply from those of the shards, which come in the order of the calls.
 */

import type { RepliedPart, Spread } from '../commands/spec.js';
import { readReply } from '../resp/reader.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import type { Protocol, ReplyWriter } from '../resp/writer.js';
import type { JoinedCalls } from './joined-calls.js';

/** The replies to the calls of a piece, read once from the first to the last. */
export class RepliesInOrder {
  #at = 0;

  constructor(private readonly replies: readonly Uint8Array[]) {}

  next(): Uint8Array {
    return this.replies[this.#at++];
  }
}

export interface Step {
  write(replies: RepliesInOrder, writer: ReplyWriter, protocol: Protocol): void;
}

/** Forwards the reply of one shard unchanged. */
export const FORWARD: Step = {
  write: (replies, writer) => writer.writeRaw(replies.next()),
};

/** The reply of a command that the gateway has carried out itself. */
export class Known implements Step {
  constructor(private readonly reply: Reply) {}

  write(_replies: RepliesInOrder, writer: ReplyWriter, protocol: Protocol): void {
    writer.write(this.reply, protocol);
  }
}

/** The replies of several shards become one. Shards write them as RESP 3, which says more. */
export class Merged implements Step {
  constructor(
    private readonly spread: Spread,
    private readonly parts: readonly { readonly shard: number; readonly args: readonly Bytes[] }[],
    private readonly args: readonly Bytes[],
    private readonly shardOf: (key: Bytes) => number,
    private readonly shards: number,
  ) {}

  write(replies: RepliesInOrder, writer: ReplyWriter, protocol: Protocol): void {
    const parts: RepliedPart[] = this.parts.map(({ shard, args }) => ({
      shard,
      args,
      reply: readReply(replies.next()),
    }));
    writer.write(this.#merged(parts), protocol);
  }

  #merged(parts: readonly RepliedPart[]): Reply {
    const error = parts.find(({ reply }) => reply instanceof ErrorReply)?.reply;
    if (error !== undefined) return error;
    try {
      return this.spread.merge(parts, this.args, this.shardOf, this.shards);
    } catch (error) {
      if (error instanceof ErrorReply) return error;
      return new ErrorReply(`ERR internal error: ${String(error)}`);
    }
  }
}

/** Is called with the reply to each command of a transaction. @param error  the message, if the reply is an error */
export type NoteReply = (index: number, error: Bytes | undefined) => void;

/** The reply to EXEC: an array of those to its commands. */
export class Several implements Step {
  /** @param joined  if the calls of the steps were joined */
  constructor(
    private readonly steps: readonly Step[],
    private readonly noteReply: NoteReply,
    private readonly joined?: JoinedCalls,
  ) {}

  write(replies: RepliesInOrder, writer: ReplyWriter, protocol: Protocol): void {
    const own = this.joined === undefined ? replies : this.#split(this.joined, replies);
    if (own instanceof ErrorReply) {
      writer.write(own, protocol);
      return;
    }
    writer.writeArrayHeader(this.steps.length);
    for (const [i, step] of this.steps.entries()) {
      const at = writer.length;
      step.write(own, writer, protocol);
      this.noteReply(i, writer.errorAt(at));
    }
  }

  #split(joined: JoinedCalls, replies: RepliesInOrder): RepliesInOrder | ErrorReply {
    const split = joined.split(joined.calls.map(() => replies.next()));
    // Nothing was watched, so the calls were run, or refused.
    return split instanceof ErrorReply ? split : new RepliesInOrder(split!);
  }
}

/** For a client that has turned replies off. */
export class Silent implements Step {
  constructor(private readonly step: Step) {}

  write(replies: RepliesInOrder, writer: ReplyWriter, protocol: Protocol): void {
    const { length } = writer;
    this.step.write(replies, writer, protocol);
    writer.length = length;
  }
}
