/** What `/metrics` of a gateway has. */

import { CHANNEL_KINDS } from '../engine/channels.js';
import type { Gateway } from '../gateway/gateway.js';
import type { Answers } from '../gateway/info-sections.js';
import type { Latencies } from '../gateway/latencies.js';
import type { Family, Labels, Sample } from './text.js';

/** The bounds of the buckets: 256 µs, 1 ms, 4 ms, … 4 s, as powers of two of microseconds. */
const POWERS = [8, 10, 12, 14, 16, 18, 20, 22];

type ShardAnswers = Pick<Answers, 'shards' | 'leaders'>;

export function familiesOf(gateway: Gateway, answers: ShardAnswers): Family[] {
  return [
    ...processFamilies(gateway),
    ...clientFamilies(gateway),
    ...commandFamilies(gateway),
    ...trafficFamilies(gateway),
    ...shardFamilies(gateway, answers),
  ];
}

function processFamilies({ startedMs }: Gateway): Family[] {
  const { system, user } = process.cpuUsage();
  return [
    gauge(
      'tram_store_start_time_seconds',
      'When the gateway began, in seconds since 1970.',
      startedMs / 1000,
    ),
    counter('process_cpu_seconds_total', 'Processor time of the process.', (system + user) / 1e6),
    gauge('process_resident_memory_bytes', 'Memory of the process.', process.memoryUsage.rss()),
  ];
}

function clientFamilies({ stats, clients, settings, pubsub }: Gateway): Family[] {
  const blocked = [...clients.values()].filter(({ conversation }) => conversation.isBlocked);
  const { subscriptions } = pubsub;
  return [
    gauge('tram_store_connected_clients', 'Clients that are connected.', clients.size),
    gauge('tram_store_max_clients', 'How many may be.', settings.maxClients),
    gauge(
      'tram_store_blocked_clients',
      'Clients that wait in a command such as BLPOP.',
      blocked.length,
    ),
    counter('tram_store_connections_total', 'Connections that were accepted.', stats.connections),
    counter(
      'tram_store_rejected_connections_total',
      'Connections that were refused because there were too many.',
      stats.rejected,
    ),
    counter(
      'tram_store_failed_handshakes_total',
      'TLS handshakes that have failed.',
      stats.failedHandshakes,
    ),
    counter(
      'tram_store_forgotten_total',
      'How often a shard had forgotten the gateway, so that subscribers were disconnected.',
      stats.forgotten,
    ),
    counter('tram_store_input_bytes_total', 'Bytes from clients.', stats.inputBytes),
    counter('tram_store_output_bytes_total', 'Bytes to clients.', stats.outputBytes),
    {
      name: 'tram_store_subscriptions',
      kind: 'gauge',
      help: 'Channels and patterns that clients of this gateway have subscribed to.',
      samples: CHANNEL_KINDS.map((kind) => ({
        labels: { kind },
        value: subscriptions.count(kind),
      })),
    },
  ];
}

function commandFamilies({ stats, slowLog }: Gateway): Family[] {
  const { byCommand } = stats;
  const ofEach = (
    name: string,
    help: string,
    value: (one: (typeof byCommand)[number][1]) => number,
  ): Family => ({
    name,
    kind: 'counter',
    help,
    samples: byCommand.map(([command, one]) => ({
      labels: { command: command.name },
      value: value(one),
    })),
  });
  return [
    ofEach('tram_store_commands_total', 'Commands that were carried out.', ({ calls }) => calls),
    ofEach(
      'tram_store_failed_commands_total',
      'Commands that have replied with an error.',
      ({ failed }) => failed,
    ),
    ofEach(
      'tram_store_rejected_commands_total',
      'Commands that were not carried out: not allowed, or with wrong arguments.',
      ({ rejected }) => rejected,
    ),
    {
      name: 'tram_store_command_seconds',
      kind: 'histogram',
      help: 'From a request until its reply is written, without commands that may wait.',
      samples: byCommand
        .filter(([, { latencies }]) => latencies.count > 0)
        .flatMap(([{ name }, { latencies }]) => histogramSamples({ command: name }, latencies)),
    },
    {
      name: 'tram_store_error_replies_total',
      kind: 'counter',
      help: 'Errors that clients have got, by their first word.',
      samples: [...stats.errorCodes].map(([code, value]) => ({ labels: { code }, value })),
    },
    gauge('tram_store_slow_log_length', 'Entries of SLOWLOG.', slowLog.length),
  ];
}

function histogramSamples(labels: Labels, latencies: Latencies): Sample[] {
  const buckets = POWERS.map(
    (power): Sample => ({
      suffix: '_bucket',
      labels: { ...labels, le: String(2 ** power / 1e6) },
      value: latencies.countUpTo(power),
    }),
  );
  return [
    ...buckets,
    { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: latencies.count },
    { suffix: '_sum', labels, value: latencies.sumUs / 1e6 },
    { suffix: '_count', labels, value: latencies.count },
  ];
}

function trafficFamilies({ backend }: Gateway): Family[] {
  const { traffic, pressure } = backend;
  return [
    counter('tram_store_batches_total', 'Messages to shards that have commands.', traffic.batches),
    counter(
      'tram_store_batched_commands_total',
      'Commands in these messages.',
      traffic.batchedCommands,
    ),
    counter(
      'tram_store_uploaded_pieces_total',
      'Pieces of requests that were too long for a message.',
      traffic.uploadedPieces,
    ),
    counter(
      'tram_store_fetched_pieces_total',
      'Pieces of replies that were too long for one.',
      traffic.fetchedPieces,
    ),
    counter(
      'tram_store_transactions_begun_total',
      'Coordinated transactions.',
      traffic.begunTransactions,
    ),
    {
      name: 'tram_store_transactions_total',
      kind: 'counter',
      help: 'Coordinated transactions that have ended: a watched key had changed, the command waits, TRYAGAIN.',
      samples: Object.entries(traffic.transactions).map(([outcome, value]) => ({
        labels: { outcome },
        value,
      })),
    },
    counter(
      'tram_store_transaction_retries_total',
      'Further attempts of coordinated transactions.',
      traffic.retriedTransactions,
    ),
    gauge(
      'tram_store_unanswered_messages',
      'Messages that shards have not replied to.',
      pressure.unanswered,
    ),
    gauge(
      'tram_store_waiting_messages',
      'Messages that there is no room for yet.',
      pressure.waiting,
    ),
    counter(
      'tram_store_held_back_messages_total',
      'Messages that had to wait for room.',
      pressure.heldBack,
    ),
  ];
}

function shardFamilies({ facts }: Gateway, { shards, leaders }: ShardAnswers): Family[] {
  const known = shards.flatMap((report, shard) =>
    report === undefined ? [] : [{ shard, report }],
  );
  const ofEach = (
    name: string,
    kind: 'counter' | 'gauge',
    help: string,
    value: (report: (typeof known)[number]['report']) => number,
  ): Family => ({
    name,
    kind,
    help,
    samples: known.map(({ shard, report }) => ({ labels: { shard }, value: value(report) })),
  });
  return [
    {
      name: 'tram_store_shard_up',
      kind: 'gauge',
      help: '1 if the shard answers.',
      samples: shards.map((report, shard) => ({
        labels: { shard },
        value: report === undefined ? 0 : 1,
      })),
    },
    ofEach('tram_store_keys', 'gauge', 'Keys of the shard.', ({ keys }) => keys),
    ofEach(
      'tram_store_expiring_keys',
      'gauge',
      'Keys that expire some time.',
      ({ expiring }) => expiring,
    ),
    ofEach(
      'tram_store_memory_bytes',
      'gauge',
      'What the keys of the shard take, in one copy.',
      ({ bytes }) => bytes,
    ),
    ofEach(
      'tram_store_expired_keys_total',
      'counter',
      'Keys whose time had come.',
      ({ expired }) => expired,
    ),
    ofEach(
      'tram_store_evicted_keys_total',
      'counter',
      'Keys that were removed because memory was short.',
      ({ evicted }) => evicted,
    ),
    ofEach(
      'tram_store_keyspace_hits_total',
      'counter',
      'Keys that were looked up and found.',
      ({ hits }) => hits,
    ),
    ofEach(
      'tram_store_keyspace_misses_total',
      'counter',
      'Keys that were looked up and not found.',
      ({ misses }) => misses,
    ),
    gauge('tram_store_replicas', 'Copies of each shard.', facts.replicas),
    {
      name: 'tram_store_replicas_up',
      kind: 'gauge',
      help: 'Replicas of the shard that take part.',
      samples: leaders.map(({ replicasUp }, shard) => ({ labels: { shard }, value: replicasUp })),
    },
    {
      name: 'tram_store_leader',
      kind: 'gauge',
      help: '1 for the host that leads the shard.',
      samples: leaders.flatMap(({ leader }, shard) =>
        leader === undefined ? [] : [{ labels: { shard, host: leader }, value: 1 }],
      ),
    },
  ];
}

function gauge(name: string, help: string, value: number): Family {
  return { name, kind: 'gauge', help, samples: [{ labels: {}, value }] };
}

function counter(name: string, help: string, value: number): Family {
  return { name, kind: 'counter', help, samples: [{ labels: {}, value }] };
}
