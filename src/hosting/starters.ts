/** Starting hosts and ending them: as worker threads, or as processes. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { TramError } from '../errors.js';
import type { HostReport } from './host.js';
import type { HostThreadData } from './host-thread.js';

export interface HostEvents {
  onReport(report: HostReport): void;
  onExit(why: string): void;
}

export interface HostHandle {
  /** Resolves once it runs its replicas. @throws TRAM_START_FAILED */
  ready(deadlineMs: number): Promise<void>;
  /** At once, whatever it is doing. */
  kill(): Promise<void>;
  /** Let it end by itself, then by force. */
  end(timeoutMs: number): Promise<void>;
}

export interface HostStarter {
  start(host: number, resumes: boolean, events: HostEvents): HostHandle;
}

export function threadStarter(buffer: SharedArrayBuffer): HostStarter {
  return {
    start: (host, resumes, events) => {
      const data: HostThreadData = { buffer, host, resumes };
      const worker = new Worker(new URL('./host-thread.js', import.meta.url), { workerData: data });
      const handle = new Started(host, events, () => worker.terminate().then(() => undefined));
      worker.on('message', (report: HostReport) => handle.onReport(report));
      worker.on('error', (error) => handle.onExit(describe(error)));
      worker.on('exit', (code) => handle.onExit(`exit code ${code}`));
      return handle;
    },
  };
}

export function processStarter(path: string): HostStarter {
  return {
    start: (host, resumes, events) => {
      const script = fileURLToPath(new URL('./host-process.js', import.meta.url));
      const args = [path, String(host), ...(resumes ? [] : ['--fresh'])];
      const child = fork(script, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
      let complaint = '';
      child.stderr!.setEncoding('utf8').on('data', (text: string) => {
        complaint = (complaint + text).slice(-COMPLAINT_CHARACTERS_MAX);
        process.stderr.write(text);
      });
      const handle = new Started(host, events, async () => {
        child.kill('SIGKILL');
      });
      child.on('message', (report: HostReport) => handle.onReport(report));
      child.on('error', (error) => handle.onExit(describe(error)));
      child.on('exit', (code, signal) =>
        handle.onExit(signal ?? `exit code ${code}${complaint && `: ${complaint}`}`),
      );
      return handle;
    },
  };
}

const COMPLAINT_CHARACTERS_MAX = 4000;

class Started implements HostHandle {
  private isReady = false;
  private exit: string | undefined;
  private waiting: (() => void)[] = [];

  constructor(
    private readonly host: number,
    private readonly events: HostEvents,
    private readonly terminate: () => Promise<void>,
  ) {}

  onReport(report: HostReport): void {
    if (report.what === 'ready') {
      this.isReady = true;
      this.changed();
    }
    this.events.onReport(report);
  }

  /** The first reason is the real one. */
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

  async ready(deadlineMs: number): Promise<void> {
    while (!this.isReady) {
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
  }

  async kill(): Promise<void> {
    await this.terminate();
    while (this.exit === undefined) await this.change(1000);
  }

  async end(timeoutMs: number): Promise<void> {
    const deadlineMs = Date.now() + timeoutMs;
    while (this.exit === undefined && Date.now() < deadlineMs) {
      await this.change(deadlineMs - Date.now());
    }
    if (this.exit === undefined) await this.kill();
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
