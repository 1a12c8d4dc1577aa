/**
 * All mutations, by name. Each puts an error into the protocol, to show that the lab's checks notice it:
 * `tram-lab sim --mutation H5`.
 */
import { DEFERRED } from './deferred.js';
import { FURTHER } from './further.js';
import { GATES } from './gate.js';
import { HOLES } from './holes.js';
import type { Mutation } from './mutation.js';
import { TICKS } from './ticks.js';

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  ...HOLES,
  ...FURTHER,
  ...GATES,
  ...TICKS,
  ...DEFERRED,
};
