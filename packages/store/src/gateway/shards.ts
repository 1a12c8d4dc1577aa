/** What the gateway sees of the shards. */

import type { Bytes } from '../resp/reply.js';

/** What one shard has to run. */
export interface ShardCall {
  readonly shard: number;
  /** A `CommandSpec`, or one of the internal commands. */
  readonly command: { readonly name: string };
  readonly args: readonly Bytes[];
  /** The protocol in which the shard writes its reply. */
  readonly resp: 2 | 3;
  /** If it may block: the number under which its reply comes later. Then the reply to the call itself is empty. */
  readonly blockedAs?: number;
  /** Whether it is a part of a command on several shards. The shard then carries it out even if its memory is short. */
  readonly isPart?: boolean;
}

/**
 * Gets the reply to each call, in their order, as the bytes that a client expects: those of RESP 2 or 3. They are valid only during
 * the call.
 */
export type Replied = (replies: readonly Uint8Array[]) => void;

export interface Shards {
  /** The number of shards. */
  readonly count: number;
  /** Whether the memory of a shard was short when it last replied to this gateway. */
  isShort(shard: number): boolean;
  /**
   * Runs all calls, at one place of the order. Calls of one turn of the event loop share messages. To run something after these
   * calls, wait for their replies.
   * @param failed  called instead of `replied` if it is not known whether the calls were run
   */
  run(calls: readonly ShardCall[], replied: Replied, failed: (error: Error) => void): void;
}
