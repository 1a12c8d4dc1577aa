/** The status of a cluster, read from its memory while it runs. */

import type { ClusterConfig } from '../config/config.js';
import { type JournalStatus, readStatus } from '../journal/status.js';
import {
  ARENA,
  ARENA_STATE,
  type Arena,
  HOST,
  HOST_STATE,
  hostStateOf,
  OWNER,
  PARTICIPANT,
  STAGE,
} from '../memory/arena.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import { copyPart } from '../memory/record.js';
import type { Durability, Order } from '../protocol/edges.js';
import { describeBallot, NO_BALLOT } from '../protocol/leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from '../protocol/leadership/row.js';
import { readWide } from '../protocol/wide.js';
import type { ClusterContext } from './cluster-context.js';
import { Histogram } from './histogram.js';
import { latencyOf, ROLES, STATISTIC } from './statistics.js';

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
  /** The log entries that the replica has delivered or relayed, ticks included. */
  readonly delivered: number;
  /** The deliveries that the state of the service contains: its own, or those of a snapshot that it has restored. */
  readonly messages: number;
  /** The entries before that which are no deliveries and no ticks: messages that its group has relayed, and cancels. */
  readonly relayed: number;
  readonly timesLed: number;
  /** The snapshots for other replicas that the service of this one failed to take. */
  readonly failedSnapshots: number;
  /** Its log no longer has the entries that it has to deliver next, and it needs them from another replica. */
  readonly lacksState: boolean;
  /** Ordered time: milliseconds since 1970, as of the last tick that the replica has delivered; 0 if there was none. */
  readonly nowMs: number;
  /** By how much the clock of its host was ahead of ordered time when it delivered that tick; negative: behind. */
  readonly clockAheadMs: number;
  /** With a journal: the log entries below this index are durable on the host of the replica. */
  readonly durable?: number;
  /** With a journal: no power cut loses the log entries below this index. As of when the replica led last; 0 if it never did. */
  readonly recoverable?: number;
  /**
   * With `order: 'strict'`: log entries below this index, and all that precede them in any group, are decided in all groups
   * that they concern. As of when the replica led last; 0 if it never did.
   */
  readonly settled?: number;
  /** Log entries below this index are decided. As of when the replica led last; 0 if it never did. */
  readonly decided: number;
  /**
   * How full its log, and the fullest of its feeds to child groups, was when it led last: 0 to 1. A leader drops old entries
   * when it needs room. If entries wait for room in a feed, that is 1.
   */
  readonly logFill: number;
  readonly feedFill: number;
}

/**
 * `ok`: it has a leader. `electing`: it is about to have one. `no-majority`: it waits for replicas that are down, because
 * too few run, or because none that runs has the state. `state-lost`: too many replicas have lost it, and none can get it
 * back. A host says so only after it has looked twice, and it is never taken back.
 */
export type GroupHealth = 'ok' | 'electing' | 'no-majority' | 'state-lost';

export interface GroupStatus {
  readonly group: number;
  /** -1 at the root. */
  readonly parent: number;
  /** `undefined` if no live replica leads. */
  readonly leader: number | undefined;
  readonly ballot: string | undefined;
  readonly health: GroupHealth;
  readonly replicas: readonly ReplicaStatus[];
}

export interface HostStatus {
  readonly host: number;
  readonly pid: number;
  readonly state: 'up' | 'starting' | 'down';
  /** With `memory: 'machines'`: the name in the configuration. */
  readonly name?: string;
  readonly address?: string;
  /** With `memory: 'machines'` and a journal, while it is starting: it waits for others, or coordinates a recovery. */
  readonly stage?: 'waiting' | 'recovering';
  /** Unless `durability` is `none`. */
  readonly journal?: JournalStatus;
}

/**
 * - `starting`: hosts are starting, and not every group has a leader yet.
 * - `running`: every group has a leader.
 * - `stalled`: some groups have no leader. Messages that need them wait.
 * - `state-lost`: some groups have lost their state for good.
 * - `down`: no host runs, or none can be reached.
 * - `closing`: the cluster is being taken down.
 */
export type ClusterState = 'starting' | 'running' | 'stalled' | 'state-lost' | 'down' | 'closing';

export interface ClusterStatus {
  readonly state: ClusterState;
  readonly memory: string;
  readonly durability: Durability;
  readonly order: Order;
  /** Of the options of the cluster. */
  readonly payloadBytesMax: number;
  readonly replyBytesMax: number;
  readonly callsMax: number;
  /** Unless `durability` is `none`: how often the cluster has been recovered from its journals, or opened anew. */
  readonly era?: number;
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
  const { payloadBytesMax, replyBytesMax, callsMax, clients } = config.sizes;
  const groups = config.parents.map((parent, group) => groupStatus(context, group, parent));
  const hosts = Array.from({ length: map.hosts }, (_, host) => hostStatus(context, host));
  return {
    state: stateOf(words[ARENA.state], groups, hosts),
    memory: config.memory,
    durability: config.durability,
    order: config.order,
    payloadBytesMax,
    replyBytesMax,
    callsMax,
    ...(isDurable(config) && { era: context.era ?? 0 }),
    groups,
    hosts,
    clients: { connected: connectedClients(context), most: clients },
    answered: latency.count,
    latencyNsP50: latency.count > 0 ? latency.percentile(50) : 0,
    latencyNsP99: latency.count > 0 ? latency.percentile(99) : 0,
  };
}

/** @param arena  one of `ARENA_STATE` */
function stateOf(
  arena: number,
  groups: readonly GroupStatus[],
  hosts: readonly HostStatus[],
): ClusterState {
  if (arena === ARENA_STATE.closing) return 'closing';
  if (arena === ARENA_STATE.starting) return 'starting';
  if (hosts.every(({ state }) => state === 'down')) return 'down';
  if (groups.some(({ health }) => health === 'state-lost')) return 'state-lost';
  if (groups.every(({ leader }) => leader !== undefined)) return 'running';
  return hosts.some(({ state }) => state === 'starting') ? 'starting' : 'stalled';
}

function hostStatus(context: ClusterContext, host: number): HostStatus {
  const { arena, map, config } = context;
  const pid = arena.words[map.host(host) + HOST.pid];
  const state = hostState(context, host);
  const machine = config.machines?.[host];
  const journal = isDurable(config) && {
    journal: readStatus(arena.words, map.host(host) + HOST.journal),
  };
  if (machine === undefined) return { host, pid, state, ...journal };
  const { name, address, port } = machine;
  const stage = state === 'starting' ? STAGES[arena.words[map.host(host) + HOST.stage]] : undefined;
  return {
    host,
    name,
    address: `${address}:${port}`,
    pid,
    state,
    ...(stage !== undefined && { stage }),
    ...journal,
  };
}

const STAGES: Readonly<Record<number, HostStatus['stage']>> = {
  [STAGE.waiting]: 'waiting',
  [STAGE.recovering]: 'recovering',
};

function isDurable({ durability }: ClusterConfig): boolean {
  return durability !== 'none';
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
  const members = replicas.map(({ state, incarnation, delivered, lacksState }, member) => {
    const row = rows[member];
    const { words } = context.arena;
    const statistics = context.map.statisticsOf(layout.replicaParticipant(group, member));
    return {
      isUp: state === 'up',
      // Without a row of this incarnation, nothing is known yet.
      isNormal: row?.incarnation === incarnation ? row.normal : undefined,
      delivered,
      needs: lacksState ? row!.needs : 0,
      seesLoss: words[statistics + STATISTIC.stateLost] === 1,
    };
  });
  const health = healthOf(members, leader !== undefined);
  return { group, parent, leader, ballot, health, replicas };
}

/** @internal What is known of a member of a group. The rest counts only if it is up. */
export interface MemberState {
  readonly isUp: boolean;
  /** False while it recovers. */
  readonly isNormal: boolean | undefined;
  readonly delivered: number;
  /** The first index of its log, if it has yet to deliver earlier entries; otherwise 0. */
  readonly needs: number;
  /** Has its host found that the group has lost its state for good (`lookout.ts`)? */
  readonly seesLoss: boolean;
}

/** @internal */
export function healthOf(members: readonly MemberState[], hasLeader: boolean): GroupHealth {
  const up = members.filter(({ isUp }) => isUp);
  if (up.some(({ seesLoss }) => seesLoss)) return 'state-lost';
  if (hasLeader) return 'ok';
  const normal = up.filter(({ isNormal }) => isNormal === true);
  const canElect = up.filter(({ isNormal }) => isNormal !== false).length >= majorityOf(members);
  return canElect && !isStateMissing(normal) ? 'electing' : 'no-majority';
}

/** Is there a log of which none of these has delivered what comes before it? */
function isStateMissing(members: readonly MemberState[]): boolean {
  const delivered = Math.max(...members.map((member) => member.delivered));
  return members.some(({ needs }) => needs > delivered);
}

function majorityOf({ length }: readonly unknown[]): number {
  return (length >> 1) + 1;
}

/** @internal The groups that have lost their state. */
export function stateLost(groups: readonly GroupStatus[]): number[] {
  return groups.filter(({ health }) => health === 'state-lost').map(({ group }) => group);
}

/** @internal For errors and logs. */
export function describeStateLoss(groups: readonly number[]): string {
  const names = groups.map((group) => `g${group}`).join(', ');
  return (
    `the state of ${names} is lost: too many replicas have lost it, and none can get it back. ` +
    'End the whole cluster, remove its memory, and start it anew'
  );
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
    relayed: words[statistics + STATISTIC.relayed] >>> 0,
    timesLed: words[statistics + STATISTIC.timesLed],
    failedSnapshots: words[statistics + STATISTIC.failedSnapshots],
    lacksState: isNormal && row.needs > 0,
    nowMs: readWide(words, statistics + STATISTIC.orderedMs),
    clockAheadMs: words[statistics + STATISTIC.clockAheadMs],
    ...watermarks(context, statistics),
  };
}

function watermarks(
  { arena: { words }, config, layout }: ClusterContext,
  statistics: number,
): Pick<ReplicaStatus, 'durable' | 'recoverable' | 'settled' | 'decided' | 'logFill' | 'feedFill'> {
  const read = (statistic: number): number => readWide(words, statistics + statistic);
  return {
    ...(isDurable(config) && {
      durable: read(STATISTIC.durable),
      recoverable: read(STATISTIC.recoverable),
    }),
    ...(config.order === 'strict' && { settled: read(STATISTIC.settled) }),
    decided: read(STATISTIC.decided),
    logFill: words[statistics + STATISTIC.logUsedWords] / layout.logWords,
    feedFill: words[statistics + STATISTIC.feedUsedWords] / layout.feedWords,
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
