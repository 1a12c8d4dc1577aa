/** The memory kind `threads`, the default: the arena is a SharedArrayBuffer. It needs no native code. */
import type { Arena, Parking } from './arena.js';

/** @param buffer  the arena of a cluster: one thread allocates it and posts it to the others */
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
