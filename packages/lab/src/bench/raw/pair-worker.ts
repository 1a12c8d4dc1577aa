/** One side of a raw measurement, as a thread or a process: maps the memory, runs its job, ends. Started by `pair.ts`. */
import { parentPort, workerData } from 'node:worker_threads';
import { endWithParent } from '../load/end-with-parent.js';
import { runCopyClients, runCopyLeaders } from './copy-only/measure.js';
import { type Assignment, mapWords, type RawJob, type Report } from './pair.js';
import { ping, pong } from './ping-pong.js';
import { consume, produce } from './ring.js';

function run(job: RawJob, words: Int32Array): unknown {
  switch (job.role) {
    case 'produce':
      return produce(words, job);
    case 'consume':
      return consume(words, job);
    case 'ping':
      return ping(words, job);
    case 'pong':
      return pong(words);
    case 'copyClients':
      return runCopyClients(words, job);
    case 'copyLeaders':
      return runCopyLeaders(words, job);
  }
}

/** Turns an exception into a report. */
function attempt(work: () => Report): Report {
  try {
    return work();
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Maps the memory, waits for `go`, and runs the job. No message is received while the job runs. */
function serve(
  assignment: Assignment,
  report: (report: Report) => void,
  onGo: (go: () => void) => void,
): void {
  report(
    attempt(() => {
      const words = mapWords(assignment.memory);
      onGo(() => report(attempt(() => ({ kind: 'done', result: run(assignment.job, words) }))));
      return { kind: 'ready' };
    }),
  );
}

if (parentPort !== null) {
  const port = parentPort;
  serve(
    workerData as Assignment,
    (report) => port.postMessage(report),
    (go) => port.once('message', go),
  );
} else {
  endWithParent();
  serve(
    JSON.parse(process.argv[2]) as Assignment,
    (report) => process.send!(report, undefined, undefined, () => undefined),
    (go) => process.once('message', go),
  );
}
