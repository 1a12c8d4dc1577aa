/** How commands on all keys are carried out by several shards. */

import type { Bytes, Reply } from '../resp/reply.js';
import { scanCursor } from './arguments.js';
import type { Spread } from './spec.js';
import { partsForAll } from './spreads.js';

/** For KEYS: the elements of all parts. */
export const JOINED: Spread = {
  split: (args, _shardOf, shards) => partsForAll(args, shards),
  merge: (parts) => parts.flatMap(({ reply }) => reply as Reply[]),
};

/** For FLUSHALL: all parts reply the same. */
export const ALL_SAY_OK: Spread = {
  split: (args, _shardOf, shards) => partsForAll(args, shards),
  merge: (parts) => parts[0].reply,
};

/**
 * For SCAN, which visits one shard after the other. The cursor of a client is the cursor of the shard, times the number of shards, plus the
 * number of the shard.
 */
export const NEXT_SHARD: Spread = {
  split: (args, _shardOf, shards) => {
    const cursor = scanCursor(args[0]);
    const shard = Number(cursor % BigInt(shards));
    return [{ shard, args: [String(cursor / BigInt(shards)), ...args.slice(1)] }];
  },
  merge: ([{ shard, reply }], _args, _shardOf, shards) => {
    const [cursor, keys] = reply as [Bytes, Reply];
    if (cursor !== '0') return [String(BigInt(cursor) * BigInt(shards) + BigInt(shard)), keys];
    return [String((shard + 1) % shards), keys];
  },
};

/** For RANDOMKEY: one of the keys that the shards have picked. This choice is made at a gateway, so replicas stay alike. */
export const ANY_KEY: Spread = {
  split: (args, _shardOf, shards) => partsForAll(args, shards),
  merge: (parts) => {
    const keys = parts.map(({ reply }) => reply).filter((reply) => reply !== null);
    return keys.length === 0 ? null : keys[Math.floor(Math.random() * keys.length)];
  },
};
