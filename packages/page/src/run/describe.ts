/** Describes a simulated world at one moment, for the page. It never changes the world, and draws nothing. */
import type { ReplicaHost } from 'tram-lab/dist/sim/hosts.js';
import type { Narrator } from 'tram-lab/dist/sim/narrator.js';
import type { World } from 'tram-lab/dist/sim/world.js';
import { OPEN, RETIRED } from 'tram-multicast/internal/memory/contract.js';
import { describeBallot, NO_BALLOT } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from 'tram-multicast/internal/protocol/leadership/row.js';
import { flightsOf, troubledLinks } from './describe-links.js';
import { MemoryReader } from './describe-memory.js';
import type { ReplicaView, View } from './view.js';

export function describeWorld(world: World, narrator: Narrator, events: number): View {
  const { plan, replicas, clients, fabric } = world;
  const { tornPercent } = fabric.weather;
  const memory = new MemoryReader(world, narrator);
  const nameOf = (participant: number): string =>
    narrator.name(replicas[participant] ?? clients[participant - replicas.length]);
  return {
    events,
    timeUs: world.nowUs,
    parents: plan.parents,
    replicasPerGroup: plan.sizes.replicas,
    hasLinks: plan.memory !== 'shared',
    mayEnd: plan.durability === undefined,
    tornPercent,
    facts: [
      ['seed', String(plan.seed)],
      ['order', plan.order],
      ['memory', plan.memory],
      ['durability', plan.durability?.mode ?? 'none'],
      ['torn writes', `${tornPercent} %`],
    ],
    replicas: replicas.map((host) => describeReplica(host, world, narrator, memory)),
    clients: clients.map((host) => ({
      name: narrator.name(host),
      session: `c${host.workload.session}`,
      participant: host.participant,
      state: host.state,
      unsent: host.workload.remaining,
      unanswered: host.state === 'down' ? 0 : host.client.outstanding,
    })),
    flights: flightsOf(world),
    links: troubledLinks(world, nameOf),
  };
}

function describeReplica(
  host: ReplicaHost,
  world: World,
  narrator: Narrator,
  reader: MemoryReader,
): ReplicaView {
  const { participant, group, member, state, leftMemory, replica, incarnation } = host;
  const identity = { name: narrator.name(host), participant, group, member };
  const hasMemory = state !== 'down' || leftMemory;
  // With durability, a replica may not have begun yet.
  if (!hasMemory || replica === undefined) return { ...identity, ...LOST, state, incarnation };
  const { role, replication } = replica;
  const shared = replica.member;
  return {
    ...identity,
    state,
    leavesMemory: leftMemory,
    role: state === 'down' ? 'down' : role,
    phase: role === 'candidate' ? replica.takeover.phase : undefined,
    incarnation,
    promised: ballotText(shared.promised),
    permits: permissionText(host),
    holds: world
      .members(group)
      .filter((peer) => permitsTo(peer) === member)
      .map((peer) => narrator.name(peer)),
    next: Math.max(0, reader.shown(shared.nextToDeliver)),
    deliveries: shared.deliveries,
    log: reader.logOf(shared, role === 'leader' ? replication.decided : undefined),
    inboxes: reader.inboxesOf(shared),
    feeds: reader.feedsOf(shared),
    row: rowOf(host, world, reader),
  };
}

/** A replica that is down, and whose memory is gone. */
const LOST = {
  leavesMemory: false,
  role: 'down',
  phase: undefined,
  promised: 'none',
  permits: 'nothing: its memory is lost',
  holds: [],
  next: 0,
  deliveries: 0,
  log: undefined,
  inboxes: [],
  feeds: [],
  row: [],
} as const;

function ballotText(ballot: number): string {
  return ballot === NO_BALLOT ? 'none' : describeBallot(ballot);
}

function permissionText(host: ReplicaHost): string {
  const key = host.memory.permitted();
  if (key === OPEN) return 'no key yet';
  const member = permitsTo(host);
  return member < 0
    ? 'no log write'
    : `log writes with key ${key}, given to ${host.group}/${member}`;
}

/** The member that has the key which the memory of this one permits; -1 if nobody has. */
function permitsTo({ state, leftMemory, memory, replica }: ReplicaHost): number {
  if (replica === undefined || (state === 'down' && !leftMemory)) return -1;
  const key = memory.permitted();
  const { member } = replica;
  // A member that has resumed permits a key of its own until it promises again.
  if (key === OPEN || key === RETIRED || !member.hasPromisedAnew) return -1;
  return member.promisedMember;
}

/** The row that the replica has published, as others read it. */
function rowOf(host: ReplicaHost, { layout }: World, reader: MemoryReader): ReplicaView['row'] {
  const { firstIndex } = layout.sizes;
  const peer = new Peer(host.participant, firstIndex);
  peer.buffer.words.set(host.memory.own.subarray(layout.row, layout.row + ROW_RECORD_WORDS));
  if (!peer.accept()) return [];
  return [
    ['incarnation', String(peer.incarnation)],
    ['heartbeat', String(peer.heartbeat)],
    ['state', peer.normal ? (peer.isAlone ? 'alone' : 'normal') : 'recovering'],
    ['promised', ballotText(peer.promised)],
    ['ballot of its log', ballotText(peer.logBallot)],
    ['leads with', ballotText(peer.ledBallot)],
    ['delivered below', String(Math.max(0, reader.shown(peer.delivered)))],
    ['taken from parent below', String(Math.max(0, reader.shown(peer.fromParent)))],
    ['settled of parent below', String(Math.max(0, reader.shown(peer.settledFromParent)))],
    ['trusts', peer.trusts < 0 ? 'nobody' : `${host.group}/${peer.trusts}`],
  ];
}
