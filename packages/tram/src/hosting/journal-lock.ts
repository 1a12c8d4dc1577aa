/**
 * Keeps two hosts from using one journal: a file in its folder names the process that uses it. The lock of a process that has
 * ended does not count, even if another process has its number by now.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TramError } from '../errors.js';

export interface JournalLock {
  release(): void;
}

const FILE = 'lock';

/** @throws TRAM_HOST_RUNNING if a process uses the journal */
export function lockJournal(folder: string): JournalLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE);
  const own = join(folder, `${FILE}.${process.pid}`);
  const text = describeProcess(process.pid);
  for (;;) {
    writeFileSync(own, text, { mode: 0o600 });
    try {
      // It appears with its contents, and only one process can create it.
      linkSync(own, path);
      return { release: () => rmSync(path, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      const holder = holderOf(path);
      if (holder !== undefined) throw inUse(folder, holder);
      removeStale(path, own);
    } finally {
      rmSync(own, { force: true });
    }
  }
}

/** @throws TRAM_HOST_RUNNING if a process uses the journal */
export function requireUnlocked(folder: string): void {
  const holder = holderOf(join(folder, FILE));
  if (holder !== undefined) throw inUse(folder, holder);
}

/** The process that holds the lock; undefined if none does. */
function holderOf(path: string): number | undefined {
  const text = contentsOf(path);
  if (text === undefined) return undefined;
  const pid = Number.parseInt(text, 10);
  return isRunning(pid) && describeProcess(pid) === text ? pid : undefined;
}

/** Of two processes that find the same stale lock, one moves it away. */
function removeStale(path: string, own: string): void {
  try {
    renameSync(path, own);
    // Another one may have been faster, and this may be its new lock: back with it.
    if (holderOf(own) !== undefined) linkSync(own, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'EEXIST') throw error;
  }
}

/** A number, and when the process started, so that it is told from an earlier one of that number. */
function describeProcess(pid: number): string {
  // The command in parentheses may contain anything.
  const stat = contentsOf(`/proc/${pid}/stat`)?.replace(/^.*\)/s, '').split(' ');
  const STARTED = 20;
  return `${pid} ${stat?.[STARTED] ?? 'unknown'}\n`;
}

function contentsOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It runs, and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function inUse(folder: string, pid: number): TramError {
  return new TramError(
    'TRAM_HOST_RUNNING',
    `the journal in ${folder} is being used by process ${pid}`,
    { hint: 'End the cluster that uses it first, or choose another directory.' },
  );
}
