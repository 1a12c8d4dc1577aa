/** What an operator is told when the disk of a journal fails. */
import { TramError } from '../errors.js';

const FULL: readonly string[] = ['ENOSPC', 'EDQUOT'];
const DENIED: readonly string[] = ['EACCES', 'EPERM', 'EROFS'];

/** @internal The error that ends a host because its journal failed. */
export function journalFailure(folder: string, cause: unknown): TramError {
  if (cause instanceof TramError) return cause;
  const { code = '', message } = cause as NodeJS.ErrnoException;
  return new TramError('TRAM_JOURNAL_FAILED', `the journal ${folder} failed: ${message}`, {
    hint: `${remedyFor(code)} What was durable is still there.`,
    cause,
  });
}

/** @internal The same if the system has refused something; any other error as it is. */
export function systemFailure(folder: string, error: unknown): unknown {
  const { syscall } = error as NodeJS.ErrnoException;
  return syscall === undefined ? error : journalFailure(folder, error);
}

function remedyFor(code: string): string {
  if (FULL.includes(code)) {
    return 'Free space on the disk, or enlarge it, and start the host again.';
  }
  if (DENIED.includes(code)) {
    return 'Make the directory writable for the user of the host, and start the host again.';
  }
  return 'Check the disk, and start the host again: it goes on with what the disk has. If the disk is broken, replace it first.';
}
