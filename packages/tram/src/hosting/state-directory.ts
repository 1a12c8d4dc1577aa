/**
 * The directory with the output of the hosts of a cluster of processes, and of a host that runs in the background on its
 * machine. Only the user can access it. Its name contains that of the cluster.
 *
 * The logs outlive the cluster: those of the last run are kept, and `tram down --force` removes them.
 */
import { lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TramError } from '../errors.js';

/** The name of a cluster of processes that was given none. */
export const DEFAULT_NAME = 'default';

export function stateDirectory(name: string): string {
  return join(tmpdir(), `tram-${name}-${process.getuid!()}`);
}

/** Other users may write to the directory above it, so an existing one may belong to another user. */
export function makeStateDirectory(name: string): string {
  const directory = stateDirectory(name);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== 'EEXIST') {
      throw new TramError('TRAM_SYSTEM', `can't create ${directory}: ${message}`, { cause });
    }
    if (!isOurs(directory)) {
      throw new TramError(
        'TRAM_SYSTEM',
        `can't use ${directory} for logs: it is not a directory that only you can access`,
        { hint: 'Remove it, choose another name, or set TMPDIR.' },
      );
    }
  }
  return directory;
}

/** Removes the logs of all runs. */
export function removeStateDirectory(name: string): void {
  const directory = stateDirectory(name);
  if (isOurs(directory)) rmSync(directory, { recursive: true });
}

const LOG = /^(host-.*|starter)\.log$/;

/**
 * At the end of a run: its logs become `host-N.log.1`, and replace those of the run before it. The caller makes sure that
 * no cluster of that name runs.
 */
export function archiveLogs(name: string): void {
  const directory = stateDirectory(name);
  if (!isOurs(directory)) return;
  for (const file of readdirSync(directory)) {
    if (LOG.test(file)) renameSync(join(directory, file), join(directory, `${file}.1`));
  }
}

/** Removes the logs of a run that has failed to start. Those of the run before it stay. */
export function removeLastLogs(name: string): void {
  const directory = stateDirectory(name);
  if (!isOurs(directory)) return;
  for (const file of readdirSync(directory)) if (LOG.test(file)) rmSync(join(directory, file));
  if (readdirSync(directory).length === 0) rmdirSync(directory);
}

/** The directory with the logs of a cluster, `undefined` if there are none. */
export function keptLogs(name: string): string | undefined {
  const directory = stateDirectory(name);
  return isOurs(directory) && readdirSync(directory).length > 0 ? directory : undefined;
}

function isOurs(directory: string): boolean {
  const file = lstatSync(directory, { throwIfNoEntry: false });
  return (
    file?.isDirectory() === true && file.uid === process.getuid!() && (file.mode & 0o077) === 0
  );
}
