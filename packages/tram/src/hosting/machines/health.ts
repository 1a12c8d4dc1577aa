/**
 * A host's HTTP endpoints: `/healthz` (it runs), `/readyz` (its replicas take part), `/metrics` (Prometheus text).
 * Answers come from shared memory; the replicas do no work for them.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { TramError } from '../../errors.js';
import type { ClusterContext } from '../cluster-context.js';
import { describeStateLoss, type ReplicaStatus, statusOf } from '../status.js';

export interface HealthSettings {
  readonly context: ClusterContext;
  readonly host: number;
  /** The groups of its replicas that have lost their state for good. */
  readonly lostGroups: () => readonly number[];
  /** `7412`: on loopback; `10.0.0.1:7412`: there. */
  readonly address: string;
  readonly port: number;
}

const METHODS = new Set(['GET', 'HEAD']);

export async function serveHealth({
  context,
  host,
  lostGroups,
  address,
  port,
}: HealthSettings): Promise<Server> {
  const server = createServer((request, response) => {
    if (!METHODS.has(request.method ?? '')) {
      respond(response, 405, 'only GET\n');
      return;
    }
    const [path] = (request.url ?? '').split('?');
    if (path === '/healthz') respond(response, 200, 'ok\n');
    else if (path === '/readyz') respondReadiness(response, context, host, lostGroups());
    else if (path === '/metrics') respond(response, 200, metricsOf(context, host));
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

function replicasOf(context: ClusterContext, host: number): ReplicaStatus[] {
  const { groups } = statusOf(context);
  return groups.flatMap(({ replicas }) => replicas).filter((replica) => replica.host === host);
}

/** A recovering replica or a candidate does not serve yet. */
function respondReadiness(
  response: ServerResponse,
  context: ClusterContext,
  host: number,
  lostGroups: readonly number[],
): void {
  if (lostGroups.length > 0) {
    respond(response, 503, `${describeStateLoss(lostGroups)}\n`);
    return;
  }
  const unready = replicasOf(context, host).filter(
    ({ state, role }) => state !== 'up' || (role !== 'leader' && role !== 'follower'),
  );
  if (unready.length === 0) respond(response, 200, 'ready\n');
  else respond(response, 503, unready.map(reasonOf).join(''));
}

function reasonOf({ name, state, role }: ReplicaStatus): string {
  return `${name} ${state === 'up' ? role : state}\n`;
}

interface Metric {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly value: (replica: ReplicaStatus) => number;
}

const METRICS: readonly Metric[] = [
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

function metricsOf(context: ClusterContext, host: number): string {
  const replicas = replicasOf(context, host);
  const lines: string[] = [];
  for (const { name, kind, help, value } of METRICS) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
    for (const replica of replicas) {
      lines.push(`${name}{group="${replica.group}",member="${replica.member}"} ${value(replica)}`);
    }
  }
  lines.push(...linkMetrics(context, host));
  return `${lines.join('\n')}\n`;
}

function linkMetrics({ network, config }: ClusterContext, self: number): string[] {
  const metric = 'tram_connected';
  const lines = [
    `# HELP ${metric} 1 if the host is connected to that one.`,
    `# TYPE ${metric} gauge`,
  ];
  config.machines?.forEach(({ name }, host) => {
    if (host === self) return;
    const value = network?.isConnected(host) === true ? 1 : 0;
    lines.push(`${metric}{host="${name}"} ${value}`);
  });
  return lines;
}
