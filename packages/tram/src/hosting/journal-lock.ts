/**
 * The lock on the folder of a host's journal: at most one host, or one recovery, uses it at a time.
 *
 * The lock is a listening socket in the abstract namespace of Linux, named after the device and the inode of the folder.
 * Only one process can have it, and the kernel closes it when that process ends, however it ends. A thread's own socket is
 * closed with the thread. So there is no stale lock file to clean up, and no native code is needed, which hosts on threads
 * do without. Containers that share the folder must share the network namespace for it.
 */
import { statSync } from 'node:fs';
import { createServer } from 'node:net';
import { TramError } from '../errors.js';

/** @internal */
export interface JournalLock {
  release(): Promise<void>;
}

/** @internal @param folder  it exists @throws TRAM_JOURNAL_IN_USE, TRAM_NOT_SUPPORTED */
export async function lockJournal(folder: string): Promise<JournalLock> {
  if (process.platform !== 'linux') {
    throw new TramError(
      'TRAM_NOT_SUPPORTED',
      `journals need Linux, and this is ${process.platform}`,
    );
  }
  const { dev, ino } = statSync(folder, { bigint: true });
  const server = createServer((socket) => socket.destroy()).unref();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(cause.code === 'EADDRINUSE' ? inUse(folder, cause) : cause),
    );
    server.listen(`\0tram-journal-${dev}-${ino}`, resolve);
  });
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** @internal @throws TRAM_JOURNAL_IN_USE if a host, or a recovery, uses the journal now */
export async function requireUnlocked(folder: string): Promise<void> {
  const lock = await lockJournal(folder);
  await lock.release();
}

function inUse(folder: string, cause: unknown): TramError {
  return new TramError('TRAM_JOURNAL_IN_USE', `another host uses the journal ${folder}`, {
    hint: 'End the cluster that runs with this journal, or choose another directory for `journal`.',
    cause,
  });
}
