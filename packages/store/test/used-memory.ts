/** What this process uses, without garbage. */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** The engine frees buffers in a thread of its own, after a collection. Once two looks find the same, it has done so. */
const LOOK_MS = 100;

/** @param of  what to look at */
export async function usedBytes(of: (usage: NodeJS.MemoryUsage) => number): Promise<number> {
  let before = Number.POSITIVE_INFINITY;
  let now = of(process.memoryUsage());
  while (now < before) {
    collectGarbage();
    await sleep(LOOK_MS);
    [before, now] = [now, of(process.memoryUsage())];
  }
  return now;
}
