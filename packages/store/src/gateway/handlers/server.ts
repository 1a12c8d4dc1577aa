/** Commands about the server, but for INFO. */

import { integer, syntaxError } from '../../commands/arguments.js';
import { ErrorReply, MapReply, OK, type Reply, Verbatim } from '../../resp/reply.js';
import type { Changing, Immediate } from '../carriers.js';
import type { ClusterFacts } from '../gateway.js';
import { concernShards } from '../settings.js';
import { configureShards, readShardSettings } from '../shard-settings.js';
import { REDIS_VERSION } from '../version.js';

export const SERVER_HANDLERS: Readonly<Record<string, Immediate>> = {
  'config|resetstat': (_args, { gateway }) => {
    gateway.resetStats();
    return OK;
  },
  'config|rewrite': () => {
    throw new ErrorReply('ERR The server is running without a config file');
  },

  'latency|doctor': () => new Verbatim('Latencies are not recorded.\n'),
  'latency|histogram': () => new MapReply([]),
  'latency|history': () => [],
  'latency|latest': () => [],
  'latency|reset': () => 0,

  lolwut: () => new Verbatim(`Redis ver. ${REDIS_VERSION}\n`),

  'memory|doctor': () => new Verbatim('Memory is not examined.\n'),
  'memory|purge': () => OK,
  'memory|stats': () => {
    const { rss, heapTotal, heapUsed } = process.memoryUsage();
    return new MapReply([
      ['peak.allocated', rss],
      ['total.allocated', heapUsed],
      ['allocator.allocated', heapUsed],
      ['allocator.active', heapTotal],
      ['allocator.resident', rss],
    ]);
  },

  'slowlog|get': () => [],
  'slowlog|len': () => 0,
  'slowlog|reset': () => OK,

  time: () => {
    const microseconds = Math.round((performance.timeOrigin + performance.now()) * 1000);
    return [String(Math.floor(microseconds / 1e6)), String(microseconds % 1e6)];
  },

  wait: ([replicas, timeout], { gateway }) => {
    integer(replicas);
    checkTimeout(integer(timeout, 'ERR timeout is not an integer or out of range'));
    return acknowledgingReplicas(gateway.facts);
  },
  waitaof: ([local, replicas, timeout], { gateway }) => {
    const { facts } = gateway;
    const wanted = integer(local);
    if (wanted < 0 || wanted > 1)
      throw new ErrorReply('ERR value is out of range, must be between 0 and 1');
    if (integer(replicas) < 0) throw syntaxError();
    checkTimeout(integer(timeout, 'ERR timeout is not an integer or out of range'));
    if (facts.isDurable) return [1, acknowledgingReplicas(facts)];
    if (wanted === 0) return [0, 0];
    throw new ErrorReply(
      'ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.',
    );
  },
};

/** They ask the shards if they concern what the shards keep. */
export const CONFIG_HANDLERS: Readonly<Record<string, Changing>> = {
  'config|get': (patterns, { gateway: { settings, shards } }) => {
    if (!concernShards(patterns)) return new MapReply(settings.matching(patterns));
    return readShardSettings(shards).then(
      (ofShards) => new MapReply(settings.matching(patterns, ofShards)),
    );
  },
  'config|set': (args, { gateway: { settings, shards } }) => {
    if (args.length % 2 !== 0) {
      throw new ErrorReply("ERR wrong number of arguments for 'config|set' command");
    }
    const pairs = Array.from(
      { length: args.length / 2 },
      (_, i) => [args[2 * i], args[2 * i + 1]] as const,
    );
    const { own, ofShards } = settings.check(pairs);
    const set = (): Reply => {
      settings.set(own);
      return OK;
    };
    return Object.keys(ofShards).length === 0 ? set() : configureShards(shards, ofShards).then(set);
  },
};

function checkTimeout(ms: number): void {
  if (ms < 0) throw new ErrorReply('ERR timeout is negative');
}

/** A majority has every write that was replied to: the leader, and so many others. */
function acknowledgingReplicas({ replicas }: ClusterFacts): number {
  return Math.floor(replicas / 2);
}
