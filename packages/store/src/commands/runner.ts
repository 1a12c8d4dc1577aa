/** Runs commands by their names: at a shard, and in the scratch store of a transaction. */

import type { Channels } from '../engine/channels.js';
import type { Keyspace } from '../engine/keyspace.js';
import { type Bytes, ErrorReply, type Reply, Simple } from '../resp/reply.js';
import { INTERNAL } from './internal.js';
import { lookUp } from './lookup.js';
import { Scripts } from './scripting/scripts.js';
import type { Execution, FoundCommand, Reach } from './spec.js';
import { COMMANDS_BY_NAME, keyPositions } from './table.js';

const OOM = "OOM command not allowed when used memory > 'maxmemory'.";

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
const EVERYTHING: Reach = { isAll: true, has: () => true };

export class CommandRunner implements Execution {
  /** What the command would wait for, if it has found nothing. */
  wait: Wait | undefined;
  resumed = false;
  #mayBlock = false;
  #random = 0;

  constructor(
    readonly keyspace: Keyspace,
    readonly channels: Channels,
    readonly publish: Publish,
    readonly scripts = new Scripts(),
    readonly reach = EVERYTHING,
  ) {}

  /**
   * @param seed  what the command picks at random depends on it alone
   * @returns an `ErrorReply` if the command fails
   */
  start(name: string, args: readonly Bytes[], seed: number, mayBlock: boolean): Reply {
    this.#random = seed;
    this.#mayBlock = mayBlock;
    this.resumed = false;
    this.wait = undefined;
    return this.#run(name, args);
  }

  /** Runs a command again that has waited. */
  resume(name: string, args: readonly Bytes[], mayBlock = true): Reply {
    this.#random = 0;
    this.#mayBlock = mayBlock;
    this.resumed = true;
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
    if (this.keyspace.isFull && command?.flags.includes('denyoom')) return new ErrorReply(OOM);
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

  /** Mulberry32. */
  random(): number {
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let x = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
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
