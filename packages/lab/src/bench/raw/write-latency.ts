/**
 * The latency of a write to several targets, one after the other or in parallel (Paper §3). Called by the experiment
 * `write-latency`. The end of a write is defined in two ways:
 *
 * - *completed*, as in `memory/contract.ts`: the record is in the target's region, and after that the target still permitted
 *   the write. In shared memory this holds as soon as the writer's stores are visible.
 * - *acknowledged*: the target has seen the record and has written a word back. That takes a round trip between cores, as a
 *   completion of RDMA takes a round trip between machines.
 *
 * One thread writes; another thread has all targets, as a host has its replicas.
 */
import { Worker } from 'node:worker_threads';
import { resolveConfig } from 'tram-multicast/internal/config/config.js';
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { NO_SALT } from 'tram-multicast/internal/memory/record.js';
import { threadsArena } from 'tram-multicast/internal/memory/threads.js';

export type Awaited = 'completion' | 'acknowledgement';

export interface WriteOptions {
  readonly targets: number;
  readonly recordBytes: number;
  readonly awaits: Awaited;
  /** Write to all targets, then wait for all. Otherwise wait for each before writing to the next. */
  readonly isTogether: boolean;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface WriteJob extends WriteOptions {
  readonly role: 'write' | 'acknowledge';
  readonly address: SharedArrayBuffer;
}

export interface WriteLatency {
  /** Until all targets have the record: the median of blocks of repetitions. */
  readonly latencyNsP50: number;
}

export async function measureWriteLatency(options: WriteOptions): Promise<WriteLatency> {
  // The regions of a cluster that runs no replicas.
  const config = resolveConfig({ groups: options.targets, replicas: 1, clients: 1 }, NO_SALT);
  const address = new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4);
  ClusterContext.create(config, threadsArena(address));
  const workers = (['acknowledge', 'write'] as const).map((role) =>
    start({ ...options, role, address }),
  );
  try {
    const reports = await Promise.all(workers.map(({ report }) => report));
    return reports[1] as WriteLatency;
  } finally {
    await Promise.all(workers.map(({ worker }) => worker.terminate()));
  }
}

function start(job: WriteJob): { worker: Worker; report: Promise<unknown> } {
  const worker = new Worker(new URL('./write-latency-worker.js', import.meta.url), {
    workerData: job,
  });
  const report = new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a side ended with exit code ${code}`)));
  });
  // The first failure is reported; then the other worker is terminated.
  report.catch(() => undefined);
  return { worker, report };
}
