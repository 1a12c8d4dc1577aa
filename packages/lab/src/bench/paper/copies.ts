/**
 * The least number of records that must be copied to order a message, given the protocol: to every replica of
 * the group where it enters, into the log of every replica of every group that it passes, to every replica of
 * every group that it is forwarded to, and a reply from each destination.
 */
import { contains, type Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import type { DestinationSet } from '../load/destinations.js';

export function copiesOf(overlay: Overlay, replicas: number, set: DestinationSet): number {
  const passed = groupsPassed(overlay, set);
  const destinations = Array.from({ length: overlay.groups }, (_, group) => group).filter((group) =>
    contains(set.low, set.high, group),
  ).length;
  const entered = replicas;
  const logged = passed * replicas;
  const forwarded = (passed - 1) * replicas;
  return entered + logged + forwarded + destinations;
}

export function meanCopies(
  overlay: Overlay,
  replicas: number,
  sets: readonly DestinationSet[],
): number {
  return sets.reduce((sum, set) => sum + copiesOf(overlay, replicas, set), 0) / sets.length;
}

/** From the entry group down to every destination. */
function groupsPassed(overlay: Overlay, { low, high }: DestinationSet): number {
  const count = (group: number): number =>
    overlay
      .children(group)
      .filter((child) => overlay.reaches(child, low, high))
      .reduce((sum, child) => sum + count(child), 1);
  return count(overlay.entryGroup(low, high));
}
