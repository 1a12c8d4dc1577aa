/** Commands about the server, but for INFO. */

import { badSubcommand, integer, syntaxError } from '../../commands/arguments.js';
import type { ShardReport } from '../../commands/internal.js';
import { ErrorReply, MapReply, OK, type Reply, Verbatim } from '../../resp/reply.js';
import type { Changing, Immediate } from '../carriers.js';
import type { ClusterFacts } from '../cluster-facts.js';
import { type Latencies, POWER_MAX } from '../latencies.js';
import { concernShards } from '../settings.js';
import { configureShards, readShardSettings } from '../shard-settings.js';
import { REDIS_VERSION } from '../version.js';

const SLOWLOG_COUNT = 'ERR count should be greater than or equal to -1';

const SHUTDOWN_OPTIONS = ['now', 'force', 'save', 'nosave'];

export const SERVER_SESSION_HANDLERS: Readonly<Record<string, Changing>> = {
  'memory|stats': async (_args, { gateway }) => memoryStats(await gateway.reports.ask()),

  shutdown: (args, { gateway }) => {
    const words = args.map((arg) => arg.toLowerCase());
    if (words.length === 1 && words[0] === 'abort') {
      throw new ErrorReply('ERR No shutdown in progress.');
    }
    const isContradictory = words.includes('save') && words.includes('nosave');
    if (isContradictory || words.some((word) => !SHUTDOWN_OPTIONS.includes(word))) {
      throw syntaxError();
    }
    if (words.includes('save') && !gateway.facts.isKept) {
      throw new ErrorReply('ERR the store has no journal to save to. Use SHUTDOWN NOSAVE');
    }
    gateway.askToEnd();
    return undefined;
  },
};

export const SERVER_HANDLERS: Readonly<Record<string, Immediate>> = {
  'config|resetstat': (_args, { gateway }) => {
    gateway.resetStats();
    return OK;
  },
  'config|rewrite': () => {
    throw new ErrorReply('ERR The server is running without a config file');
  },

  'latency|doctor': () => new Verbatim('Events are not recorded. See LATENCY HISTOGRAM.\n'),
  'latency|histogram': (names, { gateway }) => {
    const wanted = names.map((name) => name.toLowerCase());
    const isWanted = (name: string): boolean =>
      wanted.length === 0 || wanted.includes(name) || wanted.includes(name.split('|')[0]);
    return new MapReply(
      gateway.stats.byCommand
        .filter(([{ name }, { latencies }]) => isWanted(name) && latencies.count > 0)
        .map(([{ name }, { latencies }]) => [name, histogramOf(latencies)]),
    );
  },
  'latency|history': () => [],
  'latency|latest': () => [],
  'latency|reset': () => 0,

  lolwut: () => new Verbatim(`Redis ver. ${REDIS_VERSION}\n`),

  'memory|doctor': () => new Verbatim('Memory is not examined.\n'),
  'memory|purge': () => OK,

  'slowlog|get': ([count = '10', ...rest], { gateway }) => {
    if (rest.length > 0) throw badSubcommand('SLOWLOG', 'get');
    const wanted = integer(count, SLOWLOG_COUNT);
    if (wanted < -1) throw new ErrorReply(SLOWLOG_COUNT);
    return gateway.slowLog.get(wanted);
  },
  'slowlog|len': (_args, { gateway }) => gateway.slowLog.length,
  'slowlog|reset': (_args, { gateway }) => {
    gateway.slowLog.reset();
    return OK;
  },

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

function memoryStats(shards: readonly (ShardReport | undefined)[]): Reply {
  const { rss, heapTotal, heapUsed } = process.memoryUsage();
  const keys = shards.reduce((total, shard) => total + (shard?.keys ?? 0), 0);
  const bytes = shards.reduce((total, shard) => total + (shard?.bytes ?? 0), 0);
  return new MapReply([
    ['total.allocated', heapUsed],
    ['keys.count', keys],
    ['keys.bytes-per-key', keys === 0 ? 0 : Math.floor(bytes / keys)],
    ['dataset.bytes', bytes],
    ['allocator.allocated', heapUsed],
    ['allocator.active', heapTotal],
    ['allocator.resident', rss],
  ]);
}

/** How many took at most so many microseconds, by powers of two, as far as that says more. */
function histogramOf(latencies: Latencies): Reply {
  const buckets: [Reply, Reply][] = [];
  let before = 0;
  for (let power = 2; before < latencies.count; power++) {
    const upTo = power > POWER_MAX ? latencies.count : latencies.countUpTo(power);
    if (upTo > before) buckets.push([2 ** power, upTo]);
    before = upTo;
  }
  return new MapReply([
    ['calls', latencies.count],
    ['histogram_usec', new MapReply(buckets)],
  ]);
}

function checkTimeout(ms: number): void {
  if (ms < 0) throw new ErrorReply('ERR timeout is negative');
}

/** A majority has every write that was replied to: the leader, and so many others. */
function acknowledgingReplicas({ replicas }: ClusterFacts): number {
  return Math.floor(replicas / 2);
}
