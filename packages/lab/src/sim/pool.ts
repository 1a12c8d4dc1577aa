/**
 * Runs seeds on worker threads. Called by `tram-lab sim`.
 *
 * A thread runs one seed at a time. If it hangs or exits, that seed has failed, and a new thread continues with the next.
 */
import { setMaxListeners } from 'node:events';
import { Worker } from 'node:worker_threads';
import { withMutant } from './mutations/mutant.js';
import { failedOutcome, type SeedOutcome } from './outcome.js';
import type { Options } from './plan.js';

export interface Assignment {
  readonly from: number;
  readonly seeds: number;
  readonly options: Options;
  /** The names of mutations. If there are none, the protocol runs as it is. */
  readonly mutations: readonly string[];
  /** The number of threads. */
  readonly jobs: number;
  /** Whether outcomes carry verdict and history. */
  readonly wantsDetails: boolean;
  /** A seed that takes longer than this has failed. */
  readonly hangAfterMs: number;
  readonly signal: AbortSignal;
  onOutcome(outcome: SeedOutcome): void;
}

export type WorkerData = Pick<Assignment, 'options' | 'wantsDetails'>;

/**
 * Resolves when every seed has an outcome, or after an abort.
 * @throws {MutationError} if the mutations do not fit together
 */
export function runSeeds(assignment: Assignment): Promise<void> {
  return withMutant(assignment.mutations, (lab) =>
    runThreads(assignment, new URL('sim/worker.js', lab)),
  );
}

async function runThreads(assignment: Assignment, worker: URL): Promise<void> {
  const seeds = seedsOf(assignment);
  const threads = Math.min(assignment.jobs, assignment.seeds);
  setMaxListeners(threads + 1, assignment.signal);
  await Promise.all(Array.from({ length: threads }, () => runThread(assignment, worker, seeds)));
}

function* seedsOf({ from, seeds, signal }: Assignment): Generator<number, undefined> {
  for (let seed = from; seed < from + seeds && !signal.aborted; seed++) yield seed;
  return undefined;
}

async function runThread(
  assignment: Assignment,
  program: URL,
  seeds: Iterator<number>,
): Promise<void> {
  let worker: Worker | undefined;
  for (let next = seeds.next(); !next.done; next = seeds.next()) {
    worker ??= startWorker(assignment, program);
    const outcome = await runOne(assignment, worker, next.value);
    if (outcome === 'aborted') break;
    if (outcome.isThreadLost) {
      await worker.terminate();
      worker = undefined;
    }
    assignment.onOutcome(outcome.outcome);
  }
  await worker?.terminate();
}

function startWorker({ options, wantsDetails }: Assignment, program: URL): Worker {
  const workerData: WorkerData = { options, wantsDetails };
  return new Worker(program, { workerData });
}

interface Finished {
  readonly outcome: SeedOutcome;
  readonly isThreadLost: boolean;
}

function runOne(
  { hangAfterMs, signal }: Assignment,
  worker: Worker,
  seed: number,
): Promise<Finished | 'aborted'> {
  return new Promise((resolve) => {
    const finish = (finished: Finished | 'aborted'): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
      resolve(finished);
    };
    const lose = (kind: 'hang' | 'error', message: string): void =>
      finish({ outcome: failedOutcome(seed, kind, message), isThreadLost: true });
    const onMessage = (outcome: SeedOutcome): void => finish({ outcome, isThreadLost: false });
    const onError = (error: Error): void => lose('error', error.stack ?? error.message);
    const onExit = (code: number): void => lose('error', `the thread exited with code ${code}`);
    const onAbort = (): void => finish('aborted');
    const timer = setTimeout(
      () => lose('hang', `no result after ${hangAfterMs / 1000} s; the run was ended`),
      hangAfterMs,
    );
    signal.addEventListener('abort', onAbort);
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    worker.postMessage(seed);
  });
}
