/**
 * What the judge sees of the holes. A run that fails has recorded what it did, so its history is violated wherever the
 * hole breaks a property. For each hole, this file says in which run that is, or why it breaks none. A test runs all of
 * them, and the page shows them.
 *
 * Some holes break nothing before an assertion of the protocol stops the run. They are shown without assertions.
 */
import type { Property } from 'tram-multicast/internal/check/properties.js';
import type { Options } from '../plan.js';
import { ASSERT } from './files.js';
import { HOLES } from './holes.js';
import type { BySeed, Edit } from './mutation.js';

/** Assertions that never fire, so that a run goes on to the harm that they prevent. */
export const WITHOUT_ASSERTIONS: Edit = {
  file: ASSERT,
  find: 'if (!condition)',
  replace: 'if (false)',
};

export interface Shown {
  readonly property: Property;
  readonly seed: number;
  readonly options: Options;
  /** Without assertions, because one stops the run before any harm is done? */
  readonly isUnasserted?: true;
}

/** Most holes show in small runs. */
const SMALL: Options = { groups: 1, replicas: 3, messages: 150 };

/** Members that are killed while several of them want to lead. */
const RIVALRY: Options = {
  ...SMALL,
  messages: 300,
  ticks: false,
  memory: 'simulated',
  faults: ['kill', 'pause', 'suspicion', 'rivals'],
};

const bestRunsOf = (name: string): Options => (HOLES[name].caughtBy as BySeed).options!;

export const VIOLATIONS: Readonly<Record<string, Shown>> = {
  H1: { property: 'uniform-prefix-order', seed: 1, options: SMALL },
  H2: { property: 'uniform-prefix-order', seed: 12, options: SMALL },
  H4: { property: 'uniform-prefix-order', seed: 69, options: { ...SMALL, groups: 2 } },
  H6: { property: 'uniform-integrity', seed: 2, options: SMALL, isUnasserted: true },
  H11: {
    property: 'uniform-prefix-order',
    seed: 188,
    options: { ...SMALL, messages: 300, faults: ['suspicion', 'rivals', 'pause', 'slow-link'] },
  },
  H12: { property: 'uniform-prefix-order', seed: 32, options: SMALL },
  H17: {
    property: 'uniform-prefix-order',
    seed: 79,
    options: { ...RIVALRY, messages: 60 },
    isUnasserted: true,
  },
  H19: { property: 'uniform-integrity', seed: 1, options: SMALL, isUnasserted: true },
  H20: { property: 'uniform-prefix-order', seed: 104, options: bestRunsOf('H20') },
  H21: { property: 'uniform-prefix-order', seed: 63, options: bestRunsOf('H21') },
  H22: {
    property: 'uniform-prefix-order',
    seed: 633,
    options: bestRunsOf('H22'),
    isUnasserted: true,
  },
  H23: {
    property: 'uniform-prefix-order',
    seed: 432,
    options: bestRunsOf('H23'),
    isUnasserted: true,
  },
  H24: { property: 'uniform-prefix-order', seed: 29, options: bestRunsOf('H24') },
  H26: {
    property: 'fifo-order',
    seed: 152,
    options: {
      ...SMALL,
      groups: 2,
      messages: 300,
      faults: ['suspicion', 'rivals', 'pause', 'tiny-rings', 'crash', 'slow-link'],
    },
  },
  H27: { property: 'uniform-prefix-order', seed: 23, options: SMALL, isUnasserted: true },
  H29: {
    property: 'uniform-prefix-order',
    seed: 3663,
    options: RIVALRY,
    isUnasserted: true,
  },
  H30: {
    property: 'uniform-prefix-order',
    seed: 3663,
    options: RIVALRY,
    isUnasserted: true,
  },
  H31: { property: 'uniform-prefix-order', seed: 111, options: bestRunsOf('H31') },
};

/** Holes that break no property: what never happens, or happens late, is in no history. */
export const NO_VIOLATION: Readonly<Record<string, string>> = {
  H3: 'a member that granted late waits for ever; what it has delivered is right',
  H5: 'in these runs a message reaches all inboxes before a takeover ends, so a leader that goes back finds nothing to take',
  H7: 'a candidate never gets enough grants, so the group has no leader',
  H8: 'a candidate that mistakes grants cannot write under them, since they are keyed, and leads nobody',
  H9: 'a request is lost, so the group has no leader',
  H13: 'a member stays bound to a ballot that nobody pursues, and follows no leader',
  H15: 'followers deliver the last message late or never',
  H16: 'a leader waits for ever for a member that is down',
  H18: 'a client waits for long',
  H25: 'nobody has what was dropped, so the group cannot continue',
  H28: 'a leader without followers does not notice that, and decides nothing',
};
