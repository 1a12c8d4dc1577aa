/** Prefetches the keys of the calls of a batch: see `Keyspace.prefetch`. */

import { COMMANDS_BY_NAME, rangeInArgs } from '../commands/table.js';
import { type Keyspace, PREFETCH_MAX } from '../engine/keyspace.js';
import type { Call } from '../messages/contents.js';
import type { Bytes } from '../resp/reply.js';

/** With fewer keys, few memory accesses would overlap. */
const KEYS_MIN = 3;

export class Prefetch {
  readonly #keys: Bytes[] = [];
  /** The result of `Keyspace.prefetch`, stored so that the engine does not remove the loads. */
  lastSum = 0;

  constructor(private readonly keyspace: Keyspace) {}

  /** @param from  the first call that is about to run @returns the first one whose keys are not prefetched */
  run(calls: readonly Call[], from: number): number {
    const keys = this.#keys;
    keys.length = 0;
    let at = from;
    while (at < calls.length && keys.length < PREFETCH_MAX) this.#add(calls[at++]);
    if (keys.length >= KEYS_MIN) this.lastSum = this.keyspace.prefetch(keys);
    return at;
  }

  #add({ name, args }: Call): void {
    const command = COMMANDS_BY_NAME.get(name);
    if (command?.keys === undefined) return;
    const { first, end, step } = rangeInArgs(command, command.keys, args.length);
    const last = Math.min(end, args.length - 1);
    for (let i = first; i <= last && this.#keys.length < PREFETCH_MAX; i += step) {
      this.#keys.push(args[i]);
    }
  }
}
