/** The status of a cluster, read from its memory while it runs. */
import {
  ARENA,
  ARENA_STATE,
  type Arena,
  HOST,
  HOST_STATE,
  hostStateOf,
  OWNER,
  PARTICIPANT,
} from '../memory/arena.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import { copyPart } from '../memory/record.js';
import { describeBallot, NO_BALLOT } from '../protocol/leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from '../protocol/leadership/row.js';
import type { ClusterContext } from './cluster-context.js';
import { Histogram } from './histogram.js';
import { ROLES } from './replica-agent.js';
import { latencyOf, STATISTIC } from './statistics.js';

export interface ReplicaStatus {
  /** `g2/0` */
  readonly name: string;
  readonly group: number;
  readonly member: number;
  readonly host: number;
  readonly state: 'up' | 'starting' | 'down';
  readonly role: string;
  readonly incarnation: number;
  /** The highest ballot it has promised, `round.member`; undefined if none. */
  readonly promised: string | undefined;
  /** The log entries that the replica has delivered or relayed. */
  readonly delivered: number;
  /** The messages delivered to the service. */
  readonly messages: number;
  readonly timesLed: number;
  /** The snapshots for other replicas that the service of this one failed to take. */
  readonly failedSnapshots: number;
}

export interface GroupStatus {
  readonly group: number;
  /** -1 at the root. */
  readonly parent: number;
  /** `undefined` if no live replica leads. */
  readonly leader: number | undefined;
  readonly ballot: string | undefined;
  readonly replicas: readonly ReplicaStatus[];
}

export interface HostStatus {
  readonly host: number;
  readonly pid: number;
  readonly state: 'up' | 'starting' | 'down';
  /** With `memory: 'machines'`: the name in the configuration. */
  readonly name?: string;
  readonly address?: string;
}

export interface ClusterStatus {
  readonly state: 'starting' | 'running' | 'closing';
  readonly memory: string;
  readonly groups: readonly GroupStatus[];
  readonly hosts: readonly HostStatus[];
  readonly clients: { readonly connected: number; readonly most: number };
  /** Of all clients since the start: the messages answered, and their latency. */
  readonly answered: number;
  readonly latencyNsP50: number;
  readonly latencyNsP99: number;
}

/** @internal */
export function statusOf(context: ClusterContext): ClusterStatus {
  const { words } = context.arena;
  const { map, config } = context;
  const latency = totalLatency(context);
  const state = words[ARENA.state];
  return {
    state:
      state === ARENA_STATE.running
        ? 'running'
        : state === ARENA_STATE.closing
          ? 'closing'
          : 'starting',
    memory: config.memory,
    groups: config.parents.map((parent, group) => groupStatus(context, group, parent)),
    hosts: Array.from({ length: map.hosts }, (_, host) => hostStatus(context, host)),
    clients: { connected: connectedClients(context), most: config.sizes.clients },
    answered: latency.count,
    latencyNsP50: latency.count > 0 ? latency.percentile(50) : 0,
    latencyNsP99: latency.count > 0 ? latency.percentile(99) : 0,
  };
}

function hostStatus(context: ClusterContext, host: number): HostStatus {
  const { arena, map, config } = context;
  const pid = arena.words[map.host(host) + HOST.pid];
  const state = hostState(context, host);
  const machine = config.machines?.[host];
  if (machine === undefined) return { host, pid, state };
  return { host, name: machine.name, address: `${machine.address}:${machine.port}`, pid, state };
}

/** @internal The latencies of all clients, merged. */
export function totalLatency({ arena, map, layout }: ClusterContext): Histogram {
  const total = Histogram.empty();
  for (let slot = 0; slot < layout.sizes.clients; slot++) {
    total.add(latencyOf(arena.words, map, layout.clientParticipant(slot)));
  }
  return total;
}

function groupStatus(context: ClusterContext, group: number, parent: number): GroupStatus {
  const { layout } = context;
  const rows: (Peer | undefined)[] = [];
  const replicas: ReplicaStatus[] = [];
  for (let member = 0; member < layout.sizes.replicas; member++) {
    const participant = layout.replicaParticipant(group, member);
    const row = readRow(context, participant);
    rows.push(row);
    replicas.push(replicaStatus(context, participant, group, member, row));
  }
  const leader = leaderAmong(replicas, rows);
  const ballot = leader === undefined ? undefined : describeBallot(rows[leader]!.ledBallot);
  return { group, parent, leader, ballot, replicas };
}

function leaderAmong(
  replicas: readonly ReplicaStatus[],
  rows: readonly (Peer | undefined)[],
): number | undefined {
  let leader: number | undefined;
  let ledBallot = NO_BALLOT;
  for (const { member, state, role } of replicas) {
    const led = rows[member]?.ledBallot ?? NO_BALLOT;
    if (state !== 'up' || role === 'recovering' || led <= ledBallot) continue;
    ledBallot = led;
    leader = member;
  }
  // A stopped leader does not know that it has been deposed.
  const isDeposed = ({ promised }: Peer): boolean => promised > ledBallot;
  const doubters = rows.filter((row) => row === undefined || isDeposed(row));
  return 2 * doubters.length > replicas.length ? undefined : leader;
}

function replicaStatus(
  context: ClusterContext,
  participant: number,
  group: number,
  member: number,
  row: Peer | undefined,
): ReplicaStatus {
  const { words } = context.arena;
  const { map } = context;
  const statistics = map.statisticsOf(participant);
  const host = map.hostOf(participant);
  const incarnation = words[map.participant(participant) + PARTICIPANT.incarnation];
  // Words of an earlier incarnation say nothing about this one.
  const isNormal = row?.incarnation === incarnation && row.normal;
  return {
    name: context.nameOf(participant),
    group,
    member,
    host,
    state: hostState(context, host),
    // A row that is just being written can't be read. Then its host still tells the role.
    role: row === undefined || isNormal ? ROLES[words[statistics + STATISTIC.role]] : 'recovering',
    incarnation,
    promised:
      row === undefined || row.promised === NO_BALLOT ? undefined : describeBallot(row.promised),
    delivered: row?.delivered ?? 0,
    messages: words[statistics + STATISTIC.messages] >>> 0,
    timesLed: words[statistics + STATISTIC.timesLed],
    failedSnapshots: words[statistics + STATISTIC.failedSnapshots],
  };
}

function connectedClients({ arena, map, layout }: ClusterContext): number {
  let connected = 0;
  for (let slot = 0; slot < layout.sizes.clients; slot++) {
    const owner = arena.words[map.participant(layout.clientParticipant(slot)) + PARTICIPANT.owner];
    if (isLocked(arena, map.hosts + slot) ?? owner === OWNER.present) connected++;
  }
  return connected;
}

/** @internal `undefined` if this memory has no locks. */
export function isLocked(arena: Arena, host: number): boolean | undefined {
  return 'isHostLocked' in arena ? (arena as ArenaFile).isHostLocked(host) : undefined;
}

function hostState({ arena, map }: ClusterContext, host: number): 'up' | 'starting' | 'down' {
  const state = hostStateOf(arena.words[map.host(host) + HOST.state]);
  if (isLocked(arena, host) === false) return 'down';
  if (state === HOST_STATE.running) return 'up';
  return state === HOST_STATE.starting ? 'starting' : 'down';
}

/** A replica's published row; undefined if every read was torn. */
function readRow(context: ClusterContext, participant: number): Peer | undefined {
  const { layout } = context;
  const own = context.region(participant);
  // Never written; with `memory: 'machines'`, not in this arena.
  if (own[layout.row] === 0) return undefined;
  const row = new Peer(participant, layout.sizes.firstIndex);
  for (let attempt = 0; attempt < ROW_ATTEMPTS; attempt++) {
    copyPart(own, layout.row, row.buffer.words, 0, ROW_RECORD_WORDS);
    if (row.accept()) return row;
  }
  return undefined;
}

const ROW_ATTEMPTS = 1000;
