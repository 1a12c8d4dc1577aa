/** Runs a load in a thread or a process of its own (`worker.ts`), and returns its measurement. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Measurement } from '../systems/system.js';
import type { LoadJob } from './worker.js';

export type BenchMemory = 'threads' | 'processes';

export function runLoad(
  memory: BenchMemory,
  job: LoadJob,
  signal?: AbortSignal,
): Promise<Measurement> {
  const url = new URL('./worker.js', import.meta.url);
  return new Promise((resolve, reject) => {
    if (memory === 'threads') {
      const worker = new Worker(url, { workerData: job });
      worker.once('message', resolve).once('error', reject);
      worker.once('exit', (code) => reject(new Error(`the load ended with exit code ${code}`)));
      return;
    }
    const child = fork(fileURLToPath(url), {
      killSignal: 'SIGKILL',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      ...(signal !== undefined && { signal }),
    });
    let measurement: Measurement | undefined;
    child.once('message', (message) => {
      measurement = message as Measurement;
      child.kill('SIGKILL');
    });
    child.once('error', reject);
    child.once('exit', (code, killedBy) => {
      if (measurement !== undefined) resolve(measurement);
      else reject(new Error(`the load ended with ${killedBy ?? `exit code ${code}`}`));
    });
    child.send(job);
  });
}
