/** Asks the shards what they have and which settings they keep, for INFO and `/metrics`. Shards that do not answer keep nobody waiting for long. */

import { readShardReport, SHARD_REPORT, type ShardReport } from '../commands/internal.js';
import type { MemorySettings } from '../engine/eviction.js';
import { readReply } from '../resp/reader.js';
import type { Reply } from '../resp/reply.js';
import { readSettings, SETTINGS } from './shard-settings.js';
import type { Shards } from './shards.js';

/** A shard that has a leader answers within milliseconds. */
const ANSWER_MS = 2000;

export class ShardReports {
  /** The shards that have not answered a question for this long. They are not asked again until they answer. */
  readonly #silent = new Set<number>();

  constructor(
    private readonly shards: Shards,
    private readonly answerMs = ANSWER_MS,
  ) {}

  /** @returns what each shard has now; undefined for one that does not answer */
  ask(): Promise<readonly (ShardReport | undefined)[]> {
    return Promise.all(
      Array.from({ length: this.shards.count }, (_, shard) =>
        this.#ask(shard, SHARD_REPORT, readShardReport),
      ),
    );
  }

  /** Asks the first shard, because all have the same settings. @returns undefined if it does not answer */
  askSettings(): Promise<MemorySettings | undefined> {
    return this.#ask(0, SETTINGS, readSettings);
  }

  #ask<T>(shard: number, name: string, read: (reply: Reply) => T): Promise<T | undefined> {
    if (this.#silent.has(shard)) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#silent.add(shard);
        resolve(undefined);
      }, this.answerMs);
      const answered = (answer: T | undefined): void => {
        clearTimeout(timer);
        this.#silent.delete(shard);
        resolve(answer);
      };
      this.shards.run(
        [{ shard, command: { name }, args: [], resp: 3 }],
        ([reply]) => answered(read(readReply(reply))),
        () => answered(undefined),
      );
    });
  }
}
