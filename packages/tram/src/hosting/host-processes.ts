/**
 * Finds the processes of a cluster in /proc, for those that signal them and have not started them. The pid that a
 * host wrote into the arena may belong to another program by now.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface HostProcess {
  readonly pid: number;
  readonly host: number;
  /** Stopped by SIGSTOP: it does not run, but has not ended. */
  readonly isStopped: boolean;
}

const HOST_SCRIPT = /\/host-process\.js$/;
/** What `tram up` leaves in the background to start the hosts and restart them. */
const STARTER_SCRIPT = /\/starter-process\.js$/;

/** @param path  the path of the arena, as it was passed to the hosts */
export function hostProcesses(path: string): HostProcess[] {
  return processesOf(HOST_SCRIPT, path)
    .map(({ pid, word }) => ({ pid, host: Number(word), isStopped: isStopped(pid) }))
    .sort((one, other) => one.host - other.host);
}

/** The starters of `tram up` in the background; not a program of the user that has started a cluster. */
export function starterProcesses(path: string): number[] {
  return processesOf(STARTER_SCRIPT, path).map(({ pid }) => pid);
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

/** The processes that run this script on an arena, with the word that follows the path of the arena. */
function processesOf(script: RegExp, path: string): { pid: number; word: string | undefined }[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    const words = read(`/proc/${entry}/cmdline`).split('\0');
    const at = words.findIndex((word) => script.test(word));
    if (at < 0 || words[at + 1] !== path) return [];
    // A zombie has ended.
    return 'ZX'.includes(stateOf(entry)) ? [] : [{ pid: Number(entry), word: words[at + 2] }];
  });
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
