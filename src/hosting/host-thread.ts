/** The worker thread of a host: what `Cluster.start` runs for `memory: 'threads'`. */
import { parentPort, workerData } from 'node:worker_threads';
import { threadsArena } from '../memory/threads.js';
import { Commons } from './commons.js';
import { Host } from './host.js';
import { pacingOf } from './pacing.js';

export interface HostThreadData {
  readonly buffer: SharedArrayBuffer;
  readonly host: number;
  readonly resumes: boolean;
}

const { buffer, host, resumes } = workerData as HostThreadData;
const commons = Commons.attach(threadsArena(buffer));
const running = await Host.start(commons, {
  host,
  resumes,
  pacing: pacingOf(commons.config),
  report: (report) => parentPort?.postMessage(report),
});
await running.run();
