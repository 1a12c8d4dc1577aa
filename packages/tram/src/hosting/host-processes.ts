/**
 * The operating-system processes that run the hosts of a cluster, as the kernel knows them. For the commands
 * that signal them: the number that a host left on the board may by now be that of a stranger.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface HostProcess {
  readonly pid: number;
  readonly host: number;
  /** By SIGSTOP: it does not run, and has not ended. */
  readonly isStopped: boolean;
}

const SCRIPT = /\/host-process\.js$/;

/** @param path  of the arena, as the hosts were given it */
export function hostProcesses(path: string): HostProcess[] {
  const found: HostProcess[] = [];
  for (const entry of readdirSync('/proc')) {
    const host = /^\d+$/.test(entry) ? hostOf(entry, path) : undefined;
    if (host === undefined) continue;
    found.push({ pid: Number(entry), host, isStopped: stateOf(entry) === 'T' });
  }
  return found.sort((one, other) => one.host - other.host);
}

/** Has this process the file open? Then a number found in the file is that of a process which uses it. */
export function hasOpen(pid: number, path: string): boolean {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file === undefined) return false;
  const descriptors = `/proc/${pid}/fd`;
  try {
    return readdirSync(descriptors).some((descriptor) => {
      const open = statSync(join(descriptors, descriptor), { throwIfNoEntry: false });
      return open?.ino === file.ino && open.dev === file.dev;
    });
  } catch {
    // It has ended, or is another user's.
    return false;
  }
}

/** By SIGSTOP. */
export function isStopped(pid: number): boolean {
  return stateOf(String(pid)) === 'T';
}

function hostOf(entry: string, path: string): number | undefined {
  const words = read(`/proc/${entry}/cmdline`).split('\0');
  const script = words.findIndex((word) => SCRIPT.test(word));
  if (script < 0 || words[script + 1] !== path) return undefined;
  // A process that has ended, and that its parent has not yet asked about, is none.
  return 'ZX'.includes(stateOf(entry)) ? undefined : Number(words[script + 2]);
}

/** One letter; X if there is no such process. */
function stateOf(entry: string): string {
  const status = read(`/proc/${entry}/stat`);
  // After the name, which stands in brackets and may contain anything.
  return status[status.lastIndexOf(')') + 2] ?? 'X';
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It has ended meanwhile, or is another user's.
    return '';
  }
}
