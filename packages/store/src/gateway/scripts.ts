/** What a gateway knows of scripts. */

import type { Bytes } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import type { Backend } from './backend.js';
import type { Router } from './router.js';
import type { QueuedCommand } from './session.js';
import type { ShardCall } from './shards.js';

/** How a shard replies if a script would have to use keys of another one. */
const BEYOND = Buffer.from('-BEYOND ');

/** How many scripts a gateway remembers: fewer than the shards do. */
const SEEN_MAX = 250;

export class ScriptLoader {
  /** The bodies of scripts that all shards know. */
  readonly #seen = new Set<Bytes>();

  /** The bodies, hashes or names of scripts that have used keys of other shards than the one that ran them. */
  readonly #beyond = new Set<Bytes>();

  constructor(
    private readonly backend: Backend,
    private readonly router: Router,
  ) {}

  /**
   * Runs the script at one shard.
   * @param beyond  called if the script needs keys of other shards: it has written nothing, and has to run as a transaction
   */
  run(
    { command, args }: QueuedCommand,
    resp: Protocol,
    replied: (reply: Uint8Array) => void,
    beyond: () => void,
    failed: (error: Error) => void,
  ): void {
    const [script] = args;
    const calls: ShardCall[] = [];
    const isOfOneShard =
      !this.#beyond.has(script) && this.router.route(command, args, resp, calls) !== undefined;
    if (!isOfOneShard) {
      beyond();
      return;
    }
    this.backend.shards.run(
      calls,
      ([reply]) => {
        if (!BEYOND.equals(reply.subarray(0, BEYOND.length))) {
          replied(reply);
          return;
        }
        remember(this.#beyond, script);
        beyond();
      },
      failed,
    );
  }

  /**
   * Makes the script of an EVAL known to all shards, so that EVALSHA finds it everywhere. EVAL itself reports an error of the script.
   * @returns undefined if all know it
   */
  load({ command: { name }, args: [body] }: QueuedCommand): Promise<void> | undefined {
    if ((name !== 'eval' && name !== 'eval_ro') || this.#seen.has(body)) return undefined;
    const command = { name: '.evaluated' };
    const shards = [...Array(this.backend.shards.count).keys()];
    return new Promise((resolve, reject) => {
      const loaded = (): void => {
        remember(this.#seen, body);
        resolve();
      };
      this.backend.shards.run(
        shards.map((shard) => ({ shard, command, args: [body], resp: 3 })),
        loaded,
        reject,
      );
    });
  }

  /** SCRIPT FLUSH. */
  forget(): void {
    this.#seen.clear();
    this.backend.transactions.forgetScripts();
  }
}

/** Forgets the oldest one if there are too many. */
function remember(scripts: Set<Bytes>, script: Bytes): void {
  scripts.add(script);
  if (scripts.size <= SEEN_MAX) return;
  const [oldest] = scripts;
  scripts.delete(oldest);
}
