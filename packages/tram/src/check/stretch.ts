/** The part of a replica's deliveries that a history records without an interruption. */

import { IntList } from './int-list.js';

/**
 * The deliveries of a replica between two interruptions: each restart or restore begins a new stretch.
 * The sequence of the replica is then the first `restored` deliveries of its group, followed by
 * `delivered`.
 */
export interface Stretch {
  readonly replica: number;
  /** 0 at first, and one more with every restart. */
  readonly incarnation: number;
  /** The index of the era to which the incarnation belongs. */
  readonly era: number;
  /** True once the replica has opened the era in this stretch. */
  opensEra: boolean;
  /** How many deliveries of the group the installed snapshot covers; 0 without a snapshot. */
  readonly restored: number;
  /** Messages in delivery order, as recorded: including duplicates and messages for other groups. */
  readonly delivered: IntList;
}

/** A stretch in which nothing has been delivered yet. */
export function stretchOf(
  replica: number,
  incarnation: number,
  era: number,
  restored: number,
): Stretch {
  return { replica, incarnation, era, opensEra: false, restored, delivered: new IntList() };
}
