/**
 * The limit of a disk for a journal: a bare loop of `write` and `fdatasync`. Each writer is a thread with a file of its own,
 * which is filled with zeros beforehand and overwritten in sequence, as the segments of a journal are.
 */
import { Worker } from 'node:worker_threads';

export interface SyncedWritesOptions {
  /** On the disk to measure. The files are removed afterwards. */
  readonly folder: string;
  /** Threads that write and sync side by side. */
  readonly writers: number;
  readonly bytesPerSync: number;
  readonly seconds: number;
}

export interface SyncedWrites {
  readonly bytesPerSync: number;
  readonly writers: number;
  /** Of one write and its sync. */
  readonly latencyNsP50: number;
  readonly latencyNsP99: number;
  /** Of all writers together. */
  readonly syncsPerSecond: number;
  readonly bytesPerSecond: number;
}

export interface WriterJob extends Omit<SyncedWritesOptions, 'writers'> {
  readonly file: string;
  /** One word: how many writers are yet to prepare their file. All begin when it is 0. */
  readonly unprepared: Int32Array;
}

export interface WriterReport {
  readonly latenciesNs: Float64Array;
  readonly seconds: number;
}

export async function measureSyncedWrites(options: SyncedWritesOptions): Promise<SyncedWrites> {
  const { writers, bytesPerSync } = options;
  const unprepared = new Int32Array(new SharedArrayBuffer(4)).fill(writers);
  const threads = Array.from({ length: writers }, (_, i) =>
    startWriter({ ...options, file: `bare-${i}`, unprepared }),
  );
  try {
    const reports = await Promise.all(threads.map(({ report }) => report));
    const latenciesNs = Float64Array.from(reports.flatMap((report) => [...report.latenciesNs]));
    latenciesNs.sort();
    const perSecond = reports.map(({ latenciesNs, seconds }) => latenciesNs.length / seconds);
    const syncsPerSecond = perSecond.reduce((sum, rate) => sum + rate, 0);
    return {
      ...{ bytesPerSync, writers, syncsPerSecond },
      bytesPerSecond: syncsPerSecond * bytesPerSync,
      latencyNsP50: latenciesNs[Math.floor(latenciesNs.length * 0.5)],
      latencyNsP99: latenciesNs[Math.floor(latenciesNs.length * 0.99)],
    };
  } finally {
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }
}

function startWriter(job: WriterJob): { worker: Worker; report: Promise<WriterReport> } {
  const worker = new Worker(new URL('./synced-writes-worker.js', import.meta.url), {
    workerData: job,
  });
  const report = new Promise<WriterReport>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a writer ended with exit code ${code}`)));
  });
  // The first failure is reported; then the other writers are terminated.
  report.catch(() => undefined);
  return { worker, report };
}
