/** How much of the cores a process has used, as the kernel counts it. */
import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** User and system time of a process, from /proc. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
