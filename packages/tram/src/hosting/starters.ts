/** Starts and ends hosts, as worker threads or as processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { TramError } from '../errors.js';
import type { EraPlan } from '../journal/recovery-asks.js';
import type { ParticipantId } from '../memory/contract.js';
import type { HostFailure, HostReport } from './host.js';
import type { HostThreadData, LeftSnapshot } from './host-thread.js';

export interface HostEvents {
  onReport(report: HostReport): void;
  onExit(why: string): void;
}

export interface HostHandle {
  /**
   * Resolves once the host runs its replicas. A host that reports progress has more time.
   * @returns the highest session that its replicas know of
   * @throws TRAM_START_FAILED
   */
  ready(deadlineMs: number): Promise<number>;
  /** Ends the host at once. */
  kill(): Promise<void>;
  /**
   * Asks the host to end in an orderly way, so that its replicas leave their state for its next start. Resolves when it
   * has ended; by force, if that takes longer.
   */
  stop(timeoutMs: number): Promise<void>;
  /** Waits for the host to end, then ends it by force. */
  end(timeoutMs: number): Promise<void>;
  /** Lets the host outlive this process. Has no effect on threads. */
  detach(): void;
}

export interface HostStarter {
  /** @param plan  with a journal, in a recovery: how the era begins */
  start(host: number, resumes: boolean, events: HostEvents, plan?: EraPlan): HostHandle;
}

/**
 * The data path allocates nothing, so a small young generation is enough: the engine collects a service's garbage
 * early and quickly, and memory stays flat. (The engine's default is four times as large.)
 */
const SEMI_SPACE_MB = 4;

/** @param script  the host's entry point; another protocol has its own */
export function threadStarter(
  buffer: SharedArrayBuffer,
  script: URL = new URL('./host-thread.js', import.meta.url),
): HostStarter {
  /** By host, what its replicas left last. */
  const leftBy = new Map<number, Map<ParticipantId, Int32Array>>();
  return {
    start: (host, resumes, events, plan) => {
      const left = (resumes && leftBy.get(host)) || new Map<ParticipantId, Int32Array>();
      leftBy.set(host, left);
      const data: HostThreadData = { buffer, host, resumes, left, plan };
      const worker = new Worker(script, {
        workerData: data,
        resourceLimits: { maxYoungGenerationSizeMb: 3 * SEMI_SPACE_MB },
      });
      const terminate = (): Promise<void> => worker.terminate().then(() => undefined);
      const stop = (): void => worker.postMessage('stop');
      const handle = new Started(host, events, stop, terminate, () => undefined);
      worker.on('message', (message: HostReport | HostFailure | LeftSnapshot) => {
        if (message.what === 'left') left.set(message.participant, message.snapshot);
        else handle.onMessage(message);
      });
      worker.on('error', (error) => handle.onExit(describe(error)));
      worker.on('exit', (code) => handle.onExit(`exit code ${code}`));
      return handle;
    },
  };
}

/**
 * @param path  the path of the arena
 * @param logDirectory  each host logs to a file there. Without it, hosts print where this process does, so they need it.
 * @param url  the host's entry point; another protocol has its own
 */
export function processStarter(
  path: string,
  logDirectory?: string,
  url: URL = new URL('./host-process.js', import.meta.url),
): HostStarter {
  const script = fileURLToPath(url);
  return {
    start: (host, resumes, events, plan) => {
      const args = [path, String(host)];
      if (!resumes) args.push('--fresh');
      if (plan !== undefined) args.push('--plan');
      const { child, complaint } =
        logDirectory === undefined
          ? forkAttached(script, args)
          : forkLogged(script, args, logFile(logDirectory, host));
      const handle = new Started(
        host,
        events,
        () => child.kill('SIGTERM'),
        async () => {
          child.kill('SIGKILL');
        },
        () => {
          if (child.connected) child.disconnect();
          child.unref();
        },
      );
      // If it has ended already, its exit says more.
      if (plan !== undefined) child.send(plan, () => undefined);
      child.on('message', (report: HostReport | HostFailure) => handle.onMessage(report));
      child.on('error', (error) => handle.onExit(describe(error)));
      child.on('exit', (code, signal) => {
        const last = code === 0 ? '' : complaint();
        handle.onExit(signal ?? `exit code ${code}${last && `: ${last}`}`);
      });
      return handle;
    },
  };
}

/** Where the host's output goes. */
export function logFile(directory: string, host: number | string): string {
  return join(directory, `host-${host}.log`);
}

interface Forked {
  readonly child: ChildProcess;
  /** The end of its stderr. */
  readonly complaint: () => string;
}

const execArgv = [...process.execArgv, `--max-semi-space-size=${SEMI_SPACE_MB}`];

function forkAttached(script: string, args: readonly string[]): Forked {
  const child = fork(script, args, {
    execArgv,
    // A plan has arrays of words.
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  });
  let complaint = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-COMPLAINT_CHARACTERS_MAX);
    process.stderr.write(text);
  });
  return { child, complaint: () => complaint };
}

/** Starts the host in a session of its own, so that an interrupt at this terminal does not reach it. */
function forkLogged(script: string, args: readonly string[], log: string): Forked {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const descriptor = openSync(log, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
  try {
    const { size } = fstatSync(descriptor);
    const child = fork(script, [...args, '--log'], {
      detached: true,
      execArgv,
      serialization: 'advanced',
      stdio: ['ignore', descriptor, descriptor, 'ipc'],
    });
    const complaint = (): string => {
      // The process that has ended the cluster may have removed its logs.
      if (!existsSync(log)) return '';
      return readFileSync(log).subarray(size).toString('utf8').slice(-COMPLAINT_CHARACTERS_MAX);
    };
    return { child, complaint };
  } finally {
    closeSync(descriptor);
  }
}

const COMPLAINT_CHARACTERS_MAX = 4000;
/** A host that makes progress tells so at least once in this time, unless it delivers a single entry for so long. */
const PROGRESS_MS = 30_000;

class Started implements HostHandle {
  private isReady = false;
  private lastSession = 0;
  private progressMs = 0;
  private exit: string | undefined;
  private failure: HostFailure | undefined;
  private waiting: (() => void)[] = [];

  constructor(
    private readonly host: number,
    private readonly events: HostEvents,
    private readonly askToStop: () => void,
    private readonly terminate: () => Promise<void>,
    readonly detach: () => void,
  ) {}

  onMessage(message: HostReport | HostFailure): void {
    if (message.what === 'failed') this.failure = message;
    else this.events.onReport(message);
    if (message.what === 'ready') {
      this.isReady = true;
      this.lastSession = message.lastSession ?? 0;
    }
    if (message.what === 'progress') this.progressMs = Date.now();
    this.changed();
  }

  /** The first reason is the cause; later ones follow from it. */
  onExit(why: string): void {
    if (this.exit !== undefined) return;
    this.exit = why;
    this.changed();
    this.events.onExit(why);
  }

  private changed(): void {
    for (const tell of this.waiting.splice(0)) tell();
  }

  private change(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, timeoutMs));
      this.waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  async ready(timeLimitMs: number): Promise<number> {
    while (!this.isReady) {
      const deadlineMs = Math.max(timeLimitMs, this.progressMs + PROGRESS_MS);
      if (this.failure !== undefined) {
        throw errorOf(this.failure);
      }
      if (this.exit !== undefined) {
        throw new TramError(
          'TRAM_START_FAILED',
          `host ${this.host} ended while it started: ${this.exit}`,
        );
      }
      if (Date.now() >= deadlineMs) {
        throw new TramError(
          'TRAM_START_FAILED',
          `host ${this.host} did not start its replicas in time`,
        );
      }
      await this.change(deadlineMs - Date.now());
    }
    return this.lastSession;
  }

  async kill(): Promise<void> {
    await this.terminate();
    while (this.exit === undefined) await this.change(1000);
  }

  async stop(timeoutMs: number): Promise<void> {
    this.askToStop();
    await this.end(timeoutMs);
  }

  async end(timeoutMs: number): Promise<void> {
    const deadlineMs = Date.now() + timeoutMs;
    while (this.exit === undefined && Date.now() < deadlineMs) {
      await this.change(deadlineMs - Date.now());
    }
    if (this.exit === undefined) await this.kill();
  }
}

function errorOf({ code, message, hint, cause: told }: HostFailure): TramError {
  if (told === undefined) return new TramError(code, message, { hint });
  const cause = new Error(told.message);
  cause.name = told.name;
  cause.stack = told.stack;
  return new TramError(code, message, { hint, cause });
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
