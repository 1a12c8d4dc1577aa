/**
 * A command that waits for keys of several shards. It is tried as a transaction. If it finds nothing, the gateway waits until a shard
 * says that one of the keys has changed, and tries again. Of several such commands, and others at one shard, any may be the first.
 */

import type { Queued } from '../commands/internal.js';
import type { Blocked } from '../gateway/backend.js';
import type { Router } from '../gateway/router.js';
import type { ShardCall } from '../gateway/shards.js';
import type { Reply } from '../resp/reply.js';
import { type Protocol, ReplyWriter } from '../resp/writer.js';
import type { BlockedCalls } from './blocked-calls.js';
import { type ShardTransactions, Waiting } from './transactions.js';

export class BlockedOverShards implements Blocked {
  #isGivenUp = false;
  #isTimedOut = false;
  /** Ends the present wait. */
  #wake: (() => void) | undefined;

  constructor(
    private readonly queued: Queued,
    private readonly resp: Protocol,
    private readonly replied: (reply: Uint8Array, wasGivenUp: boolean) => void,
    private readonly failed: (error: Error) => void,
  ) {}

  giveUp(): void {
    this.#isGivenUp = true;
    this.#wake?.();
  }

  start(transactions: ShardTransactions, blockedCalls: BlockedCalls, router: Router): void {
    this.#run(transactions, blockedCalls, router).then((reply) => {
      const writer = new ReplyWriter();
      writer.write(reply, this.resp);
      this.replied(writer.written(), this.#isGivenUp);
    }, this.failed);
  }

  async #run(
    transactions: ShardTransactions,
    blockedCalls: BlockedCalls,
    router: Router,
  ): Promise<Reply> {
    let timer: NodeJS.Timeout | undefined;
    let { queued } = this;
    try {
      for (let isFirst = true; ; isFirst = false) {
        const outcome = await transactions.tryToRun(queued, !isFirst);
        if (!(outcome instanceof Waiting)) return outcome;
        const { timeoutMs, timedOut, args = queued.args } = outcome.wait;
        queued = { name: queued.name, args };
        if (this.#isGivenUp || this.#isTimedOut) return timedOut;
        if (timeoutMs > 0 && timer === undefined) {
          timer = setTimeout(() => {
            this.#isTimedOut = true;
            this.#wake?.();
          }, timeoutMs);
        }
        await this.#untilChanged(outcome, blockedCalls, router);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits until one of the keys has changed, or the command is given up. */
  async #untilChanged(
    { versions }: Waiting,
    blockedCalls: BlockedCalls,
    router: Router,
  ): Promise<void> {
    const byShard = new Map<number, string[]>();
    for (const [key, version] of versions) {
      const shard = router.shardOf(key);
      byShard.set(shard, [...(byShard.get(shard) ?? []), key, String(version)]);
    }
    const waits: Blocked[] = [];
    try {
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve;
        for (const [shard, args] of byShard) {
          const call: ShardCall = { shard, command: { name: '.await' }, args, resp: 3 };
          waits.push(blockedCalls.run(call, () => resolve(), reject));
        }
      });
    } finally {
      this.#wake = undefined;
      for (const wait of waits) wait.giveUp();
    }
  }
}
