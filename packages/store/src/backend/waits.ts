/** Commands that may wait: at their shard or, if they have keys of several shards, at the gateway. */

import type { Queued } from '../commands/internal.js';
import { COMMANDS_BY_NAME } from '../commands/table.js';
import type { Blocked, Waits } from '../gateway/backend.js';
import type { Router } from '../gateway/router.js';
import type { ShardCall } from '../gateway/shards.js';
import type { Protocol } from '../resp/writer.js';
import type { BlockedCalls } from './blocked-calls.js';
import { BlockedOverShards } from './blocked-over-shards.js';
import type { ShardTransactions } from './transactions.js';

export class ShardWaits implements Waits {
  constructor(
    private readonly router: Router,
    private readonly transactions: ShardTransactions,
    private readonly blockedCalls: BlockedCalls,
  ) {}

  block(
    queued: Queued,
    resp: Protocol,
    replied: (reply: Uint8Array, wasGivenUp: boolean) => void,
    failed: (error: Error) => void,
  ): Blocked {
    const calls: ShardCall[] = [];
    const command = COMMANDS_BY_NAME.get(queued.name)!;
    this.router.route(command, queued.args, resp, calls);
    if (calls.length === 1) return this.blockedCalls.run(calls[0], replied, failed);
    const blocked = new BlockedOverShards(queued, resp, replied, failed);
    blocked.start(this.transactions, this.blockedCalls, this.router);
    return blocked;
  }
}
