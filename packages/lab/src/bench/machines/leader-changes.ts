/** Measures requested leader changes across machines: one group after the other, while a client sends messages. */
import { ownAddress } from 'tram-multicast/internal/hosting/machines/cluster-file.js';
import { changeUnderLoad } from '../load/changes.js';
import { type DestinationSet, everyGroup } from '../load/destinations.js';
import type { Span } from '../load/span-delays.js';
import type { MachinesCluster } from './cluster.js';
import { Observer } from './observer.js';

/** Milliseconds. */
export interface MeanAndWorst {
  readonly mean: number;
  readonly worst: number;
}

export interface LeaderChanges {
  readonly count: number;
  /** From the request until the new leader leads. */
  readonly changeMs: MeanAndWorst;
  /** The longest time without an answer around a change, for the client. */
  readonly gapMs: MeanAndWorst;
  /** The longest delay of a message that was in flight during a change. */
  readonly delayMs: MeanAndWorst;
  /** The median latency of the messages. */
  readonly usualMs: number;
}

const CHANGES_MIN = 20;
const BETWEEN_MS = 100;
const OUTSTANDING = 16;

/** @param sets  the destinations of the client's messages; by default all groups */
export async function measureLeaderChanges(
  cluster: MachinesCluster,
  payloadBytes: number,
  signal: AbortSignal,
  sets: readonly DestinationSet[] = [everyGroup(cluster.config.sizes.groups)],
): Promise<LeaderChanges> {
  const { config, configFile: address } = cluster;
  const job = { address, clients: 1, outstanding: OUTSTANDING, sets, payloadBytes };
  const observer = Observer.open(cluster, await ownAddress(config));
  const changeOf = (group: number) => async (): Promise<Span> => {
    signal.throwIfAborted();
    return observer.change(group);
  };
  try {
    const { changes, usualMsP50: usualMs } = await changeUnderLoad(
      { ...job, system: 'machines' },
      groupsToChange(config.sizes).map(changeOf),
      BETWEEN_MS,
    );
    return {
      count: changes.length,
      changeMs: meanAndWorst(changes.map(({ spanMs }) => spanMs)),
      gapMs: meanAndWorst(changes.map(({ gapMs }) => gapMs)),
      delayMs: meanAndWorst(changes.map(({ maxMs }) => maxMs)),
      usualMs,
    };
  } finally {
    observer.close();
  }
}

/** Each group changes as often as it has members, so that the first leaders lead again at the end. */
export function groupsToChange({
  groups,
  replicas,
}: {
  groups: number;
  replicas: number;
}): number[] {
  const some = Math.min(groups, Math.ceil(CHANGES_MIN / replicas));
  const rounds = Math.ceil(CHANGES_MIN / (some * replicas)) * replicas;
  return Array.from({ length: rounds * some }, (_, change) => change % some);
}

export function meanAndWorst(values: readonly number[]): MeanAndWorst {
  const sum = values.reduce((total, value) => total + value, 0);
  return { mean: sum / values.length, worst: Math.max(...values) };
}
