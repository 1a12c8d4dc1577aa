/** The settings that the shards keep, for all gateways: how much memory keys may take, and which are evicted. */

import type { MemorySettings } from '../engine/eviction.js';
import { readReply } from '../resp/reader.js';
import type { Bytes, Reply } from '../resp/reply.js';
import type { ShardCall, Shards } from './shards.js';

export const SETTINGS = '.settings';
const CONFIGURE = { name: '.configure' };

/** All shards have the same. */
export function readShardSettings(shards: Shards): Promise<MemorySettings> {
  const call: ShardCall = { shard: 0, command: { name: SETTINGS }, args: [], resp: 3 };
  return new Promise((resolve, reject) => {
    shards.run([call], ([reply]) => resolve(readSettings(readReply(reply))), reject);
  });
}

/** @param reply  names and values in turn */
export function readSettings(reply: Reply): MemorySettings {
  const words = reply as readonly Bytes[];
  const pairs = words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1]]] : []));
  return Object.fromEntries(pairs);
}

/** All shards change them at the same place of the order. @param changes  checked values */
export function configureShards(shards: Shards, changes: Partial<MemorySettings>): Promise<void> {
  const args = [String(shards.count), ...Object.entries(changes).flat()];
  const calls = Array.from(
    { length: shards.count },
    (_, shard): ShardCall => ({ shard, command: CONFIGURE, args, resp: 3 }),
  );
  return new Promise((resolve, reject) => shards.run(calls, () => resolve(), reject));
}
