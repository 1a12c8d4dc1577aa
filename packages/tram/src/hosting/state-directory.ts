/**
 * The directory with the output of the hosts of a cluster of processes, and of a host that runs in the background on its
 * machine. Only the user can access it. Its name contains that of the cluster.
 */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
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

/** @returns whether there was one */
export function removeStateDirectory(name: string): boolean {
  const directory = stateDirectory(name);
  if (!isOurs(directory)) return false;
  rmSync(directory, { recursive: true });
  return true;
}

function isOurs(directory: string): boolean {
  const file = lstatSync(directory, { throwIfNoEntry: false });
  return (
    file?.isDirectory() === true && file.uid === process.getuid!() && (file.mode & 0o077) === 0
  );
}
