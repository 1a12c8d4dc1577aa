/** One writer of `synced-writes.ts`. */
import { closeSync, fdatasyncSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { WriterJob, WriterReport } from './synced-writes.js';

/** The file has at least this size; the writer starts again at its beginning. */
const FILE_BYTES = 2 ** 25;
const WARM_UP_SECONDS_MAX = 0.2;

function run({ folder, file, bytesPerSync, seconds, unprepared }: WriterJob): WriterReport {
  const path = join(folder, file);
  const bytes = new Uint8Array(bytesPerSync);
  const slots = Math.max(1, Math.ceil(FILE_BYTES / bytesPerSync));
  const fd = openSync(path, 'wx');
  try {
    for (let slot = 0; slot < slots; slot++) writeSync(fd, bytes, 0, bytesPerSync);
    fsyncSync(fd);
    bytes.fill(0xa5);
    Atomics.sub(unprepared, 0, 1);
    Atomics.notify(unprepared, 0);
    for (let left = Atomics.load(unprepared, 0); left > 0; left = Atomics.load(unprepared, 0)) {
      Atomics.wait(unprepared, 0, left);
    }
    let slot = 0;
    const writeFor = (limitSeconds: number): WriterReport => {
      const latenciesNs: number[] = [];
      const startedMs = performance.now();
      let beforeMs = startedMs;
      do {
        writeSync(fd, bytes, 0, bytesPerSync, slot * bytesPerSync);
        fdatasyncSync(fd);
        slot = slot + 1 < slots ? slot + 1 : 0;
        const nowMs = performance.now();
        latenciesNs.push((nowMs - beforeMs) * 1e6);
        beforeMs = nowMs;
      } while (beforeMs - startedMs < limitSeconds * 1000);
      return {
        latenciesNs: Float64Array.from(latenciesNs),
        seconds: (beforeMs - startedMs) / 1000,
      };
    };
    writeFor(Math.min(seconds, WARM_UP_SECONDS_MAX));
    return writeFor(seconds);
  } finally {
    closeSync(fd);
    unlinkSync(path);
  }
}

parentPort!.postMessage(run(workerData as WriterJob));
