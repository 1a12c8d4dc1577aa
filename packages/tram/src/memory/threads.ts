/** Threads: the arena is a SharedArrayBuffer. The embedded default; no native code. */
import type { Arena, Parking } from './arena.js';

/** @param buffer  the arena of a cluster, as one thread made it and posted it to the others */
export function threadsArena(buffer: SharedArrayBuffer): Arena {
  const words = new Int32Array(buffer);
  const parking: Parking = {
    wait: (at, expected, timeoutUs) => {
      Atomics.wait(words, at, expected, timeoutUs / 1000);
    },
    wake: (at) => {
      Atomics.notify(words, at);
    },
  };
  return { words, parking, close: () => undefined };
}
