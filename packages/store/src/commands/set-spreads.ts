/** How several shards carry out SUNION, SINTER and SDIFF: each with the sets that it has. */

import { type Bytes, type Reply, SetReply } from '../resp/reply.js';
import type { Spread } from './spec.js';
import { splitByKey } from './spreads.js';

function membersOf(reply: Reply): readonly Bytes[] {
  return (reply instanceof SetReply ? reply.members : reply) as readonly Bytes[];
}

export const UNION_PER_KEY: Spread = {
  split: (args, shardOf) => splitByKey(args, shardOf, 1),
  merge: (parts) => new SetReply([...new Set(parts.flatMap(({ reply }) => membersOf(reply)))]),
};

export const INTERSECTION_PER_KEY: Spread = {
  split: (args, shardOf) => splitByKey(args, shardOf, 1),
  merge: ([first, ...others]) => {
    const sets = others.map(({ reply }) => new Set(membersOf(reply)));
    return new SetReply(
      membersOf(first.reply).filter((member) => sets.every((set) => set.has(member))),
    );
  },
};

/** Only the shard of the first set takes away from it; what others have is taken away afterwards. */
export const DIFFERENCE_PER_KEY: Spread = {
  split: (args, shardOf) => {
    const [first, ...others] = splitByKey(args, shardOf, 1);
    return [first, ...others.map((part) => ({ ...part, name: 'sunion' }))];
  },
  merge: ([first, ...others]) => {
    const taken = new Set(others.flatMap(({ reply }) => membersOf(reply)));
    return new SetReply(membersOf(first.reply).filter((member) => !taken.has(member)));
  },
};
