/**
 * All mutations, by name. Each puts an error into the protocol, to show that the lab's checks notice it:
 * `tram-lab sim --mutation H5`.
 */
import { CLIENTS } from './clients.js';
import { DEFERRED } from './deferred.js';
import { DELIVERING } from './delivering.js';
import { FEEDS } from './feeds.js';
import { GATES } from './gate.js';
import { HOLES } from './holes.js';
import { JOURNAL_FILES } from './journal-files.js';
import { LEADERSHIP } from './leadership.js';
import { MARKS } from './marks.js';
import type { Mutation } from './mutation.js';
import { OWED } from './owed-entries.js';
import { POWER_CUTS } from './power-cuts.js';
import { QUICK_STEPS } from './quick-steps.js';
import { DURABILITY } from './recoverable.js';
import { RESTORING } from './restoring.js';
import { SHARED_MEMORY } from './shared-memory.js';
import { TICKS } from './ticks.js';

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  ...HOLES,
  ...FEEDS,
  ...OWED,
  ...LEADERSHIP,
  ...DELIVERING,
  ...QUICK_STEPS,
  ...RESTORING,
  ...CLIENTS,
  ...SHARED_MEMORY,
  ...GATES,
  ...TICKS,
  ...DEFERRED,
  ...DURABILITY,
  ...MARKS,
  ...POWER_CUTS,
  ...JOURNAL_FILES,
};
