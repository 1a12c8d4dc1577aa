/** INFO: the sections and fields that people and libraries look at. */

import { release, totalmem, type } from 'node:os';
import { MEMORY_DEFAULTS, type MemorySettings } from '../../engine/eviction.js';
import { readReply } from '../../resp/reader.js';
import { type Bytes, Verbatim } from '../../resp/reply.js';
import type { Changing } from '../carriers.js';
import type { Gateway } from '../gateway.js';
import { readShardSettings } from '../shard-settings.js';
import type { ShardCall, Shards } from '../shards.js';
import { REDIS_VERSION } from '../version.js';

const INFO = { name: '.info' };

type Fields = Readonly<Record<string, string | number>>;
type Section = (gateway: Gateway, contents: Contents) => Fields;

const SECTIONS: Readonly<Record<string, Section>> = {
  Server: (gateway) => ({
    redis_version: REDIS_VERSION,
    redis_git_sha1: '00000000',
    redis_git_dirty: 0,
    redis_mode: 'standalone',
    os: `${type()} ${release()} ${process.arch}`,
    arch_bits: 64,
    process_id: process.pid,
    run_id: gateway.runId,
    tcp_port: gateway.settings.get('port'),
    server_time_usec: Date.now() * 1000,
    uptime_in_seconds: uptimeSeconds(gateway),
    uptime_in_days: Math.floor(uptimeSeconds(gateway) / 86_400),
    hz: 10,
    configured_hz: 10,
    executable: process.execPath,
    config_file: '',
    tram_shards: gateway.shards.count,
    tram_replicas: gateway.facts.replicas,
  }),
  Clients: ({ clients, settings }) => ({
    connected_clients: clients.size,
    cluster_connections: 0,
    maxclients: settings.maxClients,
    blocked_clients: [...clients.values()].filter(({ conversation }) => conversation.isBlocked)
      .length,
    tracking_clients: 0,
    clients_in_timeout_table: 0,
  }),
  // What the keys take at each replica; the resident set is that of this process.
  Memory: (_gateway, { bytes, settings }) => {
    const { rss } = process.memoryUsage();
    const maxmemory = Number(settings.maxmemory);
    return {
      used_memory: bytes,
      used_memory_human: humanBytes(bytes),
      used_memory_rss: rss,
      used_memory_rss_human: humanBytes(rss),
      used_memory_dataset: bytes,
      total_system_memory: totalmem(),
      total_system_memory_human: humanBytes(totalmem()),
      maxmemory,
      maxmemory_human: humanBytes(maxmemory),
      maxmemory_policy: settings['maxmemory-policy'],
      mem_allocator: 'v8',
    };
  },
  Persistence: ({ facts }) => ({
    loading: 0,
    async_loading: 0,
    rdb_changes_since_last_save: 0,
    rdb_bgsave_in_progress: 0,
    rdb_last_bgsave_status: 'ok',
    aof_enabled: facts.isDurable ? 1 : 0,
    aof_rewrite_in_progress: 0,
    aof_last_bgrewrite_status: 'ok',
    aof_last_write_status: 'ok',
  }),
  Stats: ({ stats, pubsub }, { evicted }) => ({
    total_connections_received: stats.connections,
    total_commands_processed: stats.commands,
    total_net_input_bytes: stats.inputBytes,
    total_net_output_bytes: stats.outputBytes,
    rejected_connections: stats.rejected,
    evicted_keys: evicted,
    pubsub_channels: pubsub.subscriptions.count('channel'),
    pubsub_patterns: pubsub.subscriptions.count('pattern'),
    pubsubshard_channels: pubsub.subscriptions.count('shard'),
  }),
  Replication: ({ runId }) => ({
    role: 'master',
    connected_slaves: 0,
    master_failover_state: 'no-failover',
    master_replid: runId,
    master_repl_offset: 0,
    second_repl_offset: -1,
    repl_backlog_active: 0,
  }),
  CPU: () => {
    const { system, user } = process.cpuUsage();
    return {
      used_cpu_sys: (system / 1e6).toFixed(6),
      used_cpu_user: (user / 1e6).toFixed(6),
    };
  },
  Modules: () => ({}),
  Errorstats: () => ({}),
  Cluster: () => ({ cluster_enabled: 0 }),
  Keyspace: (_gateway, { keys, expiring }): Fields =>
    keys === 0 ? {} : { db0: `keys=${keys},expires=${expiring},avg_ttl=0` },
};

/** Sections for which the shards are asked. */
const OF_SHARDS = ['Memory', 'Stats', 'Keyspace'];

/** These words mean all sections. */
const ALL = ['default', 'all', 'everything'];

export const INFO_HANDLERS: Readonly<Record<string, Changing>> = {
  info: (args, client) => {
    const wanted = args.length === 0 ? ['all'] : args.map((arg) => arg.toLowerCase());
    const isWanted = (name: string): boolean =>
      wanted.includes(name.toLowerCase()) || ALL.some((word) => wanted.includes(word));
    const { gateway } = client;
    const print = (contents: Contents): Verbatim =>
      new Verbatim(
        Object.entries(SECTIONS)
          .filter(([name]) => isWanted(name))
          .map(([name, section]) => printed(name, section(gateway, contents)))
          .join('\r\n'),
      );
    return OF_SHARDS.some(isWanted) ? askShards(gateway).then(print) : print(UNKNOWN);
  },
};

/** What all shards have together. */
interface Contents {
  readonly keys: number;
  readonly expiring: number;
  readonly bytes: number;
  readonly evicted: number;
  readonly settings: MemorySettings;
}

/** Shards are asked for it only if it is wanted. */
const UNKNOWN: Contents = { keys: 0, expiring: 0, bytes: 0, evicted: 0, settings: MEMORY_DEFAULTS };

async function askShards({ shards }: Gateway): Promise<Contents> {
  const [settings, parts] = await Promise.all([readShardSettings(shards), readCounts(shards)]);
  const sum = (at: number): number => parts.reduce((total, part) => total + part[at], 0);
  return { keys: sum(0), expiring: sum(1), bytes: sum(2), evicted: sum(3), settings };
}

/** What each shard counts. */
function readCounts(shards: Shards): Promise<readonly (readonly number[])[]> {
  const calls = Array.from(
    { length: shards.count },
    (_, shard): ShardCall => ({ shard, command: INFO, args: [], resp: 3 }),
  );
  return new Promise((resolve, reject) => {
    const replied = (replies: readonly Uint8Array[]): void =>
      resolve(replies.map((reply) => readReply(reply) as readonly number[]));
    shards.run(calls, replied, reject);
  });
}

function printed(name: string, fields: Fields): Bytes {
  const lines = Object.entries(fields).map(([field, value]) => `${field}:${value}\r\n`);
  return `# ${name}\r\n${lines.join('')}`;
}

function uptimeSeconds(gateway: Gateway): number {
  return Math.floor((Date.now() - gateway.startedMs) / 1000);
}

function humanBytes(bytes: number): string {
  const units = ['B', 'K', 'M', 'G', 'T'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(2)}${units[unit]}`;
}
