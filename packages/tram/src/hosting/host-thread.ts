/** The entry point of a host in a worker thread, started by `Cluster.start` for `memory: 'threads'`. */
import { parentPort, workerData } from 'node:worker_threads';
import { TramError } from '../errors.js';
import { threadsArena } from '../memory/threads.js';
import { ClusterContext } from './cluster-context.js';
import { failureOf, Host } from './host.js';
import { pacingOf } from './pacing.js';

export interface HostThreadData {
  readonly buffer: SharedArrayBuffer;
  readonly host: number;
  readonly resumes: boolean;
}

const { buffer, host, resumes } = workerData as HostThreadData;
const context = ClusterContext.attach(threadsArena(buffer));
try {
  const running = await Host.start(context, {
    host,
    resumes,
    pacing: pacingOf(context.config),
    report: (report) => parentPort?.postMessage(report),
  });
  // It is the only message that a host gets.
  parentPort?.once('message', () => running.stop()).unref();
  await running.run();
} catch (error) {
  // Any other error is a bug: it ends the thread and shows its stack.
  if (!(error instanceof TramError)) throw error;
  parentPort?.postMessage(failureOf(error));
}
