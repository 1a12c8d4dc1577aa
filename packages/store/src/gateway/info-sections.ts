/** The sections and fields of INFO that people, libraries and monitoring look at, as far as they can be told truthfully. */

import { release, totalmem, type } from 'node:os';
import type { ShardReport } from '../commands/internal.js';
import type { MemorySettings } from '../engine/eviction.js';
import type { ShardView } from './cluster-facts.js';
import type { Gateway } from './gateway.js';
import { REDIS_VERSION } from './version.js';

/** Data that the gateway has to ask others for. */
export interface Answers {
  /** For each shard; undefined if it does not answer. */
  readonly shards: readonly (ShardReport | undefined)[];
  /** For each shard; empty if the leaders are not known. */
  readonly leaders: readonly ShardView[];
  /** Undefined if the shards do not answer. */
  readonly settings: MemorySettings | undefined;
}

export const NO_ANSWERS: Answers = { shards: [], leaders: [], settings: undefined };

type Fields = Readonly<Record<string, string | number>>;

export interface Section {
  /** Whether INFO without arguments has it. Default: yes. */
  readonly isUsual?: boolean;
  readonly needs?: readonly (keyof Answers)[];
  fields(gateway: Gateway, answers: Answers): Fields;
}

const PERCENTILES = [50, 99, 99.9];

export const SECTIONS: Readonly<Record<string, Section>> = {
  Server: {
    fields: (gateway) => ({
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
  },
  Clients: {
    fields: ({ clients, settings }) => {
      const all = [...clients.values()];
      return {
        connected_clients: all.length,
        cluster_connections: 0,
        maxclients: settings.maxClients,
        client_recent_max_input_buffer: Math.max(
          0,
          ...all.map(({ conversation }) => conversation.heldBytes),
        ),
        client_recent_max_output_buffer: Math.max(0, ...all.map(({ outputBytes }) => outputBytes)),
        blocked_clients: all.filter(({ conversation }) => conversation.isBlocked).length,
        tracking_clients: 0,
        clients_in_timeout_table: 0,
      };
    },
  },
  // What the keys take at each replica; the resident set is that of this process.
  Memory: {
    needs: ['shards', 'settings'],
    fields: (_gateway, { shards, settings }) => {
      const bytes = sum(shards, 'bytes');
      const { rss } = process.memoryUsage();
      return {
        used_memory: bytes,
        used_memory_human: humanBytes(bytes),
        used_memory_rss: rss,
        used_memory_rss_human: humanBytes(rss),
        used_memory_dataset: bytes,
        total_system_memory: totalmem(),
        total_system_memory_human: humanBytes(totalmem()),
        ...(settings !== undefined && {
          maxmemory: settings.maxmemory,
          maxmemory_human: humanBytes(Number(settings.maxmemory)),
          maxmemory_policy: settings['maxmemory-policy'],
        }),
        mem_allocator: 'v8',
      };
    },
  },
  Persistence: {
    fields: ({ facts }) => ({
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
  },
  Stats: {
    needs: ['shards'],
    fields: ({ stats, pubsub }, { shards }) => ({
      total_connections_received: stats.connections,
      total_commands_processed: stats.commands,
      instantaneous_ops_per_sec: Math.round(stats.perSecond.commands),
      total_net_input_bytes: stats.inputBytes,
      total_net_output_bytes: stats.outputBytes,
      instantaneous_input_kbps: (stats.perSecond.inputBytes / 1024).toFixed(2),
      instantaneous_output_kbps: (stats.perSecond.outputBytes / 1024).toFixed(2),
      rejected_connections: stats.rejected,
      sync_full: 0,
      sync_partial_ok: 0,
      sync_partial_err: 0,
      expired_keys: sum(shards, 'expired'),
      evicted_keys: sum(shards, 'evicted'),
      keyspace_hits: sum(shards, 'hits'),
      keyspace_misses: sum(shards, 'misses'),
      pubsub_channels: pubsub.subscriptions.count('channel'),
      pubsub_patterns: pubsub.subscriptions.count('pattern'),
      pubsubshard_channels: pubsub.subscriptions.count('shard'),
      latest_fork_usec: 0,
      total_forks: 0,
      total_error_replies: stats.errors,
    }),
  },
  Replication: {
    fields: ({ runId }) => ({
      role: 'master',
      connected_slaves: 0,
      master_failover_state: 'no-failover',
      master_replid: runId,
      master_repl_offset: 0,
      second_repl_offset: -1,
      repl_backlog_active: 0,
    }),
  },
  CPU: {
    fields: () => {
      const { system, user } = process.cpuUsage();
      return {
        used_cpu_sys: (system / 1e6).toFixed(6),
        used_cpu_user: (user / 1e6).toFixed(6),
      };
    },
  },
  Modules: { fields: () => ({}) },
  Commandstats: {
    isUsual: false,
    fields: ({ stats }) =>
      Object.fromEntries(
        stats.byCommand.map(([{ name }, { calls, failed, rejected, latencies }]) => [
          `cmdstat_${name}`,
          [
            `calls=${calls}`,
            `usec=${Math.round(latencies.sumUs)}`,
            `usec_per_call=${(calls === 0 ? 0 : latencies.sumUs / calls).toFixed(2)}`,
            `rejected_calls=${rejected}`,
            `failed_calls=${failed}`,
          ].join(),
        ]),
      ),
  },
  Errorstats: {
    fields: ({ stats }) =>
      Object.fromEntries(
        [...stats.errorCodes]
          .sort()
          .map(([code, count]) => [`errorstat_${code}`, `count=${count}`]),
      ),
  },
  Latencystats: {
    isUsual: false,
    fields: ({ stats }) =>
      Object.fromEntries(
        stats.byCommand
          .filter(([, { latencies }]) => latencies.count > 0)
          .map(([{ name }, { latencies }]) => [
            `latency_percentiles_usec_${name}`,
            PERCENTILES.map((p) => `p${p}=${latencies.percentileUs(p).toFixed(3)}`).join(),
          ]),
      ),
  },
  Cluster: { fields: () => ({ cluster_enabled: 0 }) },
  Keyspace: {
    needs: ['shards'],
    fields: (_gateway, { shards }): Fields => {
      const keys = sum(shards, 'keys');
      return keys === 0 ? {} : { db0: `keys=${keys},expires=${sum(shards, 'expiring')},avg_ttl=0` };
    },
  },
  // Of ours.
  Shards: {
    isUsual: false,
    needs: ['shards', 'leaders'],
    fields: ({ facts }, { shards, leaders }) =>
      Object.fromEntries(
        shards.map((report, shard) => [
          `shard${shard}`,
          [
            `answers=${report === undefined ? 'no' : 'yes'}`,
            ...viewOf(leaders[shard]),
            `replicas=${facts.replicas}`,
            ...figuresOf(report),
          ].join(),
        ]),
      ),
  },
};

function viewOf(view: ShardView | undefined): string[] {
  if (view === undefined) return [];
  return [`leader=${view.leader ?? 'none'}`, `replicas_up=${view.replicasUp}`];
}

function figuresOf(report: ShardReport | undefined): string[] {
  if (report === undefined) return [];
  const { keys, expiring, bytes, expired, evicted } = report;
  return [
    `keys=${keys}`,
    `expires=${expiring}`,
    `memory=${bytes}`,
    `expired=${expired}`,
    `evicted=${evicted}`,
  ];
}

function sum(shards: Answers['shards'], figure: keyof ShardReport): number {
  return shards.reduce((total, report) => total + (report?.[figure] ?? 0), 0);
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
