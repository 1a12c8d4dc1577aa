/** Calls of one shard that may wait there. Their replies come by mail. */

import { ByteWriter } from '../engine/bytes.js';
import type { Blocked } from '../gateway/backend.js';
import type { ShardCall, Shards } from '../gateway/shards.js';
import { KIND } from '../messages/message.js';
import type { Postman } from './postman.js';

/** @param wasGivenUp  it is the reply of a call that has timed out, because it was given up */
type Replied = (reply: Uint8Array, wasGivenUp: boolean) => void;

interface Waiting {
  readonly shard: number;
  readonly replied: Replied;
  readonly failed: (error: Error) => void;
  /** The shard has said that it waits. */
  isBlocked: boolean;
  isGivenUp: boolean;
}

export class BlockedCalls {
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor(
    private readonly shards: Shards,
    private readonly postman: Postman,
  ) {}

  run(call: ShardCall, replied: Replied, failed: (error: Error) => void): Blocked {
    const blockedAs = ++this.#last;
    const waiting = { shard: call.shard, replied, failed, isBlocked: false, isGivenUp: false };
    this.#waiting.set(blockedAs, waiting);
    this.shards.run(
      [{ ...call, blockedAs }],
      ([reply]) => {
        if (reply.length > 0) {
          this.unblocked(blockedAs, reply);
          return;
        }
        waiting.isBlocked = true;
        if (waiting.isGivenUp) this.#giveUp(blockedAs, waiting);
      },
      (error) => {
        this.#waiting.delete(blockedAs);
        failed(error);
      },
    );
    return {
      giveUp: () => {
        if (waiting.isGivenUp) return;
        waiting.isGivenUp = true;
        if (waiting.isBlocked) this.#giveUp(blockedAs, waiting);
      },
    };
  }

  /** The reply is there. It may come before the shard's word that the call waits. */
  unblocked(blockedAs: number, reply: Uint8Array, wasGivenUp = false): void {
    const waiting = this.#waiting.get(blockedAs);
    this.#waiting.delete(blockedAs);
    waiting?.replied(reply, wasGivenUp);
  }

  /** The shard has taken this gateway for dead. It may also have forgotten calls of which it has not said yet that they wait. */
  forgotten(shard: number): void {
    for (const [blockedAs, waiting] of this.#waiting) {
      if (waiting.shard !== shard) continue;
      this.#waiting.delete(blockedAs);
      waiting.isGivenUp = true;
      waiting.failed(new Error('the shard has lost contact to the gateway'));
    }
  }

  #giveUp(blockedAs: number, { shard, failed }: Waiting): void {
    const content = new ByteWriter().float64(blockedAs).written();
    this.postman.send(
      KIND.unblock,
      '',
      [{ group: shard, content }],
      ([timedOut]) => {
        // Empty: it has its reply already, which is on its way.
        if (timedOut.length > 0) this.unblocked(blockedAs, timedOut, true);
      },
      (error) => {
        if (this.#waiting.delete(blockedAs)) failed(error);
      },
    );
  }
}
