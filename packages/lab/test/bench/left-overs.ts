/** Files and processes of measurements that this process has started, and the check that none is left. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect } from 'vitest';

export function benchFiles(): string[] {
  return readdirSync('/dev/shm').filter((name) => name.startsWith(`tram-bench-${process.pid}-`));
}

/** The processes that this one has started and that have not ended. */
export function children(): number[] {
  const list = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return list.split(' ').filter(Boolean).map(Number);
}

/** Every test of the calling file must remove its files and end its child processes. */
export function expectNoLeftOvers(): void {
  let childrenBefore: number[];

  beforeEach(() => {
    childrenBefore = children();
  });

  afterEach(() => {
    expect(benchFiles()).toEqual([]);
    expect(children()).toEqual(childrenBefore);
  });
}
