/** How a process starts a cluster and runs it, besides what the cluster is. */
import { mkdirSync } from 'node:fs';
import type { ClusterConfig } from './config/config.js';
import { ConfigError } from './config/mistakes.js';
import type { ClusterOptions } from './config/options.js';
import { TramError } from './errors.js';
import type { Logger } from './hosting/own-hosts.js';
import { makeStateDirectory } from './hosting/state-directory.js';
import type { PageOptions, ResolvedPage } from './page/page-options.js';

export interface StartOptions extends ClusterOptions {
  /** Default: no logging. */
  logger?: Logger | undefined;
  /** How long the start may take. Default 30 seconds. */
  startTimeoutMs?: number | undefined;
  /** Aborts the start, and leaves nothing behind. */
  signal?: AbortSignal | undefined;
  /**
   * For processes: a directory in which each host writes its output to a file. Default: hosts inherit the output of this
   * process; those of a detached cluster write to `tram-NAME-UID` in the directory for temporary files.
   */
  logDirectory?: string | undefined;
  /** For processes with a `name`: the hosts outlive this process, until `close` or `tram down`. Default false. */
  detached?: boolean | undefined;
  /** Restart hosts that end unexpectedly, while this process runs. Default true. */
  restartHosts?: boolean | undefined;
  /** Serve the page that watches this cluster (docs/page.md). Its address is in `Cluster.page`. Default: no page. */
  page?: PageOptions | undefined;
}

/** @internal */
export interface ResumeOptions {
  readonly logger: Logger;
  readonly startTimeoutMs: number;
  readonly signal: AbortSignal;
  readonly logDirectory: string;
}

/** @internal How a cluster is run, besides what its memory describes. */
export interface StartSettings {
  readonly logger: Logger;
  readonly detached: boolean;
  readonly restartHosts: boolean;
  readonly logDirectory: string | undefined;
  readonly page?: ResolvedPage | undefined;
}

/** @internal */
export function requireDetachable({ memory, name }: ClusterConfig): void {
  if (memory === 'processes' && name !== undefined) return;
  throw new ConfigError(
    ['detached'],
    "detached: only clusters with memory: 'processes' and a name can outlive the process that starts them",
    { hint: 'Clients and commands find such a cluster by its name.' },
  );
}

/** @internal @throws TRAM_INVALID_ARGUMENT: otherwise the first report of a host would end the program */
export function requireLogger(logger: Logger): void {
  for (const method of ['info', 'warn', 'error'] as const) {
    if (typeof Object(logger)[method] === 'function') continue;
    throw new TramError('TRAM_INVALID_ARGUMENT', `the logger has no method "${method}"`, {
      hint: 'A logger needs the methods info, warn and error, each of which takes a string. `console` has them.',
    });
  }
}

/** @internal It exists from then on. @throws TRAM_SYSTEM */
export function logDirectoryOf(
  { logDirectory, detached }: StartSettings,
  name: string | undefined,
): string | undefined {
  if (logDirectory === undefined) return detached ? makeStateDirectory(name!) : undefined;
  try {
    mkdirSync(logDirectory, { recursive: true });
    return logDirectory;
  } catch (cause) {
    const { message } = cause as Error;
    throw new TramError('TRAM_SYSTEM', `can't use logDirectory: ${message}`, { cause });
  }
}
