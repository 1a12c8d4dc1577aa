/** How much of the cores a process has used, as the kernel counts it. */
import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** User and system time of a process, from /proc; 0 if it is not there. */
export function cpuSecondsOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name, which stands in brackets and may contain anything.
    const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}
