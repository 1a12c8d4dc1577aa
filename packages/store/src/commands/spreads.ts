/** The ways in which commands are carried out by several shards. */

import type { Bytes, Reply } from '../resp/reply.js';
import { wrongArity } from './arguments.js';
import type { Part, RepliedPart, Spread } from './spec.js';

/** Each shard gets the keys that it has, with what belongs to them: every `step`-th argument is a key. */
export function splitByKey(
  args: readonly Bytes[],
  shardOf: (key: Bytes) => number,
  step: number,
): readonly Part[] {
  const parts = new Map<number, Bytes[]>();
  for (let i = 0; i < args.length; i += step) {
    const shard = shardOf(args[i]);
    const part = parts.get(shard) ?? [];
    if (part.length === 0) parts.set(shard, part);
    part.push(...args.slice(i, i + step));
  }
  return [...parts].map(([shard, part]) => ({ shard, args: part }));
}

/**
 * For MGET and MSET. Arrays of replies are put back into the order of the keys; otherwise all parts reply the same.
 * @param name  of the command, for the error if the last key has no value
 */
export function perKey(step: 1 | 2, name = ''): Spread {
  return {
    split: (args, shardOf) => {
      if (args.length % step !== 0) throw wrongArity(name);
      return splitByKey(args, shardOf, step);
    },
    merge: (parts, args, shardOf) => {
      if (!Array.isArray(parts[0].reply)) return parts[0].reply;
      const rests = new Map(
        parts.map(({ shard, reply }) => [shard, (reply as readonly Reply[]).values()]),
      );
      return args.map((key) => rests.get(shardOf(key))!.next().value!);
    },
  };
}

/** For DEL, EXISTS and others that count: the sum of the parts. */
export const SUM_PER_KEY: Spread = {
  split: (args, shardOf) => splitByKey(args, shardOf, 1),
  merge: (parts) => sum(parts),
};

/** For DBSIZE: every shard replies with a number. */
export const SUM_OF_ALL: Spread = {
  split: (args, _shardOf, shards) => partsForAll(args, shards),
  merge: (parts) => sum(parts),
};

export function partsForAll(args: readonly Bytes[], shards: number): readonly Part[] {
  return Array.from({ length: shards }, (_, shard) => ({ shard, args }));
}

function sum(parts: readonly RepliedPart[]): number {
  return parts.reduce((total, { reply }) => total + (reply as number), 0);
}
