/** The destinations of a message: a list of groups, or a set of them as two words. */
import { describeValue } from './config/mistakes.js';
import { TramError } from './errors.js';
import { groupsOf } from './hosting/service.js';

/** A set of groups as two bit masks. `client.destinations` makes one, to be used for many messages. */
export interface Destinations {
  readonly low: number;
  readonly high: number;
}

/** @internal @param count  how many groups the cluster has @throws TRAM_INVALID_DESTINATIONS */
export function destinationSet(
  groups: Iterable<number> | Destinations,
  count: number,
): Destinations {
  let low = 0;
  let high = 0;
  for (const group of listOf(groups)) {
    if (typeof group !== 'number') {
      throw new TramError(
        'TRAM_INVALID_DESTINATIONS',
        `a group must be a number, not ${describeValue(group)}`,
      );
    }
    if (!Number.isInteger(group) || group < 0 || group >= count) {
      throw new TramError(
        'TRAM_INVALID_DESTINATIONS',
        `unknown destination group ${group}: there are groups 0 to ${count - 1}`,
      );
    }
    if (group < 32) low |= 1 << group;
    else high |= 1 << (group - 32);
  }
  if ((low | high) === 0) {
    throw new TramError(
      'TRAM_INVALID_DESTINATIONS',
      'a message needs at least one destination group',
    );
  }
  return { low, high };
}

/** @internal */
export function isSet(groups: Iterable<number> | Destinations): groups is Destinations {
  if (typeof groups !== 'object' || groups === null) return false;
  const { low, high } = groups as Destinations;
  return typeof low === 'number' && typeof high === 'number';
}

function listOf(groups: Iterable<number> | Destinations): Iterable<number> {
  if (isSet(groups)) return groupsOf(groups.low, groups.high);
  if (typeof groups === 'object' && groups !== null && Symbol.iterator in groups) return groups;
  throw new TramError(
    'TRAM_INVALID_DESTINATIONS',
    `destinations must be a list or a set of group numbers, not ${typeof groups}`,
  );
}
