/** How a gateway runs scripts. */

import { sha1 } from '../commands/scripting/scripts.js';
import type { CommandSpec } from '../commands/spec.js';
import type { Bytes } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import type { Backend } from './backend.js';
import type { Router } from './router.js';
import type { QueuedCommand } from './session.js';
import type { ShardCall } from './shards.js';

/** How a shard replies if a script would have to use keys of another one. */
const BEYOND = Buffer.from('-BEYOND ');

/** The reply to `.announced` if all shards know the script. */
const YES = Buffer.from(':1\r\n');

/** How many scripts that are beyond one shard a gateway remembers. */
const BEYOND_MAX = 250;

/**
 * Runs scripts, and sees to it that EVALSHA finds at any shard what EVAL has run at one. Only the shards know which scripts they
 * know: other gateways announce scripts too, and flush them. So with each EVAL, the gateway asks the shard that runs it, by the
 * same message; before an EVAL of several shards, or in MULTI, it asks one of them. If need be, it announces the script to all shards before
 * the client gets the reply of EVAL.
 */
export class ScriptRunner {
  /** The bodies, hashes or names of scripts that have used keys of other shards than the one that ran them. */
  readonly #beyond = new Set<Bytes>();

  constructor(
    private readonly backend: Backend,
    private readonly router: Router,
  ) {}

  /**
   * Runs the script at one shard.
   * @param beyond  called if the script needs, or may need, keys of several shards: it has written nothing, and has to run as a
   * transaction
   */
  run(
    queued: QueuedCommand,
    resp: Protocol,
    replied: (reply: Uint8Array) => void,
    beyond: () => void,
    failed: (error: Error) => void,
  ): void {
    const { command, args } = queued;
    const [script] = args;
    const call = this.#onlyCallOf(queued, resp);
    if (call === undefined) {
      if (isEval(command)) this.makeKnown(script, beyond);
      else beyond();
      return;
    }
    const finish = (reply: Uint8Array): void => {
      if (!BEYOND.equals(reply.subarray(0, BEYOND.length))) {
        replied(reply);
        return;
      }
      this.#rememberBeyond(script);
      beyond();
    };
    const calls = isEval(command) ? [call, question(call.shard, script)] : [call];
    this.backend.shards.run(
      calls,
      ([reply, answer = YES]) => {
        if (YES.equals(answer)) {
          finish(reply);
          return;
        }
        const copy = Buffer.from(reply);
        this.#announce(script, () => finish(copy));
      },
      failed,
    );
  }

  /**
   * Announces the script of an EVAL that several shards, or EXEC, will run, if need be.
   * @param done  called even if it fails: EVAL has its own outcome, and the next EVAL announces the script again
   */
  makeKnown(script: Bytes, done: () => void): void {
    this.backend.shards.run(
      // All shards know the same.
      [question(0, script)],
      ([answer]) => {
        if (YES.equals(answer)) done();
        else this.#announce(script, done);
      },
      done,
    );
  }

  /** @param done  as of `makeKnown` */
  #announce(script: Bytes, done: () => void): void {
    const { shards } = this.backend;
    const calls = Array.from(
      { length: shards.count },
      (_, shard): ShardCall => ({ shard, command: ANNOUNCE, args: [script], resp: 3 }),
    );
    shards.run(calls, done, done);
  }

  /** @returns undefined if the script has, or may have, keys of several shards */
  #onlyCallOf({ command, args }: QueuedCommand, resp: Protocol): ShardCall | undefined {
    if (this.#beyond.has(args[0])) return undefined;
    const calls: ShardCall[] = [];
    this.router.route(command, args, resp, calls);
    return calls[0];
  }

  #rememberBeyond(script: Bytes): void {
    this.#beyond.add(script);
    if (this.#beyond.size <= BEYOND_MAX) return;
    const [oldest] = this.#beyond;
    this.#beyond.delete(oldest);
  }

  /** SCRIPT FLUSH. */
  forget(): void {
    this.backend.transactions.forgetScripts();
  }
}

const ANNOUNCE = { name: '.announce' };
const IS_ANNOUNCED = { name: '.announced' };

export function isEval({ name }: CommandSpec): boolean {
  return name === 'eval' || name === 'eval_ro';
}

/** Whether all shards know the script. */
function question(shard: number, script: Bytes): ShardCall {
  return { shard, command: IS_ANNOUNCED, args: [sha1(script)], resp: 3 };
}
