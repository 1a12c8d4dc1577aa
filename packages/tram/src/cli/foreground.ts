/**
 * Runs a cluster of processes from its start until somebody takes it down, and restarts hosts that end unexpectedly: the
 * work of `tram up --foreground`, and of the process that `tram up` leaves in the background.
 */
import { Cluster } from '../cluster.js';
import type { ClusterOptions } from '../config/options.js';
import { TramError } from '../errors.js';
import type { Logger } from '../hosting/own-hosts.js';
import { makeStateDirectory, removeStateDirectory } from '../hosting/state-directory.js';
import { pauseUnless } from './interruption.js';

const LOOK_MS = 100;

/** Leaves nothing behind if it fails. Returns `undefined` if it was interrupted. */
export async function startCluster(
  options: ClusterOptions,
  startTimeoutMs: number,
  signal: AbortSignal,
  logger: Logger,
): Promise<Cluster | undefined> {
  const name = options.name!;
  const logDirectory = makeStateDirectory(name);
  try {
    return await Cluster.start({
      ...options,
      detached: true,
      logDirectory,
      startTimeoutMs,
      signal,
      logger,
    });
  } catch (error) {
    const isOthers = error instanceof TramError && error.code === 'TRAM_EXISTS';
    if (!isOthers) removeStateDirectory(name);
    if (!signal.aborted) throw error;
    return undefined;
  }
}

/** Returns after a signal, or when another process has taken the cluster down. */
export async function stay(cluster: Cluster, name: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && cluster.status().state !== 'closing') {
    await pauseUnless(signal, LOOK_MS);
  }
  await cluster.close();
  if (signal.aborted) removeStateDirectory(name);
}
