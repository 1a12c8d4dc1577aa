/** SUBSCRIBE and its relatives. */

import type { Changing } from '../carriers.js';

export const CHANNEL_HANDLERS: Readonly<Record<string, Changing>> = {
  subscribe: (names, client) => client.gateway.pubsub.subscribe('channel', names, client),
  psubscribe: (names, client) => client.gateway.pubsub.subscribe('pattern', names, client),
  ssubscribe: (names, client) => client.gateway.pubsub.subscribe('shard', names, client),
  unsubscribe: (names, client) => client.gateway.pubsub.unsubscribe('channel', names, client),
  punsubscribe: (names, client) => client.gateway.pubsub.unsubscribe('pattern', names, client),
  sunsubscribe: (names, client) => client.gateway.pubsub.unsubscribe('shard', names, client),
};
