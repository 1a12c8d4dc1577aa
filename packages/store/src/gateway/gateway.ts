/** What all connections of a gateway share. */

import { randomBytes } from 'node:crypto';
import type { ChannelKind } from '../engine/channels.js';
import type { Bytes } from '../resp/reply.js';
import type { Backend, Transactions, Waits } from './backend.js';
import type { Client } from './client.js';
import type { ClusterFacts } from './cluster-facts.js';
import { Pause } from './pause.js';
import { PubSub } from './pubsub.js';
import { Router } from './router.js';
import { ScriptRunner } from './scripts.js';
import type { Settings } from './settings.js';
import { ShardReports } from './shard-reports.js';
import type { Shards } from './shards.js';
import { SlowLog } from './slow-log.js';
import { Statistics } from './statistics.js';

export class Gateway {
  readonly shards: Shards;
  readonly transactions: Transactions;
  readonly waits: Waits;
  readonly router: Router;
  readonly pubsub: PubSub;
  readonly scripts: ScriptRunner;
  readonly reports: ShardReports;
  readonly pause = new Pause();
  readonly clients = new Map<number, Client>();
  readonly slowLog: SlowLog;
  stats: Statistics;
  readonly startedMs = Date.now();
  /** Names this run of the gateway. */
  readonly runId = randomBytes(20).toString('hex');
  /** Resolves once a client has asked for the end of this server. */
  readonly shutDown: Promise<void>;
  #askToEnd!: () => void;
  #lastId = 0;

  constructor(
    readonly backend: Backend,
    readonly settings: Settings,
    readonly facts: ClusterFacts,
  ) {
    this.shutDown = new Promise((resolve) => {
      this.#askToEnd = resolve;
    });
    this.slowLog = new SlowLog(settings);
    this.stats = new Statistics(this.slowLog);
    this.shards = backend.shards;
    this.transactions = backend.transactions;
    this.waits = backend.waits;
    this.router = new Router(backend.shards.count);
    this.scripts = new ScriptRunner(backend, this.router);
    this.pubsub = new PubSub(backend.channels);
    this.reports = new ShardReports(backend.shards);
  }

  nextId(): number {
    return ++this.#lastId;
  }

  /** A client asks for the end of this server. */
  askToEnd(): void {
    this.#askToEnd();
  }

  /** A message that shards have sent to this gateway. */
  published(channel: Bytes, message: Bytes, isSharded: boolean): void {
    this.pubsub.subscriptions.publish(channel, message, isSharded);
  }

  /** The shard had forgotten this gateway. Messages to its subscribers may be lost, so they are disconnected, as Redis does it. */
  forgotten(shard: number): void {
    const { subscriptions } = this.pubsub;
    const isAffected = (kind: ChannelKind, name: Bytes): boolean =>
      kind === 'pattern' || this.router.shardOf(name) === shard;
    this.stats.forgotten++;
    for (const subscriber of subscriptions.subscribersOf(isAffected)) subscriber.kill();
    subscriptions.announceAll();
  }

  resetStats(): void {
    this.stats = new Statistics(this.slowLog);
  }
}
