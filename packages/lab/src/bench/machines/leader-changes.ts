/** Measures requested leader changes across machines: one group after the other, while a client sends to all groups. */
import { ownAddress } from 'tram-multicast/internal/hosting/machines/cluster-file.js';
import { changeUnderLoad } from '../load/changes.js';
import type { Span } from '../load/changes-worker.js';
import { setOf } from '../load/destinations.js';
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
  /** The longest time without an answer around a change, for a client whose messages go to all groups. */
  readonly gapMs: MeanAndWorst;
  /** The median latency of these messages. */
  readonly usualMs: number;
}

const CHANGES_MIN = 20;
const BETWEEN_MS = 100;
const OUTSTANDING = 16;

export async function measureLeaderChanges(
  cluster: MachinesCluster,
  payloadBytes: number,
  signal: AbortSignal,
): Promise<LeaderChanges> {
  const { config, configFile: address } = cluster;
  const everyone = Array.from({ length: config.sizes.groups }, (_, group) => group);
  const sets = [setOf(everyone)];
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

function meanAndWorst(values: readonly number[]): MeanAndWorst {
  const sum = values.reduce((total, value) => total + value, 0);
  return { mean: sum / values.length, worst: Math.max(...values) };
}
