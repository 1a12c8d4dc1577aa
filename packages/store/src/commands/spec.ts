/** What the table of commands says of each one. The router, the engine, `COMMAND` and the documents read it. */

import type { Channels } from '../engine/channels.js';
import type { Eviction } from '../engine/eviction.js';
import type { Keyspace } from '../engine/keyspace.js';
import type { Bytes, ErrorReply, Reply } from '../resp/reply.js';
import type { Scripts } from './scripting/scripts.js';

/** Which keys and channels a script can use beyond those that it declares. */
export interface Reach {
  /** Whether it has all keys of the database. */
  readonly isAll: boolean;
  /** Whether keys that it lacks are noted: they are claimed, and all begins again. Meanwhile they seem to be absent. */
  readonly discovers: boolean;
  has(key: Bytes): boolean;
}

/** A command that was found by its name. */
export interface FoundCommand {
  readonly command: CommandSpec;
  /** Those of the subcommand, if it is one. */
  readonly args: readonly Bytes[];
  /** Or what selects the shard as a key would. */
  readonly keys: readonly Bytes[];
}

/** What a command runs in: a shard, or the scratch store of a transaction. */
export interface Execution {
  readonly keyspace: Keyspace;
  readonly eviction: Eviction;
  /** Whether memory was short when the command began. */
  readonly isShort: boolean;
  /** The same at all replicas. @returns 0 <= x < 1 */
  random(): number;
  /** Whether a command that waited is run again (see `block`). It goes on waiting for keys that have a value of another type. */
  readonly resumed: boolean;
  /**
   * For a blocking command that has found nothing. Where it may wait, it is run again when one of the keys has changed; after
   * `timeoutMs` (0: never) the client gets `timedOut`. In a transaction or a script it returns `timedOut` at once.
   * @param args  the arguments for the next run, if they differ: an argument that means "now" must keep its first meaning
   */
  block(keys: readonly Bytes[], timeoutMs: number, timedOut: Reply, args?: readonly Bytes[]): Reply;
  /** Runs another command as a part of this one. @returns an `ErrorReply` if it fails */
  run(name: string, args: readonly Bytes[]): Reply;
  /** Finds a command in the table, as a client would name it. @returns an error if it is unknown or has too few or too many arguments */
  find(name: Bytes, args: readonly Bytes[]): FoundCommand | ErrorReply;
  readonly scripts: Scripts;
  readonly reach: Reach;
  /** The subscriptions of gateways to channels. */
  readonly channels: Channels;
  /** Sends a message to a channel. @returns how many clients get it */
  publish(channel: Bytes, message: Bytes, isSharded: boolean): number;
}

/** @param args  what follows the name; for a subcommand, what follows that */
export type Run = (args: readonly Bytes[], execution: Execution) => Reply;

/** As `COMMAND INFO` names them. */
export type Flag =
  | 'write'
  | 'readonly'
  | 'denyoom'
  | 'admin'
  | 'pubsub'
  | 'noscript'
  | 'blocking'
  | 'loading'
  | 'stale'
  | 'fast'
  | 'movablekeys'
  | 'no_auth'
  | 'no_multi';

/** As the categories of Redis's documentation. */
export type Category =
  | 'string'
  | 'bitmap'
  | 'generic'
  | 'hash'
  | 'list'
  | 'set'
  | 'sorted-set'
  | 'hyperloglog'
  | 'geo'
  | 'stream'
  | 'pubsub'
  | 'transactions'
  | 'scripting'
  | 'connection'
  | 'cluster'
  | 'server';

/** Where the keys are, in positions as Redis counts them: the name has position 0. A negative `last` counts from the end. */
export interface KeyRange {
  readonly first: number;
  readonly last: number;
  readonly step: number;
}

/** The part of a command for one shard, and what it replied. */
export interface Part {
  readonly shard: number;
  readonly args: readonly Bytes[];
  /** The command for this shard, if it is another one. */
  readonly name?: string;
}

export interface RepliedPart extends Part {
  readonly reply: Reply;
}

/** How a command is carried out by several shards that each do their part alone, at the same place of the order. */
export interface Spread {
  /** Throws an `ErrorReply` if the arguments are wrong. @param shardOf  the shard of a key */
  split(args: readonly Bytes[], shardOf: (key: Bytes) => number, shards: number): readonly Part[];
  /** @param parts  in the order of `split`; none of the replies is an error */
  merge(
    parts: readonly RepliedPart[],
    args: readonly Bytes[],
    shardOf: (key: Bytes) => number,
    shards: number,
  ): Reply;
}

export interface CommandSpec {
  /** In lower case; a subcommand is `config|get`. */
  readonly name: string;
  /** As in Redis: counts the name (and the subcommand); negative: at least that many. */
  readonly arity: number;
  readonly flags: readonly Flag[];
  readonly category: Category;
  /** The version of Redis that has it first, and what it does: for `COMMAND DOCS` and docs/store.md. */
  readonly since: string;
  readonly summary: string;
  /** What differs from Redis, for docs/store.md. */
  readonly differs?: string;
  /** Undefined if it has no keys, or if only `findKeys` can tell. */
  readonly keys?: KeyRange;
  /** For commands whose keys depend on the arguments. @returns positions in `args` */
  findKeys?(args: readonly Bytes[]): readonly number[];
  /** It may use keys that it does not declare: what a script uses is not known before it runs. */
  readonly reaches?: true;
  /** For a command without keys that one shard carries out: the position in `args` of what selects the shard as a key would. */
  readonly routedBy?: number;
  /**
   * Patterns of keys that the command reads besides those that it names; the first `*` stands for something that only a shard knows.
   * If one shard has all of these keys, the command claims the whole shard. Otherwise a transaction finds out which they are.
   */
  patterns?(args: readonly Bytes[]): readonly Bytes[];
  /** Without it, keys of several shards make the command a coordinated one. */
  readonly spread?: Spread;
  /** Runs in a shard or a transaction. Undefined: the gateway carries it out. */
  readonly run?: Run;
}
