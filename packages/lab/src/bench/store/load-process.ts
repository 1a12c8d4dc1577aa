/**
 * The load of `bench store`, in a process of its own. Started by `store.ts` with a `StoreJob`. Each connection keeps one pipeline of
 * requests under way.
 */
import { connect, type Socket } from 'node:net';
import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { endWithParent } from '../load/end-with-parent.js';
import { encodeCommand } from '../peers/resp.js';
import { LOOPBACK } from '../systems/ports.js';
import { latenciesIn } from '../systems/system.js';
import { KEYS, keyOf, type LoadId, loadOf, type Pipeline } from './loads.js';
import { ReplyCounter } from './reply-counter.js';
import type { StoreReport } from './store.js';

export interface StoreJob {
  readonly port: number;
  readonly load: LoadId;
  readonly pipeline: Pipeline;
  readonly connections: number;
  /** After each pipeline: a WAIT for one replica. */
  readonly waits: boolean;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** So many different requests are drawn in advance, and sent again and again. */
const REQUESTS = 8192;
const WAIT_MS = '10000';
const READ_BYTES = 64 * 1024;
const LOOK_SECONDS = 0.005;

async function run(job: StoreJob): Promise<StoreReport> {
  const { connections, warmUpSeconds, seconds } = job;
  const latency = Histogram.empty();
  const { batches, replies } = batchesOf(job);
  const counts = { requests: 0 };
  let fail!: (error: Error) => void;
  const failure = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const pause = (s: number): Promise<void> =>
    Promise.race([failure, new Promise<void>((resolve) => setTimeout(resolve, s * 1000))]);
  let turn = 0;
  for (let i = 0; i < connections; i++) {
    openConnection(job.port, replies, fail, {
      next: () => batches[turn++ % batches.length],
      answered: (ns) => {
        latency.record(ns);
        counts.requests += job.pipeline;
      },
    });
  }
  await pause(warmUpSeconds);
  const before = latency.snapshot();
  const requestsBefore = counts.requests;
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  await pause(seconds);
  // At least one pipeline, if it takes longer than that.
  while (counts.requests === requestsBefore) await pause(LOOK_SECONDS);
  const elapsed = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { latencyNsP50, latencyNsP99 } = latenciesIn(latency.since(before));
  return {
    requestsPerSecond: (counts.requests - requestsBefore) / elapsed,
    ...{ latencyNsP50, latencyNsP99 },
    loadCores: (user + system) / 1e6 / elapsed,
  };
}

function batchesOf({ load, pipeline, waits }: StoreJob): { batches: Buffer[]; replies: number } {
  const kind = loadOf(load);
  const key = (): string => keyOf(Math.floor(Math.random() * KEYS));
  const wait = waits && kind.writes ? [encodeCommand('WAIT', '1', WAIT_MS)] : [];
  const batches = Array.from({ length: REQUESTS / pipeline }, () =>
    Buffer.concat([...Array.from({ length: pipeline }, () => kind.encode(key)), ...wait]),
  );
  return { batches, replies: kind.replies * pipeline + wait.length };
}

interface Turns {
  next(): Buffer;
  answered(latencyNs: number): void;
}

function openConnection(
  port: number,
  replies: number,
  failed: (error: Error) => void,
  { next, answered }: Turns,
): void {
  const counter = new ReplyCounter();
  let due = 0;
  let sentMs = 0;
  const send = (): void => {
    due = replies;
    sentMs = performance.now();
    socket.write(next());
  };
  const receive = (bytes: number, buffer: Uint8Array): boolean => {
    try {
      due -= counter.push((buffer as Buffer).subarray(0, bytes));
    } catch (error) {
      failed(error as Error);
      return false;
    }
    if (due === 0) {
      answered((performance.now() - sentMs) * 1e6);
      send();
    }
    return true;
  };
  const socket: Socket = connect({
    ...{ port, host: LOOPBACK, noDelay: true },
    onread: { buffer: Buffer.alloc(READ_BYTES), callback: receive },
  });
  socket.once('connect', send).on('error', failed);
  socket.on('close', () => failed(new Error('the server closed a connection')));
}

endWithParent();
process.once('message', (job: StoreJob) => {
  run(job).then(
    (report) => process.send!(report, () => undefined),
    (error: Error) => process.send!({ failure: error.message }, () => undefined),
  );
});
