/**
 * How long it takes to write a record to several targets, one after the other or all together (paper
 * §3). What "to write" means is measured in two ways:
 *
 * - *completed*: as the contract of memories has it (`memory/contract.ts`), the record has landed in the
 *   target's region, and after that the target still permitted it. Where memory is shared that is so as soon
 *   as the writer's own stores are visible.
 * - *acknowledged*: the target has seen the record and has written a word back. That takes a way there and a
 *   way back between cores, as a completion of RDMA does between machines.
 *
 * One thread writes, another one has all targets, as a host has its replicas.
 */
import { Worker } from 'node:worker_threads';
import { resolveConfig } from 'tram-multicast/internal/config/config.js';
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { threadsArena } from 'tram-multicast/internal/memory/threads.js';

export type Awaited = 'completion' | 'acknowledgement';

export interface WriteOptions {
  readonly targets: number;
  readonly recordBytes: number;
  readonly awaits: Awaited;
  /** Write to all, then wait for all. Else wait for each before writing to the next. */
  readonly isTogether: boolean;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface WriteJob extends WriteOptions {
  readonly role: 'write' | 'acknowledge';
  readonly address: SharedArrayBuffer;
}

export interface WriteLatency {
  /** Until all targets have it: the median of blocks of repetitions. */
  readonly latencyNsP50: number;
}

const SALT = 1;

export async function measureWriteLatency(options: WriteOptions): Promise<WriteLatency> {
  // Regions as those of a cluster, in which nobody runs.
  const config = resolveConfig({ groups: options.targets, replicas: 1, clients: 1 }, SALT);
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
  // Whoever fails first is told; the other one is ended.
  report.catch(() => undefined);
  return { worker, report };
}
