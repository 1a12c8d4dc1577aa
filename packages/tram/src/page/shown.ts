/** A reading of a cluster as the page shows it. */
import type { ClusterConfig } from '../config/config.js';
import { type Rates, type Reading, shownState } from '../hosting/reading.js';
import type { GroupStatus, HostStatus, ReplicaStatus } from '../hosting/status.js';
import type { Shown, ShownGroup, ShownHost, ShownReplica, Trouble } from './wire.js';

export type GroupRates = Pick<Rates, 'groups' | 'relayed'>;

export interface Frame {
  readonly name: string;
  readonly config: ClusterConfig;
  readonly reading: Reading;
  readonly rates: GroupRates;
  readonly troubles: readonly Trouble[];
}

export function shownFrom(frame: Frame): Shown {
  const { name, config, reading, rates, troubles } = frame;
  const { status } = reading;
  const parents = new Set(config.parents);
  return {
    name,
    state: status.state,
    memory: status.memory,
    order: config.order,
    durability: status.durability,
    era: status.era ?? null,
    isSupervised: reading.isSupervised ?? null,
    answered: status.answered,
    clients: status.clients,
    hosts: status.hosts.map((host) => shownHost(host, reading)),
    groups: status.groups.map((group) =>
      shownGroup(group, reading, rates, parents.has(group.group)),
    ),
    troubles,
  };
}

function shownHost(status: HostStatus, reading: Reading): ShownHost {
  const { host, name, address, pid, stage } = status;
  const state = shownState(status, reading);
  const isRunning = state !== 'down' && state !== 'unreachable';
  const words = [
    address,
    // Threads have the process of their cluster.
    isRunning && reading.status.memory !== 'threads' ? `process ${pid}` : undefined,
    state === 'starting' ? stage : undefined,
    reading.unreachable.get(host),
  ];
  const details = words.filter((word) => word !== undefined).join(', ');
  return { host, title: name ?? String(host), state, details };
}

function shownGroup(
  status: GroupStatus,
  reading: Reading,
  rates: GroupRates,
  hasChildren: boolean,
): ShownGroup {
  const { group, parent, leader, ballot, health, replicas } = status;
  const leading = leader === undefined ? undefined : replicas[leader];
  const most = (of: (replica: ReplicaStatus) => number): number => Math.max(...replicas.map(of));
  // A leader tells only from time to time what is decided. What is delivered is decided too.
  const decided = most((replica) => Math.max(replica.decided, replica.delivered));
  return {
    group,
    parent,
    leader: leader ?? null,
    ballot: ballot ?? null,
    health,
    messagesPerSecond: rates.groups[group],
    relayedPerSecond: rates.relayed[group],
    decided,
    settled: replicas[0].settled === undefined ? null : most(({ settled = 0 }) => settled),
    recoverable:
      replicas[0].recoverable === undefined ? null : most(({ recoverable = 0 }) => recoverable),
    logFill: leading?.logFill ?? null,
    feedFill: hasChildren ? (leading?.feedFill ?? null) : null,
    replicas: replicas.map((replica) => shownReplica(replica, reading, decided)),
  };
}

function shownReplica(replica: ReplicaStatus, reading: Reading, decided: number): ShownReplica {
  const { name, member, host, role, promised, incarnation, timesLed, delivered, durable } = replica;
  return {
    name,
    member,
    host,
    state: shownState(replica, reading),
    role,
    promised: promised ?? null,
    incarnation,
    timesLed,
    delivered,
    behind: decided - delivered,
    durable: durable ?? null,
  };
}
