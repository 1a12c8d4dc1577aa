/** Subscribing and unsubscribing clients of this gateway. */

import { CHANNEL_KINDS, type ChannelKind } from '../engine/channels.js';
import { copyOf } from '../resp/parser.js';
import { type Bytes, Push } from '../resp/reply.js';
import type { Channels } from './backend.js';
import type { Client } from './client.js';
import type { Session } from './session.js';
import { Subscriptions } from './subscriptions.js';

const PREFIX: Readonly<Record<ChannelKind, string>> = { channel: '', pattern: 'p', shard: 's' };

export class PubSub {
  readonly subscriptions: Subscriptions;

  constructor(channels: Channels) {
    this.subscriptions = new Subscriptions(channels);
  }

  /** Confirms each name to the client, once the shards know the subscription. */
  async subscribe(kind: ChannelKind, names: readonly Bytes[], client: Client): Promise<undefined> {
    const { session } = client;
    const copies = names.map(copyOf);
    const joined = [...new Set(copies)].filter((name) => !session.subscribed[kind].has(name));
    try {
      await Promise.all(joined.map((name) => this.#join(kind, name, client)));
    } catch (error) {
      for (const name of joined) void this.#leave(kind, name, client);
      throw error;
    }
    for (const name of client.isClosed ? joined : []) void this.#leave(kind, name, client);
    if (client.isClosed) return undefined;
    for (const name of copies) {
      session.subscribed[kind].add(name);
      client.push(new Push([`${PREFIX[kind]}subscribe`, name, countOf(kind, session)]));
    }
    return undefined;
  }

  /** Without names, it unsubscribes from all of this kind. */
  async unsubscribe(
    kind: ChannelKind,
    names: readonly Bytes[],
    client: Client,
  ): Promise<undefined> {
    const { session } = client;
    const subscribed = session.subscribed[kind];
    const left = names.length > 0 ? names : [...subscribed];
    const word = `${PREFIX[kind]}unsubscribe`;
    await Promise.all(
      left.map((name) => (subscribed.has(name) ? this.#leave(kind, name, client) : undefined)),
    );
    for (const name of left) {
      subscribed.delete(name);
      client.push(new Push([word, name, countOf(kind, session)]));
    }
    if (left.length === 0) client.push(new Push([word, null, countOf(kind, session)]));
    return undefined;
  }

  /** Ends all subscriptions without a confirmation to the client. */
  leaveAll(client: Client): void {
    for (const kind of CHANNEL_KINDS) {
      const subscribed = client.session.subscribed[kind];
      for (const name of subscribed) void this.#leave(kind, name, client);
      subscribed.clear();
    }
  }

  #join(kind: ChannelKind, name: Bytes, client: Client): Promise<void> {
    return new Promise((resolve, reject) => {
      this.subscriptions.add(kind, name, client, resolve, reject);
    });
  }

  #leave(kind: ChannelKind, name: Bytes, client: Client): Promise<void> {
    return new Promise((resolve) => {
      this.subscriptions.remove(kind, name, client, resolve);
    });
  }
}

/** As Redis counts: channels and patterns together, shard channels alone. */
function countOf(kind: ChannelKind, { subscribed }: Session): number {
  return kind === 'shard'
    ? subscribed.shard.size
    : subscribed.channel.size + subscribed.pattern.size;
}
