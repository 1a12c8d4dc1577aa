/**
 * The process that `tram up` leaves in the background: `node starter-process.js ARENA`. It starts the hosts, restarts those
 * that end unexpectedly, and ends with the cluster. It gets its orders from `tram up` and reports to it once; after that it
 * needs no other process. The path of the arena is there for those that look for it (`hosting/host-processes.ts`).
 */
import { once } from 'node:events';
import type { ClusterOptions } from '../config/options.js';
import { type ErrorCode, TramError } from '../errors.js';
import type { Logger } from '../hosting/own-hosts.js';
import { startCluster, stay } from './foreground.js';
import { catchInterruption } from './interruption.js';

export interface StarterOrders {
  readonly options: ClusterOptions;
  /** Take over the cluster of that name. */
  readonly resumes: boolean;
  readonly timeoutMs: number;
}

export type StarterReport =
  | { readonly what: 'up' }
  | { readonly what: 'interrupted' }
  | {
      readonly what: 'failed';
      readonly code: ErrorCode | undefined;
      readonly message: string;
      readonly hint: string | undefined;
    };

const { signal } = catchInterruption();
const [orders] = (await once(process, 'message')) as [StarterOrders];
const { options, resumes, timeoutMs } = orders;
// If `tram up` is killed before the cluster is up, no process would know of it.
const abandoned = new AbortController();
const abandon = (): void => abandoned.abort();
process.once('disconnect', abandon);
try {
  const either = AbortSignal.any([signal, abandoned.signal]);
  const cluster = await startCluster(options, resumes, timeoutMs, either, logger());
  if (cluster === undefined) {
    await report({ what: 'interrupted' });
    process.exit(0);
  }
  process.off('disconnect', abandon);
  await report({ what: 'up' });
  await stay(cluster, options.name!, signal);
  process.exit(0);
} catch (error) {
  await report(failureOf(error));
  throw error;
}

function logger(): Logger {
  const log = (message: string): void =>
    console.error(`${new Date().toISOString()} starter: ${message}`);
  return { info: log, warn: log, error: log };
}

function failureOf(error: unknown): StarterReport {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof TramError)) {
    return { what: 'failed', code: undefined, message, hint: undefined };
  }
  return { what: 'failed', code: error.code, message, hint: error.hint };
}

function report(message: StarterReport): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send!(message, () => resolve());
    else resolve();
  });
}
