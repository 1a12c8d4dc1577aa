/** Runs commands by their names: at a shard, and in the scratch store of a transaction. */

import type { Channels } from '../engine/channels.js';
import { Eviction } from '../engine/eviction.js';
import type { Keyspace } from '../engine/keyspace.js';
import { Random } from '../engine/random.js';
import { type Bytes, ErrorReply, type Reply, Simple } from '../resp/reply.js';
import { outOfMemory } from './arguments.js';
import { INTERNAL } from './internal.js';
import { lookUp } from './lookup.js';
import { needMemory } from './memory.js';
import { Scripts } from './scripting/scripts.js';
import type { Execution, FoundCommand, Reach } from './spec.js';
import { COMMANDS_BY_NAME, keyPositions } from './table.js';

/** What a command returns that waits. No client sees it. */
export const BLOCKED = new Simple('BLOCKED');

/** What a command that blocks waits for. */
export interface Wait {
  readonly keys: readonly Bytes[];
  /** 0: for ever. */
  readonly timeoutMs: number;
  readonly timedOut: Reply;
  /** The arguments with which the command is run again; undefined: the same. */
  readonly args: readonly Bytes[] | undefined;
}

/** Sends a message to a channel. @returns how many clients get it */
export type Publish = (channel: Bytes, message: Bytes, isSharded: boolean) => number;

/** For a keyspace that is the whole database. */
const EVERYTHING: Reach = { isAll: true, discovers: false, has: () => true };

export class CommandRunner implements Execution {
  /** What the command would wait for, if it has found nothing. */
  wait: Wait | undefined;
  resumed = false;
  isShort = false;
  #mayBlock = false;
  readonly #random = new Random(0);

  constructor(
    readonly keyspace: Keyspace,
    readonly channels: Channels,
    readonly publish: Publish,
    readonly scripts = new Scripts(),
    readonly reach = EVERYTHING,
    readonly eviction = new Eviction(keyspace),
  ) {}

  /**
   * @param seed  what the command picks at random depends on it alone
   * @param isShort  whether memory is short: a command that may need more is refused
   * @returns an `ErrorReply` if the command fails
   */
  start(
    name: string,
    args: readonly Bytes[],
    seed: number,
    mayBlock: boolean,
    isShort = false,
  ): Reply {
    this.#random.state = seed;
    this.#mayBlock = mayBlock;
    this.resumed = false;
    this.isShort = isShort;
    this.wait = undefined;
    if (isShort && needMemory([{ name, args }])) return outOfMemory(name);
    return this.#run(name, args);
  }

  /** Runs a command again that has waited. It is not refused any more. */
  resume(name: string, args: readonly Bytes[], mayBlock = true): Reply {
    this.#random.state = 0;
    this.#mayBlock = mayBlock;
    this.resumed = true;
    this.isShort = false;
    this.wait = undefined;
    return this.#run(name, args);
  }

  /** Runs a command as a part of the one that was started. */
  run(name: string, args: readonly Bytes[]): Reply {
    this.#mayBlock = false;
    return this.#run(name, args);
  }

  find(name: Bytes, args: readonly Bytes[]): FoundCommand | ErrorReply {
    try {
      const { command, args: own } = lookUp(name, args);
      const { routedBy } = command;
      const positions = routedBy === undefined ? keyPositions(command, own) : [routedBy];
      return { command, args: own, keys: positions.map((position) => own[position]) };
    } catch (error) {
      if (error instanceof ErrorReply) return error;
      throw error;
    }
  }

  #run(name: string, args: readonly Bytes[]): Reply {
    const command = COMMANDS_BY_NAME.get(name);
    const run = command?.run ?? INTERNAL[name];
    if (run === undefined) return new ErrorReply(`ERR unknown command '${name}'`);
    this.keyspace.usage.begin();
    this.keyspace.countsLookups = command?.flags.includes('readonly') === true;
    try {
      return run(args, this);
    } catch (error) {
      if (error instanceof ErrorReply) return error;
      // A mistake of ours. It is the same at all replicas, so they stay alike.
      return new ErrorReply(`ERR internal error in '${name}': ${String(error)}`);
    } finally {
      this.keyspace.countsLookups = false;
    }
  }

  random(): number {
    return this.#random.next();
  }

  block(
    keys: readonly Bytes[],
    timeoutMs: number,
    timedOut: Reply,
    args?: readonly Bytes[],
  ): Reply {
    this.wait = { keys, timeoutMs, timedOut, args };
    return this.#mayBlock ? BLOCKED : timedOut;
  }
}
