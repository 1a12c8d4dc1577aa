/** Channels. Shards carry out PUBLISH and PUBSUB; gateways know which of their clients have subscribed. */

import { matchesGlob } from '../engine/glob.js';
import type { Bytes, Reply } from '../resp/reply.js';
import { badSubcommand } from './arguments.js';
import type { CommandSpec, Execution, Flag, Spread } from './spec.js';

const PUBSUB: readonly Flag[] = ['pubsub', 'loading', 'stale'];
const SUBSCRIBE: readonly Flag[] = ['pubsub', 'noscript', 'loading', 'stale'];
const NOT_IN_TRANSACTIONS = 'not within a transaction';

/** Every shard replies with a list of its own channels. */
const ALL_CHANNELS: Spread = {
  split: (args, _shardOf, shards) =>
    Array.from({ length: shards }, (_, shard) => ({ shard, args })),
  merge: (parts) => parts.flatMap(({ reply }) => reply as readonly Reply[]),
};

/** Each channel is at one shard. The reply has each channel with its number of subscribers. */
const COUNTS: Spread = {
  split: (args, shardOf) => {
    const parts = new Map<number, Bytes[]>();
    for (const channel of args) {
      const shard = shardOf(channel);
      const part = parts.get(shard);
      if (part === undefined) parts.set(shard, [channel]);
      else part.push(channel);
    }
    if (parts.size === 0) parts.set(0, []);
    return [...parts].map(([shard, part]) => ({ shard, args: part }));
  },
  merge: (parts, args) => {
    const counts = new Map<Reply, Reply>();
    for (const { reply } of parts) {
      const list = reply as readonly Reply[];
      for (let i = 0; i < list.length; i += 2) counts.set(list[i], list[i + 1]);
    }
    return args.flatMap((channel) => [channel, counts.get(channel)!]);
  },
};

function listChannels(kind: 'channel' | 'shard') {
  return ([pattern, ...rest]: readonly Bytes[], { channels }: Execution): Reply => {
    if (rest.length > 0) {
      throw badSubcommand('PUBSUB', kind === 'shard' ? 'shardchannels' : 'channels');
    }
    return channels
      .list(kind)
      .map(([name]) => name)
      .filter((name) => pattern === undefined || matchesGlob(pattern, name));
  };
}

function countSubscribers(kind: 'channel' | 'shard') {
  return (names: readonly Bytes[], { channels }: Execution): Reply => {
    const counts = new Map(channels.list(kind));
    return names.flatMap((name) => [name, counts.get(name) ?? 0]);
  };
}

/** The gateway carries it out. */
function subscription(name: string, arity: number, since: string, summary: string): CommandSpec {
  const differs = NOT_IN_TRANSACTIONS;
  return { name, arity, flags: SUBSCRIBE, category: 'pubsub', since, summary, differs };
}

export const CHANNELS: readonly CommandSpec[] = [
  subscription('psubscribe', -2, '2.0.0', 'Listens to channels that match patterns.'),
  subscription('punsubscribe', -1, '2.0.0', 'Stops listening to patterns.'),
  subscription('ssubscribe', -2, '7.0.0', 'Listens to shard channels.'),
  subscription('subscribe', -2, '2.0.0', 'Listens to channels.'),
  subscription('sunsubscribe', -1, '7.0.0', 'Stops listening to shard channels.'),
  subscription('unsubscribe', -1, '2.0.0', 'Stops listening to channels.'),
  {
    name: 'publish',
    arity: 3,
    flags: ['pubsub', 'loading', 'stale', 'fast'],
    category: 'pubsub',
    since: '2.0.0',
    summary: 'Sends a message to a channel.',
    routedBy: 0,
    run: ([channel, message], execution) => execution.publish(channel, message, false),
  },
  {
    name: 'spublish',
    arity: 3,
    flags: ['pubsub', 'loading', 'stale', 'fast'],
    category: 'pubsub',
    since: '7.0.0',
    summary: 'Sends a message to a shard channel.',
    routedBy: 0,
    run: ([channel, message], execution) => execution.publish(channel, message, true),
  },
  {
    name: 'pubsub|channels',
    arity: -2,
    flags: PUBSUB,
    category: 'pubsub',
    since: '2.8.0',
    summary: 'Lists channels that have subscribers.',
    spread: ALL_CHANNELS,
    run: listChannels('channel'),
  },
  {
    name: 'pubsub|help',
    arity: 2,
    flags: ['loading', 'stale'],
    category: 'pubsub',
    since: '6.2.0',
    summary: 'Lists the subcommands.',
  },
  {
    name: 'pubsub|numpat',
    arity: 2,
    flags: PUBSUB,
    category: 'pubsub',
    since: '2.8.0',
    summary: 'Returns the number of patterns that have subscribers.',
    // Every shard knows all patterns.
    spread: {
      split: (args) => [{ shard: 0, args }],
      merge: ([{ reply }]) => reply,
    },
    run: (_args, { channels }) => channels.list('pattern').length,
  },
  {
    name: 'pubsub|numsub',
    arity: -2,
    flags: PUBSUB,
    category: 'pubsub',
    since: '2.8.0',
    summary: 'Returns the numbers of subscribers of channels.',
    spread: COUNTS,
    run: countSubscribers('channel'),
  },
  {
    name: 'pubsub|shardchannels',
    arity: -2,
    flags: PUBSUB,
    category: 'pubsub',
    since: '7.0.0',
    summary: 'Lists shard channels that have subscribers.',
    spread: ALL_CHANNELS,
    run: listChannels('shard'),
  },
  {
    name: 'pubsub|shardnumsub',
    arity: -2,
    flags: PUBSUB,
    category: 'pubsub',
    since: '7.0.0',
    summary: 'Returns the numbers of subscribers of shard channels.',
    spread: COUNTS,
    run: countSubscribers('shard'),
  },
];
