/** Which gateways hear from which channels. */

import type { Bytes } from '../resp/reply.js';

export const CHANNEL_KINDS = ['channel', 'pattern', 'shard'] as const;

export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** By kind and name: how many clients each gateway has that have subscribed. */
export type ChannelState = Map<string, Map<Bytes, number>>;

export class Channels {
  readonly #subscribed: ChannelState;

  constructor(state: ChannelState = new Map()) {
    this.#subscribed = state;
  }

  get state(): ChannelState {
    return this.#subscribed;
  }

  /** The gateway has so many clients now that have subscribed. */
  subscribe(kind: ChannelKind, name: Bytes, gateway: Bytes, clients: number): void {
    const key = keyOf(kind, name);
    const gateways = this.#subscribed.get(key) ?? new Map<Bytes, number>();
    if (clients > 0) gateways.set(gateway, clients);
    else gateways.delete(gateway);
    if (gateways.size > 0) this.#subscribed.set(key, gateways);
    else this.#subscribed.delete(key);
  }

  drop(gateway: Bytes): void {
    for (const [key, gateways] of this.#subscribed) {
      gateways.delete(gateway);
      if (gateways.size === 0) this.#subscribed.delete(key);
    }
  }

  /** The gateways that a message to this channel goes to, and how many clients get it. */
  receivers(
    kind: 'channel' | 'shard',
    name: Bytes,
    matches: (pattern: Bytes, name: Bytes) => boolean,
  ): { gateways: ReadonlySet<Bytes>; clients: number } {
    const gateways = new Set<Bytes>();
    let clients = 0;
    const add = (subscribed: ReadonlyMap<Bytes, number> | undefined): void => {
      for (const [gateway, count] of subscribed ?? []) {
        gateways.add(gateway);
        clients += count;
      }
    };
    add(this.#subscribed.get(keyOf(kind, name)));
    if (kind === 'channel') {
      for (const [pattern, subscribed] of this.#named('pattern')) {
        if (matches(pattern, name)) add(subscribed);
      }
    }
    return { gateways, clients };
  }

  /** The channels of this kind that have subscribers, with the number of clients. */
  list(kind: ChannelKind): [Bytes, number][] {
    return [...this.#named(kind)].map(([name, gateways]) => [
      name,
      [...gateways.values()].reduce((sum, count) => sum + count, 0),
    ]);
  }

  *#named(kind: ChannelKind): Iterable<[Bytes, ReadonlyMap<Bytes, number>]> {
    const prefix = keyOf(kind, '');
    for (const [key, gateways] of this.#subscribed) {
      if (key.startsWith(prefix)) yield [key.slice(prefix.length), gateways];
    }
  }
}

function keyOf(kind: ChannelKind, name: Bytes): string {
  return `${kind}:${name}`;
}
