/** Replicas as users write them: `g2/0`, or `2/0`. */
import { TramError } from '../errors.js';
import type { ClusterContext } from '../hosting/cluster-context.js';

export interface ReplicaName {
  readonly group: number;
  readonly member: number;
}

/** @throws TRAM_UNKNOWN_REPLICA with the range of names that exist */
export function parseReplica(
  text: string,
  { config }: Pick<ClusterContext, 'config'>,
): ReplicaName {
  const { groups, replicas } = config.sizes;
  const [, group, member] = /^g?(\d{1,4})\/(\d{1,4})$/.exec(text) ?? [];
  if (group !== undefined && Number(group) < groups && Number(member) < replicas) {
    return { group: Number(group), member: Number(member) };
  }
  const why =
    group === undefined
      ? `${JSON.stringify(text)} is not the name of a replica`
      : `there is no replica ${text}`;
  throw new TramError(
    'TRAM_UNKNOWN_REPLICA',
    `${why}: this cluster has g0/0 to g${groups - 1}/${replicas - 1} (group/member)`,
    { hint: 'List all replicas with `tram status`.' },
  );
}

/** `g2/0, g3/0` */
export function listed(names: readonly string[]): string {
  return names.join(', ');
}
