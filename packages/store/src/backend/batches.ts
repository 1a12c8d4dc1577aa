/** Runs calls at shards. Calls of one turn of the event loop that have the same destinations share a message. */

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
    for (const { shard, command, args, resp, blockedAs } of request.calls) {
      let section = this.sections.get(shard);
      if (section === undefined) {
        section = this.writers.take();
        this.sections.set(shard, section);
      }
      const before = section.length;
      writeCall(section, { name: command.name, args, resp, blockedAs: blockedAs ?? 0 });
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

export class Batches implements Shards {
  /** By their destinations. */
  readonly #batches = new Map<string, Batch>();
  readonly #writers = new Writers();
  #isFlushScheduled = false;

  constructor(
    readonly count: number,
    private readonly postman: Postman,
  ) {}

  run(calls: readonly ShardCall[], replied: Replied, failed: (error: Error) => void): void {
    const destinations = destinationsOf(calls);
    const batch = this.#batches.get(destinations) ?? new Batch(this.#writers);
    this.#batches.set(destinations, batch);
    batch.add({ calls, replied, failed });
    if (batch.bytes >= FULL_BYTES) {
      this.#batches.delete(destinations);
      this.#send(batch);
    } else if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true;
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    for (const batch of this.#batches.values()) this.#send(batch);
    this.#batches.clear();
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

/** Equal for calls that go to the same shards. */
function destinationsOf(calls: readonly ShardCall[]): string {
  if (calls.length === 1) return String(calls[0].shard);
  return [...new Set(calls.map(({ shard }) => shard))].sort((a, b) => a - b).join();
}
