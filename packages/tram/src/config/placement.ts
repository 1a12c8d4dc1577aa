/**
 * Which host runs which member of each group, where the user does not list them.
 *
 * Member 0 of a group leads it at first, and again after failures (`hosting/leader-return.ts`). So placement decides
 * which hosts lead: `together` puts the members 0 on as few hosts as possible, `spread` on all hosts alike.
 *
 * Invariant: with at least as many hosts as a group has replicas, no host runs two members of one group.
 */

export const LEADERS = ['spread', 'together'] as const;

export type Leaders = (typeof LEADERS)[number];

export interface Shape {
  readonly groups: number;
  readonly replicas: number;
  /** At most `replicas`, or a multiple of it. */
  readonly hosts: number;
}

/** The host of each replica, at group * replicas + member. */
export function placementOf(shape: Shape, leaders: Leaders): number[] {
  const { groups, replicas } = shape;
  return Array.from({ length: groups * replicas }, (_, replica) =>
    hostOf(shape, leaders, Math.floor(replica / replicas), replica % replicas),
  );
}

function hostOf(shape: Shape, leaders: Leaders, group: number, member: number): number {
  const { replicas, hosts } = shape;
  if (hosts < replicas) {
    // All remaining members are on one host.
    const host = Math.min(member, hosts - 1);
    return leaders === 'spread' ? (host + group) % hosts : host;
  }
  const sets = hosts / replicas;
  const turn = leaders === 'spread' ? Math.floor(group / sets) : 0;
  return replicas * (group % sets) + ((member + turn) % replicas);
}
