/**
 * Runs a cluster of processes from its start until somebody takes it down, and restarts hosts that end unexpectedly: the
 * work of `tram up --foreground`, and of the process that `tram up` leaves in the background.
 */
import { Cluster } from '../cluster.js';
import type { ClusterOptions } from '../config/options.js';
import { TramError } from '../errors.js';
import type { Logger } from '../hosting/own-hosts.js';
import { archiveLogs, makeStateDirectory, removeLastLogs } from '../hosting/state-directory.js';
import { pauseUnless } from './interruption.js';

const LOOK_MS = 100;

/**
 * Returns `undefined` if it was interrupted.
 * @param resumes  takes over the cluster of that name, which stays as it was if that fails. Otherwise it starts a new one,
 *   and leaves nothing behind if it fails.
 */
export async function startCluster(
  options: ClusterOptions,
  resumes: boolean,
  startTimeoutMs: number,
  signal: AbortSignal,
  logger: Logger,
): Promise<Cluster | undefined> {
  const name = options.name!;
  const logDirectory = makeStateDirectory(name);
  try {
    const how = { logDirectory, startTimeoutMs, signal, logger };
    if (resumes) return await Cluster.resume(name, how);
    return await Cluster.start({ ...options, detached: true, ...how });
  } catch (error) {
    const isOthers = error instanceof TramError && error.code === 'TRAM_EXISTS';
    if (!isOthers && !resumes) removeLastLogs(name);
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
  if (signal.aborted) archiveLogs(name);
}
