/** Calls of one shard that may wait there. Their replies come by mail. */

import { ByteWriter } from '../engine/bytes.js';
import type { Blocked } from '../gateway/backend.js';
import type { ShardCall, Shards } from '../gateway/shards.js';
import { KIND } from '../messages/message.js';
import type { Postman } from './postman.js';

/** @param wasGivenUp  the call was given up: the reply is the one for its time-out */
type Replied = (reply: Uint8Array, wasGivenUp: boolean) => void;

interface Waiting {
  readonly shard: number;
  readonly replied: Replied;
  readonly failed: (error: Error) => void;
  /** The shard has confirmed that the call waits. */
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

  /** The reply has arrived. It may arrive before the shard has confirmed that the call waits. */
  unblocked(blockedAs: number, reply: Uint8Array, wasGivenUp = false): void {
    const waiting = this.#waiting.get(blockedAs);
    this.#waiting.delete(blockedAs);
    waiting?.replied(reply, wasGivenUp);
  }

  /** The shard has forgotten this gateway. It may also have forgotten calls that it has not yet confirmed to wait. */
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
        // Empty: the shard has already replied to the call, and the reply is on its way.
        if (timedOut.length > 0) this.unblocked(blockedAs, timedOut, true);
      },
      (error) => {
        if (this.#waiting.delete(blockedAs)) failed(error);
      },
    );
  }
}
