/** What all connections of a gateway share. */

import { randomBytes } from 'node:crypto';
import type { Bytes } from '../resp/reply.js';
import type { Backend, Transactions, Waits } from './backend.js';
import type { Client } from './client.js';
import { Pause } from './pause.js';
import { PubSub } from './pubsub.js';
import { Router } from './router.js';
import { ScriptLoader } from './scripts.js';
import type { Settings } from './settings.js';
import type { Shards } from './shards.js';

/** What INFO and WAIT tell of the cluster. */
export interface ClusterFacts {
  /** Of each shard. */
  readonly replicas: number;
  readonly isDurable: boolean;
}

export class Gateway {
  readonly shards: Shards;
  readonly transactions: Transactions;
  readonly waits: Waits;
  readonly router: Router;
  readonly pubsub: PubSub;
  readonly scripts: ScriptLoader;
  readonly pause = new Pause();
  readonly clients = new Map<number, Client>();
  readonly stats = newStats();
  readonly startedMs = Date.now();
  /** Names this run of the gateway. */
  readonly runId = randomBytes(20).toString('hex');
  #lastId = 0;

  constructor(
    backend: Backend,
    readonly settings: Settings,
    readonly facts: ClusterFacts,
  ) {
    this.shards = backend.shards;
    this.transactions = backend.transactions;
    this.waits = backend.waits;
    this.router = new Router(backend.shards.count);
    this.scripts = new ScriptLoader(backend, this.router);
    this.pubsub = new PubSub(backend.channels);
  }

  nextId(): number {
    return ++this.#lastId;
  }

  /** A message that shards have sent to this gateway. */
  published(channel: Bytes, message: Bytes, isSharded: boolean): void {
    this.pubsub.subscriptions.publish(channel, message, isSharded);
  }

  resetStats(): void {
    Object.assign(this.stats, newStats());
  }
}

function newStats() {
  return { connections: 0, rejected: 0, commands: 0, inputBytes: 0, outputBytes: 0 };
}
