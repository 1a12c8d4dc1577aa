/** What is behind a gateway: the shards. */

import type { Client, OfferListener } from 'tram-multicast';
import type { ChannelKind } from '../engine/channels.js';
import type { Backend, Channels } from '../gateway/backend.js';
import { Router } from '../gateway/router.js';
import type { ShardCall } from '../gateway/shards.js';
import type { Pressure, Traffic } from '../gateway/traffic.js';
import type { Bytes } from '../resp/reply.js';
import { Batches } from './batches.js';
import { BlockedCalls } from './blocked-calls.js';
import { Mail } from './mail.js';
import { Postman } from './postman.js';
import { ShardTransactions } from './transactions.js';
import { ShardWaits } from './waits.js';
import { TramWire, type Wire } from './wire.js';

/** `Client.connect` to a cluster, or `cluster.connect`. */
export type Connect = (options: { listener: OfferListener }) => Promise<Client>;

export interface BackendListener {
  /** To a channel that a client of this gateway listens to. */
  published(channel: Bytes, message: Bytes, isSharded: boolean): void;
  /** The shard has forgotten this gateway, because it was silent for too long. It needs all subscriptions again. */
  forgotten(shard: number): void;
}

const NO_PRESSURE: Pressure = { unanswered: 0, waiting: 0, heldBack: 0 };

export class ShardBackend implements Backend {
  readonly shards: Batches;
  readonly transactions: ShardTransactions;
  readonly waits: ShardWaits;
  readonly channels: Channels;
  readonly traffic: Traffic;
  /** Resolves when all shards know this gateway. Before that, no call may wait at a shard. */
  readonly ready: Promise<void>;
  readonly #mail: Mail;

  /**
   * @param count  of shards
   * @param data  for messages that may wait for transactions
   * @param control  for those that must not: they end transactions
   */
  constructor(
    count: number,
    data: Wire,
    control: Wire,
    listener: BackendListener,
    nowMs = Date.now,
  ) {
    const postman = new Postman(data, control, nowMs, count);
    this.traffic = postman.traffic;
    const router = new Router(count);
    this.shards = new Batches(count, postman);
    const blockedCalls = new BlockedCalls(this.shards, postman);
    this.transactions = new ShardTransactions(this.shards, postman, router.shardOf);
    this.waits = new ShardWaits(router, this.transactions, blockedCalls);
    this.channels = new ShardChannels(this.shards, router, postman.gateway);
    this.#mail = new Mail(postman, {
      unblocked: (blockedAs, reply) => blockedCalls.unblocked(blockedAs, reply),
      published: (channel, message, isSharded) => listener.published(channel, message, isSharded),
      forgotten: (shard) => {
        blockedCalls.forgotten(shard);
        listener.forgotten(shard);
      },
    });
    this.ready = this.#mail.start(count);
  }

  /** Of the wires. */
  get pressure(): Pressure {
    return NO_PRESSURE;
  }

  async close(): Promise<void> {
    this.#mail.close();
  }
}

/** The shards of a cluster of TRAM. */
export class TramBackend extends ShardBackend {
  private constructor(
    count: number,
    private readonly data: TramWire,
    private readonly control: TramWire,
    listener: BackendListener,
  ) {
    super(count, data, control, listener);
  }

  /** @param count  of shards */
  static async connect(
    connect: Connect,
    count: number,
    listener: BackendListener,
  ): Promise<TramBackend> {
    const data = await TramWire.connect(connect);
    const control = await TramWire.connect(connect);
    const backend = new TramBackend(count, data, control, listener);
    await backend.ready;
    return backend;
  }

  override get pressure(): Pressure {
    const [a, b] = [this.data.pressure, this.control.pressure];
    return {
      unanswered: a.unanswered + b.unanswered,
      waiting: a.waiting + b.waiting,
      heldBack: a.heldBack + b.heldBack,
    };
  }

  override async close(): Promise<void> {
    await super.close();
    await Promise.all([this.data.close(), this.control.close()]);
  }
}

class ShardChannels implements Channels {
  constructor(
    private readonly shards: Batches,
    private readonly router: Router,
    private readonly gateway: Bytes,
  ) {}

  announce(
    kind: ChannelKind,
    name: Bytes,
    clients: number,
    done: () => void,
    failed: (error: Error) => void,
  ): void {
    const args = [kind, name, this.gateway, String(clients)];
    const command = { name: '.subscribe' };
    // A message to any channel may match a pattern.
    const shards =
      kind === 'pattern' ? [...Array(this.shards.count).keys()] : [this.router.shardOf(name)];
    const calls = shards.map((shard): ShardCall => ({ shard, command, args, resp: 3 }));
    this.shards.run(calls, done, failed);
  }
}
