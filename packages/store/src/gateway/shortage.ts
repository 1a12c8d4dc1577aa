/** What several shards do alone, while the memory of one of them is short. */

import { needMemory } from '../commands/memory.js';
import type { ShardCall, Shards } from './shards.js';

/**
 * Whether these calls have to be coordinated, so that all shards refuse them or none. A shard does not refuse its part: the others do
 * theirs. So a gateway finds out before, as soon as a shard has told it that its memory is short. Nothing depends on whether that is still
 * so: a coordinated transaction learns how it is now.
 */
export function needCare(shards: Shards, calls: readonly ShardCall[]): boolean {
  if (!calls.some(({ shard }) => shards.isShort(shard))) return false;
  const isOfSeveral = calls.some(({ shard }) => shard !== calls[0].shard);
  return isOfSeveral && needMemory(calls.map(({ command: { name }, args }) => ({ name, args })));
}
