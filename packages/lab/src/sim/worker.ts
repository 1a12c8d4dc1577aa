/** A thread of the pool: runs the seeds that `pool.ts` sends, one at a time, and sends back their outcomes. */
import { parentPort, workerData } from 'node:worker_threads';
import { runSeed } from './outcome.js';
import type { WorkerData } from './pool.js';

const { options, wantsDetails } = workerData as WorkerData;

parentPort!.on('message', (seed: number) => {
  parentPort!.postMessage(runSeed(seed, options, wantsDetails));
});
