/** Which shards carry out a command. */

import type { CommandSpec } from '../commands/spec.js';
import { COMMANDS_BY_NAME, keyPositions, rangeInArgs } from '../commands/table.js';
import { hasFixedSlot, shardOfSlot, slotOf } from '../engine/slots.js';
import type { Bytes } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import type { ShardCall } from './shards.js';
import { FORWARD, Merged, type Step } from './steps.js';

export class Router {
  readonly shardOf = (key: Bytes): number => shardOfSlot(slotOf(key), this.shards);

  constructor(private readonly shards: number) {}

  /**
   * Adds the calls of a command that shards can carry out alone.
   * @returns how to write the reply; undefined if the command has to be coordinated
   * @throws ErrorReply if the arguments can't be right
   */
  route(
    command: CommandSpec,
    args: readonly Bytes[],
    resp: Protocol,
    calls: ShardCall[],
  ): Step | undefined {
    if (command.patterns?.(args).some((pattern) => !this.#isWith(args[0], pattern))) {
      return undefined;
    }
    const shard = this.#onlyShard(command, args);
    if (shard !== undefined) {
      calls.push({ shard, command, args, resp });
      return FORWARD;
    }
    const { spread } = command;
    if (spread === undefined) return undefined;
    const parts = spread.split(args, this.shardOf, this.shards);
    for (const { shard, args, name } of parts) {
      const partCommand = name === undefined ? command : COMMANDS_BY_NAME.get(name)!;
      calls.push({ shard, command: partCommand, args, resp: 3, isPart: parts.length > 1 });
    }
    return new Merged(spread, parts, args, this.shardOf, this.shards);
  }

  /** Whether all keys that a pattern can stand for are where this key is. */
  #isWith(key: Bytes, pattern: Bytes): boolean {
    if (this.shards === 1) return true;
    return hasFixedSlot(pattern) && this.shardOf(pattern) === this.shardOf(key);
  }

  /** @returns undefined if there are several, or if only `spread` can tell */
  #onlyShard(command: CommandSpec, args: readonly Bytes[]): number | undefined {
    const { keys, routedBy } = command;
    if (keys !== undefined && command.findKeys === undefined) {
      const { first, end, step } = rangeInArgs(command, keys, args.length);
      const shard = this.shardOf(args[first]);
      for (let i = first + step; i <= end; i += step) {
        if (this.shardOf(args[i]) !== shard) return undefined;
      }
      return shard;
    }
    if (routedBy !== undefined) return this.shardOf(args[routedBy]);
    const positions = keyPositions(command, args);
    if (positions.length === 0) {
      // Which shards have what it uses is only known once it runs.
      if (command.reaches && this.shards > 1) return undefined;
      // A command without keys that does not say how it is spread. If it has keys but they were not found, the shard says why.
      return command.spread === undefined || command.findKeys !== undefined ? 0 : undefined;
    }
    const shard = this.shardOf(args[positions[0]]);
    return positions.every((position) => this.shardOf(args[position]) === shard)
      ? shard
      : undefined;
  }
}
