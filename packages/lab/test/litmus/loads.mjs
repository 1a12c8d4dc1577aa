/**
 * What the litmus tests race, and whose compiled code they look at: each function loads or stores two words, the flag and
 * the data, at offsets that are easy to find in a listing. A writer counts both down, the data first. So a reader that
 * loads the flag first never finds it below the data.
 */
import { readFence } from '../../../tram/dist/memory/shared.js';

/** In bytes. The functions name the places as numbers, so that they are part of the instructions. */
export const FLAG_BYTES = 0x100;
export const DATA_BYTES = 0x200;

/** As a memory stores the words of a post: the one that announces the others last. */
export function publishes(words, value) {
  words[0x80] = value;
  words[0x40] = value;
}

/** As a reader loads a word that was posted after others. */
export function acquires(words) {
  const flag = Atomics.load(words, 0x40);
  const data = words[0x80];
  return flag < data;
}

/** As a reader makes sure that what it has loaded is still current. */
export function fences(words) {
  const flag = words[0x40];
  readFence();
  const data = words[0x80];
  return flag < data;
}

/** The negative control: V8 is free to load the data first, and does so on x64, where it compares the flag in memory. */
export function plain(words) {
  const flag = words[0x40];
  const data = words[0x80];
  return flag < data;
}
