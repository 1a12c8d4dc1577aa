/**
 * Puts a load on a system while its leaders change, and reports how the changes delay messages. Called by `failover.ts` and
 * by `machines/leader-changes.ts`. The clients run in a process of their own, `changes-worker.ts`.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ChangesJob } from './changes-worker.js';
import type { ChangesReport, Span } from './span-delays.js';

/** The monotonic clock, which all processes of a machine share. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Runs changes one after the other while clients send, and reports the delays. */
export async function changeUnderLoad(
  job: ChangesJob,
  changes: readonly (() => Promise<Span>)[],
  betweenMs: number,
): Promise<ChangesReport> {
  const load = startLoad(job);
  try {
    await load.started;
    await pause(betweenMs);
    for (const change of changes) {
      const span = await change();
      await pause(betweenMs);
      load.report(span);
      // The report keeps the clients from sending for a moment.
      await pause(betweenMs);
    }
    return await load.finish();
  } finally {
    load.kill();
  }
}

/** Starts clients that send until they are asked for the report. */
function startLoad(job: ChangesJob) {
  const script = fileURLToPath(new URL('./changes-worker.js', import.meta.url));
  const child = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  child.send(job);
  const message = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', (code) => reject(new Error(`the load ended with exit code ${code}`)));
    });
  return {
    started: message(),
    report: (span: Span) => child.send(span),
    finish: () => {
      child.send('end');
      return message() as Promise<ChangesReport>;
    },
    kill: () => child.kill('SIGKILL'),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
