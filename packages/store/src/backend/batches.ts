/**
 * Runs calls at shards. Requests of one turn of the event loop share messages: those to the same shard, and all those to several
 * shards. One message to the shards of all of these costs less than one for each, even if they have no shard in common: such messages
 * are ordered at the root of the tree, whatever shards they go to.
 *
 * Requests that share a message do not wait for what is long of each other. One that is itself long has a message of its own. A long
 * reply is stored at its shard, and only the request that it belongs to waits until it has been fetched.
 */

import { ByteWriter } from '../engine/bytes.js';
import type { Replied, ShardCall, Shards } from '../gateway/shards.js';
import { ReplyQueue, writeCall } from '../messages/contents.js';
import { KIND, PAYLOAD_BYTES_MAX, type StoredReply } from '../messages/message.js';
import { ErrorReply } from '../resp/reply.js';
import type { Postman } from './postman.js';

/** A batch of this size is sent without waiting for the end of the turn. A request of this size has one of its own. */
const FULL_BYTES = PAYLOAD_BYTES_MAX / 2;
/** The length that a message has of each argument. */
const LENGTH_BYTES = 4;

interface Request {
  readonly calls: readonly ShardCall[];
  readonly replied: Replied;
  readonly failed: (error: Error) => void;
}

class Batch {
  readonly requests: Request[] = [];
  readonly sections = new Map<number, ByteWriter>();
  bytes = 0;

  constructor(private readonly writers: Writers) {}

  add(request: Request): void {
    this.requests.push(request);
    for (const { shard, command, args, resp, blockedAs, isPart } of request.calls) {
      let section = this.sections.get(shard);
      if (section === undefined) {
        section = this.writers.take();
        this.sections.set(shard, section);
      }
      const before = section.length;
      const { name } = command;
      writeCall(section, { name, args, resp, blockedAs: blockedAs ?? 0, isPart: isPart === true });
      this.bytes += section.length - before;
    }
  }
}

/** Writers that are used again: their buffers are large. */
class Writers {
  readonly #free: ByteWriter[] = [];

  take(): ByteWriter {
    return this.#free.pop() ?? new ByteWriter();
  }

  giveBack(writer: ByteWriter): void {
    this.#free.push(writer.reset());
  }
}

/** Instead of a shard: the batch of requests that go to several. */
const SEVERAL = -1;

export class Batches implements Shards {
  /** By shard. */
  readonly #batches = new Map<number, Batch>();
  readonly #writers = new Writers();
  #isFlushScheduled = false;

  constructor(
    readonly count: number,
    private readonly postman: Postman,
  ) {}

  run(calls: readonly ShardCall[], replied: Replied, failed: (error: Error) => void): void {
    const shard = onlyShardOf(calls);
    if (bytesOf(calls) >= FULL_BYTES) this.#sendBatchOf(shard);
    const batch = this.#batches.get(shard) ?? new Batch(this.#writers);
    this.#batches.set(shard, batch);
    batch.add({ calls, replied, failed });
    if (batch.bytes >= FULL_BYTES) this.#sendBatchOf(shard);
    else if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      setImmediate(() => this.#flush());
    }
  }

  isShort(shard: number): boolean {
    return this.postman.isShort(shard);
  }

  #sendBatchOf(shard: number): void {
    const batch = this.#batches.get(shard);
    this.#batches.delete(shard);
    if (batch !== undefined) this.#send(batch);
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    const batches = [...this.#batches.values()];
    // A batch that fails at once may let clients go on, who begin another one.
    this.#batches.clear();
    for (const batch of batches) this.#send(batch);
  }

  #send({ requests, sections }: Batch): void {
    const groups = [...sections.keys()];
    const letters = groups.map((group) => ({ group, content: sections.get(group)!.written() }));
    const failed = (error: Error): void => {
      for (const request of requests) request.failed(error);
    };
    const replied = (contents: readonly Uint8Array[]): void => {
      // Then none of them has run anything.
      if (contents.some((content) => content.length === 0)) {
        failed(new ErrorReply('TRYAGAIN the shards have dropped what was uploaded to them'));
        return;
      }
      // Each shard has replied to its calls in their order.
      const replies: ReplyQueue[] = [];
      groups.forEach((group, i) => {
        replies[group] = new ReplyQueue(contents[i]);
      });
      for (const request of requests) {
        this.#answer(
          request,
          request.calls.map(({ shard }) => replies[shard].next()),
        );
      }
    };
    const { traffic } = this.postman;
    traffic.batches++;
    for (const { calls } of requests) traffic.batchedCommands += calls.length;
    const isCopied = this.postman.send(KIND.batch, '', letters, replied, failed);
    if (isCopied) for (const writer of sections.values()) this.#writers.giveBack(writer);
  }

  /** @param contents  valid only during the call */
  #answer(
    { calls, replied, failed }: Request,
    contents: readonly (Uint8Array | StoredReply)[],
  ): void {
    if (areHere(contents)) {
      replied(contents);
      return;
    }
    const kept = contents.map((content) =>
      content instanceof Uint8Array ? Buffer.from(content) : content,
    );
    const shards = calls.map(({ shard }) => shard);
    this.postman.fetchAll(shards, kept).then(replied, failed);
  }
}

/** How many bytes the arguments take in a message: `writeCall` writes each with its length. */
function bytesOf(calls: readonly ShardCall[]): number {
  let bytes = 0;
  for (const { args } of calls) for (const { length } of args) bytes += LENGTH_BYTES + length;
  return bytes;
}

/** Whether none of them is stored at its shard. */
function areHere(contents: readonly (Uint8Array | StoredReply)[]): contents is Uint8Array[] {
  for (const content of contents) if (!(content instanceof Uint8Array)) return false;
  return true;
}

/** `SEVERAL` if there is more than one. */
function onlyShardOf(calls: readonly ShardCall[]): number {
  const { shard } = calls[0];
  for (const call of calls) if (call.shard !== shard) return SEVERAL;
  return shard;
}
