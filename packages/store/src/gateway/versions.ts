/** Reads the versions of keys, for WATCH. */

import type { Watched } from '../commands/internal.js';
import { readReply } from '../resp/reader.js';
import { type Bytes, ErrorReply } from '../resp/reply.js';
import type { Gateway } from './gateway.js';
import type { ShardCall } from './shards.js';

const VERSIONS = { name: '.versions' };

/** Reads all versions at one place of the order. */
export function readVersions(gateway: Gateway, keys: readonly Bytes[]): Promise<Watched[]> {
  const byShard = new Map<number, Bytes[]>();
  for (const key of keys) {
    const shard = gateway.router.shardOf(key);
    const part = byShard.get(shard);
    if (part === undefined) byShard.set(shard, [key]);
    else part.push(key);
  }
  const calls = [...byShard].map(
    ([shard, args]): ShardCall => ({ shard, command: VERSIONS, args, resp: 3 }),
  );
  return new Promise((resolve, reject) => {
    const replied = (replies: readonly Uint8Array[]): void => {
      try {
        resolve(replies.flatMap((reply, i) => watchedOf(calls[i].args, reply)));
      } catch (error) {
        reject(error);
      }
    };
    gateway.shards.run(calls, replied, reject);
  });
}

function watchedOf(keys: readonly Bytes[], bytes: Uint8Array): Watched[] {
  const reply = readReply(bytes);
  if (reply instanceof ErrorReply) throw reply;
  const versions = reply as readonly number[];
  return keys.map((key, i) => [key, versions[i]]);
}
