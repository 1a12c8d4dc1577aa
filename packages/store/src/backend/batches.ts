/**
 * Runs calls at shards. Requests of one turn of the event loop share messages: those to the same shard, and all those to several
 * shards. One message to the shards of all of these costs less than one for each, even if they have no shard in common: such messages
 * are ordered at the root of the tree, whatever shards they go to.
 */

import { ByteWriter } from '../engine/bytes.js';
import type { Replied, ShardCall, Shards } from '../gateway/shards.js';
import { ReplyQueue, writeCall } from '../messages/contents.js';
import { KIND, PAYLOAD_BYTES_MAX } from '../messages/message.js';
import { ErrorReply } from '../resp/reply.js';
import type { Postman } from './postman.js';

/** A batch of this size is sent without waiting for the end of the turn. */
const FULL_BYTES = PAYLOAD_BYTES_MAX / 2;

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
    const batch = this.#batches.get(shard) ?? new Batch(this.#writers);
    this.#batches.set(shard, batch);
    batch.add({ calls, replied, failed });
    if (batch.bytes >= FULL_BYTES) {
      this.#batches.delete(shard);
      this.#send(batch);
    } else if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      setImmediate(() => this.#flush());
    }
  }

  isShort(shard: number): boolean {
    return this.postman.isShort(shard);
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
        request.replied(request.calls.map(({ shard }) => replies[shard].next()));
      }
    };
    const { traffic } = this.postman;
    traffic.batches++;
    for (const { calls } of requests) traffic.batchedCommands += calls.length;
    const isCopied = this.postman.send(KIND.batch, '', letters, replied, failed);
    if (isCopied) for (const writer of sections.values()) this.#writers.giveBack(writer);
  }
}

/** `SEVERAL` if there is more than one. */
function onlyShardOf(calls: readonly ShardCall[]): number {
  const { shard } = calls[0];
  for (const call of calls) if (call.shard !== shard) return SEVERAL;
  return shard;
}
