/** Files and processes that a raw measurement of this process has not removed. */
import { readdirSync, readFileSync } from 'node:fs';

export function benchFiles(): string[] {
  return readdirSync('/dev/shm').filter((name) => name.startsWith(`tram-bench-${process.pid}-`));
}

/** The processes that this one has started and that have not ended. */
export function children(): number[] {
  const list = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return list.split(' ').filter(Boolean).map(Number);
}
