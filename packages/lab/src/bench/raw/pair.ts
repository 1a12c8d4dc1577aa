/**
 * Two sides that share only memory, to measure the limits of the machine. Used by `ring.ts`, `ping-pong.ts` and `copy-only`. Both sides run
 * `pair-worker.ts`, as threads of this process or as processes that map a file.
 *
 *   this process                       each side (pair-worker.ts)
 *   start both                  →      map the memory
 *                               ←      ready
 *   remove the file, if any
 *   go, once both are ready     →      run the job to its end
 *                               ←      done, with its result; or failed
 *
 * Both sides always end: after their job, when the other one fails (this process ends them), and on their own when the other
 * side makes no progress for `STALL_LIMIT_MS`. The file is removed as soon as both have mapped it.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { ARENA, ARENA_MAGIC, ARENA_VERSION } from 'tram-multicast/internal/memory/arena.js';
import {
  arenaPath,
  createArenaFile,
  openArenaFile,
  removeArenaFile,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import type { CopyJob } from './copy-only/measure.js';
import type { PingPongJob } from './ping-pong.js';
import type { RingJob } from './ring.js';

export type RawMemory = 'threads' | 'processes';
export type RawJob = RingJob | PingPongJob | CopyJob;

/** The start parameters of a side: a job, and the memory or the file to map. */
export interface Assignment {
  readonly job: RawJob;
  readonly memory: SharedArrayBuffer | string;
}

/** A message of a side. */
export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly reason: string };

const GO = 'go';

/** Words of a cache line, and of the pair of lines that the processor fetches together. */
export const LINE_WORDS = 16;
export const LINE_PAIR_WORDS = 2 * LINE_WORDS;

/** Mapped files begin with the header of an arena, so that `openArenaFile` accepts them. */
const HEADER_WORDS = 64;

/** After so long without a change, a side considers the other one dead. */
const STALL_LIMIT_MS = 5000;
/** After so many polls (some 50 µs) without a change, the other side is not scheduled. */
const POLLS_MAX = 1 << 15;
/** The same for turns, which take longer than polls. */
const IDLE_TURNS_MAX = 1 << 12;
const NAP_MS = 0.05;

interface Side {
  readonly ready: Promise<void>;
  /** Its result, once it has ended. */
  readonly done: Promise<unknown>;
  go(): void;
  /** Resolves when the thread or process has ended. */
  end(): Promise<void>;
}

/** Runs two jobs on the same zeroed memory. @returns the result of the first */
export async function runPair(
  memory: RawMemory,
  words: number,
  jobs: readonly [RawJob, RawJob],
): Promise<unknown> {
  const path = memory === 'processes' ? createFile(words) : undefined;
  const shared = path ?? new SharedArrayBuffer(4 * (HEADER_WORDS + words));
  const sides: Side[] = [];
  try {
    for (const job of jobs) sides.push(startSide({ job, memory: shared }));
    await Promise.all(sides.map((side) => side.ready));
    if (path !== undefined) removeArenaFile(path);
    for (const side of sides) side.go();
    const [result] = await Promise.all(sides.map((side) => side.done));
    return result;
  } finally {
    if (path !== undefined) removeArenaFile(path);
    await Promise.all(sides.map((side) => side.end()));
  }
}

/** Called by a side. @returns the shared words */
export function mapWords(memory: SharedArrayBuffer | string): Int32Array {
  const words = typeof memory === 'string' ? openArenaFile(memory).words : new Int32Array(memory);
  return words.subarray(HEADER_WORDS);
}

/**
 * Called by a side: spins until `words[at]` differs from `old`.
 * @returns the new value
 * @throws if it does not change, because the other side has died
 */
export function awaitChange(words: Int32Array, at: number, old: number): number {
  for (let polls = 0; polls < POLLS_MAX; polls++) {
    const value = Atomics.load(words, at);
    if (value !== old) return value;
  }
  return napUntilChange(words, at, old);
}

function napUntilChange(words: Int32Array, at: number, old: number): number {
  const deadlineMs = performance.now() + STALL_LIMIT_MS;
  for (;;) {
    napBefore(deadlineMs);
    const value = Atomics.load(words, at);
    if (value !== old) return value;
  }
}

const neverNotified = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps between polls: on a busy machine the other side may need the core that this one spins on. */
function napBefore(deadlineMs: number): void {
  if (performance.now() > deadlineMs) {
    throw new Error(`the other side has made no progress for ${STALL_LIMIT_MS} ms`);
  }
  Atomics.wait(neverNotified, 0, 0, NAP_MS);
}

/** For a side that works in turns: spins while there is work now and then, naps if the other side is not scheduled. */
export class TurnWaiter {
  private idleTurns = 0;
  private deadlineMs = 0;

  /** @throws if no turn has found work for long, because the other side has died */
  note(work: number): void {
    if (work > 0) {
      this.idleTurns = 0;
      return;
    }
    if (++this.idleTurns < IDLE_TURNS_MAX) return;
    if (this.idleTurns === IDLE_TURNS_MAX) this.deadlineMs = performance.now() + STALL_LIMIT_MS;
    napBefore(this.deadlineMs);
  }
}

function createFile(words: number): string {
  const path = arenaPath(`bench-${process.pid}-${randomBytes(4).toString('hex')}`);
  const arena = createArenaFile(path, HEADER_WORDS + words);
  arena.words[ARENA.version] = ARENA_VERSION;
  arena.words[ARENA.words] = arena.words.length;
  Atomics.store(arena.words, ARENA.magic, ARENA_MAGIC);
  arena.close();
  return path;
}

const WORKER = new URL('./pair-worker.js', import.meta.url);

function startSide(assignment: Assignment): Side {
  return typeof assignment.memory === 'string' ? startProcess(assignment) : startThread(assignment);
}

function startThread(assignment: Assignment): Side {
  const worker = new Worker(WORKER, { workerData: assignment, execArgv: [] });
  const conversation = new Conversation();
  worker.on('message', (report: Report) => conversation.hear(report));
  worker.on('error', (error) => conversation.fail(error));
  worker.on('exit', (code) => conversation.leave(`code ${code}`));
  return {
    ready: conversation.ready,
    done: conversation.done,
    go: () => worker.postMessage(GO),
    end: async () => {
      await worker.terminate();
    },
  };
}

function startProcess(assignment: Assignment): Side {
  const child = fork(fileURLToPath(WORKER), [JSON.stringify(assignment)], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const conversation = new Conversation();
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    if (child.pid === undefined) resolve();
  });
  child.on('message', (report: Report) => conversation.hear(report));
  child.on('error', (error) => conversation.fail(error));
  child.on('exit', (code, signal) => conversation.leave(signal ?? `code ${code}`));
  return {
    ready: conversation.ready,
    done: conversation.done,
    go: () => child.send(GO),
    end: () => {
      child.kill('SIGKILL');
      return exited;
    },
  };
}

/** The reports of one side, as promises. */
class Conversation {
  readonly ready: Promise<void>;
  readonly done: Promise<unknown>;
  /** No effect once the promise is settled. */
  private markReady!: () => void;
  private markDone!: (result: unknown) => void;
  fail!: (error: Error) => void;

  constructor() {
    let failReady: (error: Error) => void;
    this.ready = new Promise((resolve, reject) => {
      this.markReady = resolve;
      failReady = reject;
    });
    this.done = new Promise((resolve, reject) => {
      this.markDone = resolve;
      this.fail = (error) => {
        failReady(error);
        reject(error);
      };
    });
    // The caller may have seen the failure through the other promise.
    this.ready.catch(() => undefined);
    this.done.catch(() => undefined);
  }

  hear(report: Report): void {
    if (report.kind === 'ready') this.markReady();
    else if (report.kind === 'done') this.markDone(report.result);
    else this.fail(new Error(`a side of the raw benchmark failed: ${report.reason}`));
  }

  leave(how: string): void {
    this.fail(new Error(`a side of the raw benchmark ended before its result: ${how}`));
  }
}
