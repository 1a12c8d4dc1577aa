/** The CPU time of a process, as the kernel counts it. */
import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** User and system time of a process, from /proc; 0 if the process does not exist. */
export function cpuSecondsOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The fields after the name, which is in parentheses and may contain any character.
    const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}
