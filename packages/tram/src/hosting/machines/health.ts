/**
 * The HTTP endpoints of a machine: `/healthz` (it runs), `/readyz` (its replicas take part), `/metrics` (Prometheus text).
 * Answers come from shared memory; the replicas do no work for them.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Endpoint } from '../../config/addresses.js';
import { TramError } from '../../errors.js';
import { type JournalStatus, readStatus } from '../../journal/status.js';
import { HOST } from '../../memory/arena.js';
import type { ClusterContext } from '../cluster-context.js';
import { describeStateLoss, type ReplicaStatus, statusOf } from '../status.js';

/** What a host says of itself. Plain data, since each host of a machine has a thread of its own. */
export interface HostHealth {
  /** Why its replicas do not all take part, in lines; empty if they do. */
  readonly unready: string;
  readonly metrics: readonly MetricFamily[];
}

interface MetricFamily {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly samples: readonly Sample[];
}

interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** What is looked at. */
export interface HealthSource {
  readonly context: ClusterContext;
  readonly host: number;
  /** The groups of its replicas that have lost their state for good. */
  readonly lostGroups: readonly number[];
  /** What the host waits for before its replicas run, in words; undefined if it does not wait. */
  readonly waitsFor: string | undefined;
}

const METHODS = new Set(['GET', 'HEAD']);

/**
 * @param endpoint  `7412`: on loopback; `10.0.0.1:7412`: there
 * @param look  at all hosts of the machine
 */
export async function serveHealth(
  { address, port }: Endpoint,
  look: () => Promise<readonly HostHealth[]>,
): Promise<Server> {
  const server = createServer(async (request, response) => {
    if (!METHODS.has(request.method ?? '')) {
      respond(response, 405, 'only GET\n');
      return;
    }
    const [path] = (request.url ?? '').split('?');
    if (path === '/healthz') respond(response, 200, 'ok\n');
    else if (path === '/readyz') respondReadiness(response, await look());
    else if (path === '/metrics') respond(response, 200, metricsText(await look()));
    else respond(response, 404, 'there are /healthz, /readyz and /metrics\n');
  });
  server.requestTimeout = 5000;
  server.headersTimeout = 5000;
  server.maxConnections = 64;
  await new Promise<void>((resolve, reject) => {
    server.on('error', (cause: NodeJS.ErrnoException) =>
      reject(
        new TramError(
          'TRAM_ADDRESS_UNAVAILABLE',
          `Can't serve HTTP at ${address}:${port}: ${cause.message}.`,
          { cause },
        ),
      ),
    );
    server.listen(port, address, resolve);
  });
  return server;
}

function respond(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  response.end(text);
}

function respondReadiness(response: ServerResponse, hosts: readonly HostHealth[]): void {
  // Several hosts may wait for the same.
  const reasons = new Set(hosts.map(({ unready }) => unready));
  reasons.delete('');
  if (reasons.size === 0) respond(response, 200, 'ready\n');
  else respond(response, 503, [...reasons].join(''));
}

/** Prometheus wants each metric once, with what all hosts of the machine have of it. */
function metricsText(hosts: readonly HostHealth[]): string {
  const families = new Map<string, string[]>();
  for (const { name, kind, help, samples } of hosts.flatMap(({ metrics }) => metrics)) {
    const lines = families.get(name) ?? [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`];
    lines.push(...samples.map(sampleText(name)));
    families.set(name, lines);
  }
  return `${[...families.values()].flat().join('\n')}\n`;
}

function sampleText(name: string): (sample: Sample) => string {
  return ({ labels, value }) => {
    const texts = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    return `${name}${texts.length === 0 ? '' : `{${texts.join()}}`} ${value}`;
  };
}

export function healthOf(source: HealthSource): HostHealth {
  return { unready: unreadyText(source), metrics: metricsOf(source.context, source.host) };
}

function replicasOf(context: ClusterContext, host: number): ReplicaStatus[] {
  const { groups } = statusOf(context);
  return groups.flatMap(({ replicas }) => replicas).filter((replica) => replica.host === host);
}

/** A recovering replica or a candidate does not serve yet. */
function unreadyText({ context, host, lostGroups, waitsFor }: HealthSource): string {
  if (waitsFor !== undefined) return `${waitsFor}\n`;
  if (lostGroups.length > 0) return `${describeStateLoss(lostGroups)}\n`;
  const unready = replicasOf(context, host).filter(
    ({ state, role }) => state !== 'up' || (role !== 'leader' && role !== 'follower'),
  );
  return unready.map(reasonOf).join('');
}

function reasonOf({ name, state, role }: ReplicaStatus): string {
  return `${name} ${state === 'up' ? role : state}\n`;
}

interface Metric<Item> {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly value: (item: Item) => number;
}

const METRICS: readonly Metric<ReplicaStatus>[] = [
  {
    name: 'tram_delivered_entries_total',
    kind: 'counter',
    help: 'Log entries delivered or relayed.',
    value: ({ delivered }) => delivered,
  },
  {
    name: 'tram_messages_total',
    kind: 'counter',
    help: 'Messages given to the service, modulo 2^32.',
    value: ({ messages }) => messages,
  },
  {
    name: 'tram_times_led_total',
    kind: 'counter',
    help: 'How often the replica has begun to lead.',
    value: ({ timesLed }) => timesLed,
  },
  {
    name: 'tram_failed_snapshots_total',
    kind: 'counter',
    help: 'Snapshots for other replicas that the service failed to take.',
    value: ({ failedSnapshots }) => failedSnapshots,
  },
  {
    name: 'tram_leads',
    kind: 'gauge',
    help: '1 if the replica leads its group.',
    value: ({ role }) => (role === 'leader' ? 1 : 0),
  },
  {
    name: 'tram_recovering',
    kind: 'gauge',
    help: '1 if the replica recovers after it lost its memory.',
    value: ({ role }) => (role === 'recovering' ? 1 : 0),
  },
  {
    name: 'tram_ordered_time_seconds',
    kind: 'gauge',
    help: 'Ordered time, in seconds since 1970; 0 if the service has no ticks.',
    value: ({ nowMs }) => nowMs / 1000,
  },
  {
    name: 'tram_clock_ahead_seconds',
    kind: 'gauge',
    help: "By how much the host's clock was ahead of ordered time at the last tick.",
    value: ({ clockAheadMs }) => clockAheadMs / 1000,
  },
];

/** With a journal. */
const DURABLE_METRICS: readonly Metric<ReplicaStatus>[] = [
  {
    name: 'tram_durable_index',
    kind: 'gauge',
    help: 'Log entries below this index are durable on this host.',
    value: ({ durable = 0 }) => durable,
  },
  {
    name: 'tram_recoverable_index',
    kind: 'gauge',
    help: 'No power cut loses log entries below this index, as of when the replica led last.',
    value: ({ recoverable = 0 }) => recoverable,
  },
];

/** With `order: 'strict'`. */
const STRICT_METRICS: readonly Metric<ReplicaStatus>[] = [
  {
    name: 'tram_settled_index',
    kind: 'gauge',
    help: 'Log entries below this index are decided wherever they concern, as of when the replica led last.',
    value: ({ settled = 0 }) => settled,
  },
];

const JOURNAL_METRICS: readonly Metric<JournalStatus>[] = [
  {
    name: 'tram_journal_bytes',
    kind: 'gauge',
    help: 'The size of the journal, with its snapshots.',
    value: ({ bytes }) => bytes,
  },
  {
    name: 'tram_journal_syncs_total',
    kind: 'counter',
    help: 'How often the journal was synced.',
    value: ({ syncs }) => syncs,
  },
  {
    name: 'tram_journal_synced_bytes_total',
    kind: 'counter',
    help: 'The bytes that were written for these syncs.',
    value: ({ syncedBytes }) => syncedBytes,
  },
  {
    name: 'tram_journal_last_sync_seconds',
    kind: 'gauge',
    help: 'How long the last write and sync took.',
    value: ({ lastSyncNs }) => lastSyncNs / 1e9,
  },
  {
    name: 'tram_journal_synced_at_seconds',
    kind: 'gauge',
    help: 'When the last sync ended, in seconds since 1970; 0 before the first.',
    value: ({ syncedAtMs }) => syncedAtMs / 1000,
  },
  {
    name: 'tram_journal_pending_snapshots',
    kind: 'gauge',
    help: 'Snapshots that do not replace older entries yet.',
    value: ({ pendingSnapshots }) => pendingSnapshots,
  },
];

function metricsOf(context: ClusterContext, host: number): MetricFamily[] {
  const { durability, order, threads } = context.config;
  const replicas = replicasOf(context, host);
  const labels = ({ group, member }: ReplicaStatus): Sample['labels'] => ({ group, member });
  // What concerns the host itself, and not one of its replicas.
  const ofHost = threads === 1 ? {} : { thread: host % threads! };
  const isDurable = durability !== 'none';
  const ofReplicas = [
    ...METRICS,
    ...(isDurable ? DURABLE_METRICS : []),
    ...(order === 'strict' ? STRICT_METRICS : []),
  ];
  return [
    ...ofReplicas.map((metric) => familyOf(metric, replicas, labels)),
    ...(isDurable ? journalMetrics(context, host, ofHost) : []),
    linkMetrics(context, host, ofHost),
    callMetrics(context, ofHost),
  ];
}

function familyOf<Item>(
  { name, kind, help, value }: Metric<Item>,
  items: readonly Item[],
  labels: (item: Item) => Sample['labels'],
): MetricFamily {
  const samples = items.map((item) => ({ labels: labels(item), value: value(item) }));
  return { name, kind, help, samples };
}

function journalMetrics(
  { arena, map }: ClusterContext,
  host: number,
  ofHost: Sample['labels'],
): MetricFamily[] {
  const line = map.host(host);
  const journal = readStatus(arena.words, line + HOST.journal);
  const era: Metric<JournalStatus> = {
    name: 'tram_era',
    kind: 'gauge',
    help: 'The era in which the host runs, or has run last; 0 if it never has.',
    value: () => arena.words[line + HOST.era],
  };
  return [era, ...JOURNAL_METRICS].map((metric) => familyOf(metric, [journal], () => ofHost));
}

function callMetrics({ network }: ClusterContext, ofHost: Sample['labels']): MetricFamily {
  return {
    name: 'tram_network_calls_total',
    kind: 'counter',
    help: 'What the host has asked of the network: operations, corked batches, sleeps, polls.',
    samples: Object.entries(network?.calls ?? {}).map(([call, value]) => ({
      labels: { call, ...ofHost },
      value,
    })),
  };
}

function linkMetrics(
  { network, config }: ClusterContext,
  self: number,
  ofHost: Sample['labels'],
): MetricFamily {
  const samples = (config.machines ?? []).map(({ name }, host) => ({
    labels: { host: name, ...ofHost },
    value: network?.isConnected(host) === true ? 1 : 0,
  }));
  samples.splice(self, 1);
  return {
    name: 'tram_connected',
    kind: 'gauge',
    help: '1 if the host is connected to that one.',
    samples,
  };
}
