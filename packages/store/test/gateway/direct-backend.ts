/** The engine itself behind the gateway, without messages: to measure the gateway alone. */

import { CommandRunner } from '../../src/commands/runner.js';
import { Channels } from '../../src/engine/channels.js';
import { Keyspace } from '../../src/engine/keyspace.js';
import type { Backend } from '../../src/gateway/backend.js';
import type { Replied, ShardCall, Shards } from '../../src/gateway/shards.js';
import { Traffic } from '../../src/gateway/traffic.js';
import { ReplyWriter } from '../../src/resp/writer.js';

class DirectShard {
  readonly keyspace = new Keyspace({ changed: () => undefined });
  readonly runner = new CommandRunner(this.keyspace, new Channels(), () => 0);
}

class DirectShards implements Shards {
  readonly #shards: DirectShard[];

  constructor(readonly count: number) {
    this.#shards = Array.from({ length: count }, () => new DirectShard());
  }

  isShort(): boolean {
    return false;
  }

  run(calls: readonly ShardCall[], replied: Replied): void {
    replied(
      calls.map(({ shard, command, args, resp }) => {
        const { keyspace, runner } = this.#shards[shard];
        keyspace.nowMs = Date.now();
        const writer = new ReplyWriter(64);
        writer.write(runner.start(command.name, args, 0, false), resp);
        return writer.written();
      }),
    );
  }
}

export function directBackend(shards: number): Backend {
  const unsupported = (): never => {
    throw new Error('not with shards that are called directly');
  };
  return {
    shards: new DirectShards(shards),
    transactions: { transact: unsupported, runIf: unsupported, forgetScripts: () => undefined },
    waits: { block: unsupported },
    channels: { announce: (_kind, _name, _clients, done) => done() },
    traffic: new Traffic(),
    pressure: { unanswered: 0, waiting: 0, heldBack: 0 },
  };
}
