/** Describes what is on its way between participants, and which links are cut, slow or held. */
import type { World } from 'tram-lab/dist/sim/world.js';
import type { Layout } from 'tram-multicast/internal/protocol/layout.js';
import type { Flight, FlightKind, LinkView } from './view.js';

/** Reads, rows and notifications are left out: there are some all the time. */
export function flightsOf({ fabric, layout, replicas }: World): Flight[] {
  return fabric.usedLinks.flatMap(({ from, to, operations }) =>
    operations.flatMap(({ isRead, at, arrivesUs, landed }) => {
      const kind = isRead ? undefined : kindOf(layout, at, to < replicas.length);
      return kind === undefined ? [] : [{ from, to, kind, arrivesUs, isTorn: landed > 0 }];
    }),
  );
}

/** What a write to this place of a region is. */
function kindOf(layout: Layout, at: number, isReplica: boolean): FlightKind | undefined {
  const { replicas, clients } = layout.sizes;
  if (!isReplica) return at >= layout.reply(0, 0) ? 'reply' : undefined;
  if (at < layout.leadRequest(0)) return undefined;
  for (let member = 0; member < replicas; member++) {
    if (at >= layout.leadRequest(member + 1)) continue;
    if (at >= layout.logControl(member, 0)) return 'log';
    if (at >= layout.durable(member)) return undefined;
    if (at >= layout.snapshotRequest(member)) return 'snapshot';
    return at >= layout.leadGrant(member) ? 'grant' : 'request';
  }
  if (at < layout.inboxControl(clients)) return 'message';
  return at < layout.feedStart(replicas) ? 'feed' : undefined;
}

export function troubledLinks({ fabric }: World, nameOf: (participant: number) => string) {
  return fabric.usedLinks.flatMap(({ from, to, isDown, slownessUs }): LinkView[] => {
    if (!isDown && slownessUs === 0) return [];
    const slow = slownessUs === Number.POSITIVE_INFINITY ? 'held' : `slow by ${slownessUs} µs`;
    return [{ from: nameOf(from), to: nameOf(to), state: isDown ? 'cut' : slow }];
  });
}
