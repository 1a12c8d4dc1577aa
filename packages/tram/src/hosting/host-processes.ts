/**
 * Finds the processes that run the hosts of a cluster in /proc, for the commands that signal them. The pid that a
 * host wrote into the arena may belong to another program by now.
 */
import { readdirSync, readFileSync } from 'node:fs';

export interface HostProcess {
  readonly pid: number;
  readonly host: number;
  /** Stopped by SIGSTOP: it does not run, but has not ended. */
  readonly isStopped: boolean;
}

const SCRIPT = /\/host-process\.js$/;

/** @param path  the path of the arena, as it was passed to the hosts */
export function hostProcesses(path: string): HostProcess[] {
  const found: HostProcess[] = [];
  for (const entry of readdirSync('/proc')) {
    const host = /^\d+$/.test(entry) ? hostOf(entry, path) : undefined;
    if (host === undefined) continue;
    found.push({ pid: Number(entry), host, isStopped: stateOf(entry) === 'T' });
  }
  return found.sort((one, other) => one.host - other.host);
}

function hostOf(entry: string, path: string): number | undefined {
  const words = read(`/proc/${entry}/cmdline`).split('\0');
  const script = words.findIndex((word) => SCRIPT.test(word));
  if (script < 0 || words[script + 1] !== path) return undefined;
  // A zombie has ended.
  return 'ZX'.includes(stateOf(entry)) ? undefined : Number(words[script + 2]);
}

/** The state letter of the kernel; X if there is no such process. */
function stateOf(entry: string): string {
  const status = read(`/proc/${entry}/stat`);
  // The state follows the name, which is in parentheses and may contain anything.
  return status[status.lastIndexOf(')') + 2] ?? 'X';
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It has ended meanwhile, or belongs to another user.
    return '';
  }
}
