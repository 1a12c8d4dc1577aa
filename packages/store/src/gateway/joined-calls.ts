/** Calls that each shard runs as one: nobody sees a state between them, not even a client that is blocked. */

import { execArgs, type Watched } from '../commands/internal.js';
import { readReply } from '../resp/reader.js';
import { type Bytes, ErrorReply } from '../resp/reply.js';
import type { ShardCall } from './shards.js';

export class JoinedCalls {
  /** One for each shard. */
  readonly calls: readonly ShardCall[];
  /** Where the reply to each call is: in which reply, and at which place. */
  readonly #places: readonly (readonly [shard: number, at: number])[];
  readonly #shards: readonly number[];

  /**
   * @param watched  keys of the only shard: if one has changed, the calls are not run
   * @param watchingShard  the shard of the watched keys. It is asked even if there are no calls
   */
  constructor(
    calls: readonly ShardCall[],
    watched: readonly Watched[] = [],
    watchingShard?: number,
  ) {
    const shares = new Map<number, ShardCall[]>();
    if (watchingShard !== undefined) shares.set(watchingShard, []);
    this.#places = calls.map((call) => {
      const share = shares.get(call.shard);
      if (share !== undefined) return [call.shard, share.push(call) - 1];
      shares.set(call.shard, [call]);
      return [call.shard, 0];
    });
    this.#shards = [...shares.keys()];
    this.calls = [...shares].map(([shard, share]) => {
      const commands = share.map(({ command, args, resp }) => ({ name: command.name, args, resp }));
      const isPart = shares.size > 1;
      return { shard, command: EXEC, args: execArgs(watched, commands), resp: 3, isPart };
    });
  }

  /** @returns the replies to the calls, in their order; undefined if a watched key has changed; an error if the shard has refused them */
  split(replies: readonly Uint8Array[]): Uint8Array[] | ErrorReply | undefined {
    const shares = replies.map((reply) => readReply(reply));
    const refusal = shares.find((share) => share instanceof ErrorReply);
    if (refusal !== undefined) return refusal;
    if (!shares.every((share) => Array.isArray(share))) return undefined;
    return this.#places.map(([shard, at]) => {
      const share = shares[this.#shards.indexOf(shard)] as readonly Bytes[];
      return Buffer.from(share[at], 'latin1');
    });
  }
}

const EXEC = { name: '.exec' };
