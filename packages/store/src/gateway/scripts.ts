/** What a gateway knows of scripts. */

import { COMMANDS_BY_NAME } from '../commands/table.js';
import type { Bytes } from '../resp/reply.js';
import type { Protocol } from '../resp/writer.js';
import type { Backend } from './backend.js';
import type { Router } from './router.js';
import type { QueuedCommand } from './session.js';
import type { ShardCall } from './shards.js';

/** How a shard replies if a script would have to use keys of another one. */
const BEYOND = Buffer.from('-BEYOND ');

/** How many scripts a gateway remembers. */
const SEEN_MAX = 1000;

export class ScriptLoader {
  /** The bodies of scripts that all shards know. */
  readonly #seen = new Set<Bytes>();

  /** The bodies, hashes or names of those that have used keys of other shards than the one that ran them. */
  readonly #beyond = new Set<Bytes>();

  constructor(
    private readonly backend: Backend,
    private readonly router: Router,
  ) {}

  /**
   * One shard runs it, unless it turns out to need keys of others.
   * @param beyond  it has written nothing, and has to run as a transaction
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
        if (this.#beyond.size >= SEEN_MAX) this.#beyond.clear();
        this.#beyond.add(script);
        beyond();
      },
      failed,
    );
  }

  /**
   * Makes the script of an EVAL known to all shards, so that EVALSHA finds it everywhere. If it is wrong, EVAL will tell.
   * @returns undefined if all know it
   */
  load({ command: { name }, args: [body] }: QueuedCommand): Promise<void> | undefined {
    if ((name !== 'eval' && name !== 'eval_ro') || this.#seen.has(body)) return undefined;
    const command = COMMANDS_BY_NAME.get('script|load')!;
    const shards = [...Array(this.backend.shards.count).keys()];
    return new Promise((resolve, reject) => {
      const loaded = (): void => {
        if (this.#seen.size >= SEEN_MAX) this.#seen.clear();
        this.#seen.add(body);
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
