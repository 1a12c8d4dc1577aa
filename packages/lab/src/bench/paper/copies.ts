/**
 * The least number of record copies that TRAM needs to order a message: into the inbox of every replica of the entry group,
 * into the log of every replica of every group on the path, into every replica of every group that the message is forwarded
 * to, and a reply from each destination. Called by the experiment on scaling.
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

/** The number of groups on the paths from the entry group to all destinations. */
function groupsPassed(overlay: Overlay, { low, high }: DestinationSet): number {
  const count = (group: number): number =>
    overlay
      .children(group)
      .filter((child) => overlay.reaches(child, low, high))
      .reduce((sum, child) => sum + count(child), 1);
  return count(overlay.entryGroup(low, high));
}
