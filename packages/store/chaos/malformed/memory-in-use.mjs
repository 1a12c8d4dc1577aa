/**
 * Loaded into the gateway and the hosts: on SIGUSR2 it collects garbage, and writes what is left to a file: the heap and its buffers. What
 * the system has given to a process says less, because not all that is free is returned at once.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The engine frees buffers in a thread of its own, after a collection. Once two looks find the same, it has done so. */
const LOOK_MS = 500;
const SAME_BYTES = 1024 * 1024;

process.on('SIGUSR2', async () => {
  let before = Infinity;
  let now = usedBytes();
  while (now < before - SAME_BYTES) {
    globalThis.gc?.();
    await sleep(LOOK_MS);
    [before, now] = [now, usedBytes()];
  }
  const path = join(String(process.env.STORE_MEMORY_FOLDER), String(process.pid));
  writeFileSync(`${path}.new`, String(now));
  renameSync(`${path}.new`, path);
});

function usedBytes() {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
