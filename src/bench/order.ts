/**
 * `tram bench order`: how many messages a second a cluster orders, and how long one takes, from the
 * offer of a client until the replies of all destinations are back. Next to it, from the same run, what
 * the memory itself can do: a bare ring with records of the same size, and a bare ping-pong.
 */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Cluster } from '../cluster.js';
import { MESSAGE } from '../memory/layout.js';
import { FRAME_WORDS } from '../memory/window.js';
import { Overlay, parseTree } from '../protocol/overlay.js';
import { destinationSets } from './destinations.js';
import type { LoadJob, LoadReport } from './load-worker.js';
import { measurePingPong } from './ping-pong.js';
import { measureRawRing } from './raw-ring.js';

export interface OrderOptions {
  readonly memory: 'threads' | 'processes';
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly hosts?: number;
  readonly destinations: number;
  readonly clients: number;
  readonly outstanding: number;
  readonly payloadBytes: number;
  readonly seconds: number;
}

export interface OrderResult {
  readonly options: OrderOptions;
  readonly machine: { readonly cores: number; readonly model: string; readonly node: string };
  readonly messagesPerSecond: number;
  /** With the configured number of messages under way. */
  readonly loaded: LoadReport;
  /** With one client and one message at a time. */
  readonly alone: LoadReport;
  /** Cores busy on average while loaded. */
  readonly coresUsed: number;
  readonly ring: {
    readonly recordBytes: number;
    readonly messagesPerSecond: number;
    readonly batchedMessagesPerSecond: number;
  };
  readonly pingPong: { readonly roundTripNsP50: number };
  /** The bare ring's throughput divided by ours; our median latency divided by the ping-pong's. */
  readonly ringsPerMessage: number;
  readonly pingPongsPerMessage: number;
}

const RAW_SECONDS = 0.5;
const WARM_UP_SECONDS = 1.5;
const TICKS_PER_SECOND = 100;

export async function benchOrder(
  options: OrderOptions,
  progress: (step: string) => void,
): Promise<OrderResult> {
  const recordBytes = (FRAME_WORDS + MESSAGE.payload) * 4 + options.payloadBytes;
  progress('bare ring and ping-pong');
  const before = await rawLimits(options.memory, recordBytes);
  const { loaded, alone, coresUsed } = await measureCluster(options, progress);
  progress('bare ring and ping-pong, again');
  const after = await rawLimits(options.memory, recordBytes);
  const ringRate = Math.max(before.ring.messagesPerSecond, after.ring.messagesPerSecond);
  const pingPongNs = Math.min(before.pingPong.roundTripNsP50, after.pingPong.roundTripNsP50);
  const messagesPerSecond = loaded.messages / loaded.seconds;
  return {
    options,
    machine: { cores: cpus().length, model: cpus()[0]?.model ?? 'unknown', node: process.version },
    messagesPerSecond,
    loaded,
    alone,
    coresUsed,
    ring: {
      recordBytes,
      messagesPerSecond: ringRate,
      batchedMessagesPerSecond: Math.max(
        before.ring.batchedMessagesPerSecond,
        after.ring.batchedMessagesPerSecond,
      ),
    },
    pingPong: { roundTripNsP50: pingPongNs },
    ringsPerMessage: ringRate / messagesPerSecond,
    pingPongsPerMessage: alone.latencyNsP50 / pingPongNs,
  };
}

async function rawLimits(memory: 'threads' | 'processes', recordBytes: number) {
  const ring = await measureRawRing({ memory, recordBytes, seconds: RAW_SECONDS });
  const pingPong = await measurePingPong({ memory, seconds: RAW_SECONDS });
  return { ring, pingPong };
}

async function measureCluster(options: OrderOptions, progress: (step: string) => void) {
  const { memory, groups, replicas, tree, hosts, payloadBytes, clients, outstanding } = options;
  const cluster = await Cluster.start({
    memory,
    groups,
    replicas,
    tree,
    ...(hosts !== undefined && { hosts }),
    clients: clients + 1,
    callsMax: outstanding,
    payloadBytesMax: payloadBytes,
    replyBytesMax: 16,
    logBytes: LOG_BYTES,
    inboxBytes: INBOX_BYTES,
    feedBytes: FEED_BYTES,
  });
  try {
    const overlay = new Overlay(parseTree(tree, groups));
    const sets = destinationSets(overlay, 'rotating', options.destinations);
    const job: LoadJob = {
      ...{ sets, clients, outstanding, payloadBytes, seconds: options.seconds },
      address: cluster.address,
      warmUpSeconds: WARM_UP_SECONDS,
    };
    progress('one message at a time');
    const alone = await runLoad(memory, { ...job, clients: 1, outstanding: 1 });
    progress(`${clients} clients with ${outstanding} messages under way each`);
    const cpuBefore = cpuSeconds(cluster, memory);
    const startedMs = performance.now();
    const loaded = await runLoad(memory, job);
    const elapsed = (performance.now() - startedMs) / 1000;
    const coresUsed =
      (cpuSeconds(cluster, memory) - cpuBefore + (loaded.cpuSeconds ?? 0)) / elapsed;
    return { loaded, alone, coresUsed };
  } finally {
    await cluster.close();
  }
}

const LOG_BYTES = 1 << 18;
const INBOX_BYTES = 1 << 16;
const FEED_BYTES = 1 << 16;

function cpuSeconds(cluster: Cluster, memory: 'threads' | 'processes'): number {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1e6;
  if (memory === 'threads') return own;
  return cluster.status().hosts.reduce((sum, { pid }) => sum + cpuSecondsOf(pid), own);
}

/** User and system time of a process, from /proc. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** In a thread, or in a process, of its own. */
export function runLoad(
  memory: 'threads' | 'processes',
  job: LoadJob,
): Promise<LoadReport & { cpuSeconds?: number }> {
  const url = new URL('./load-worker.js', import.meta.url);
  return new Promise((resolve, reject) => {
    if (memory === 'threads') {
      const worker = new Worker(url, { workerData: job });
      worker.once('message', resolve).once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the load ended with exit code ${code}`)));
      return;
    }
    const child = fork(fileURLToPath(url), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    child.once('message', (report) => resolve(report as LoadReport & { cpuSeconds: number }));
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      reject(new Error(`the load ended with ${signal ?? `exit code ${code}`}`)),
    );
    child.send(job);
  });
}
