/** What recovery must know of a cluster: its tree, and which hosts have members of which groups. */
import type { Overlay } from '../protocol/overlay.js';

/** @internal */
export interface ClusterShape {
  readonly overlay: Overlay;
  readonly replicas: number;
  readonly hosts: number;
  /** The host of each member of a group. Members on one host share its journal. */
  hostsOf(group: number): readonly number[];
  /** As messages name it: `host 2`, or the name of a machine. */
  nameOf(host: number): string;
  readonly firstIndex: number;
}

/** @internal How many members of a group run on such hosts. */
export function membersOn(
  shape: ClusterShape,
  group: number,
  isSuch: (host: number) => boolean,
): number {
  return shape.hostsOf(group).filter(isSuch).length;
}

/** @internal f + 1 */
export function quorumOf({ replicas }: ClusterShape): number {
  return (replicas >> 1) + 1;
}
