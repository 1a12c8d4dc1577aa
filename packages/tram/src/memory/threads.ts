/** The memory kind `threads`, the default: the arena is a SharedArrayBuffer. It needs no native code. */
import type { Arena, Parking } from './arena.js';

/** The part of ES2024 that Node has. */
const { waitAsync } = Atomics as unknown as {
  waitAsync(
    words: Int32Array,
    at: number,
    expected: number,
  ): { readonly async: boolean; readonly value: Promise<unknown> };
};

/** @param buffer  the arena of a cluster: one thread allocates it and posts it to the others */
export function threadsArena(buffer: SharedArrayBuffer): Arena {
  const words = new Int32Array(buffer);
  const parking: Parking = {
    wait: (at, expected, timeoutUs) => {
      Atomics.wait(words, at, expected, timeoutUs / 1000);
    },
    waitAsync: (at, expected) => {
      const { async, value } = waitAsync(words, at, expected);
      return async ? value : undefined;
    },
    wake: (at) => {
      Atomics.notify(words, at);
    },
  };
  return { words, parking, close: () => undefined };
}
