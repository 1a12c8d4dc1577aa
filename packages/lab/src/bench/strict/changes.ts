/**
 * Leader changes under both orders, while clients send the mix. On shared memory, the leaders of all groups change at once,
 * on request or because the process that runs them is killed; clusters of processes are measured, because threads can't be
 * killed. Across machines, the leader of one group after the other changes, on request.
 */
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { type Cause, measureChanges } from '../failover.js';
import { mixedSets } from '../load/destinations.js';
import { type MachinesCluster, startCluster } from '../machines/cluster.js';
import { meanAndWorst, measureLeaderChanges } from '../machines/leader-changes.js';
import { type Comparison, compare, inPairs, type Pair } from './pairs.js';
import { BOTH, OVERLAY, type Run, SETUP, TREE } from './setting.js';

/** Milliseconds, on average over the changes of a measurement. */
interface Cost {
  /** The longest time without an answer around a change. */
  readonly gapMs: number;
  /** The longest delay of a message that was in flight during a change. */
  readonly delayMs: number;
}

export interface ChangesCost {
  readonly cause: Cause;
  readonly gapMs: Comparison;
  readonly delayMs: Comparison;
}

/** In each measurement on shared memory. */
const CHANGES = 3;
const CLIENTS = 32;

export function compareChanges(run: Run): Promise<ChangesCost[]> {
  return run.memory === 'machines' ? acrossMachines(run) : onProcesses(run);
}

async function onProcesses({ pairs, step }: Run): Promise<ChangesCost[]> {
  const options = {
    ...{ groups: SETUP.groups, replicas: SETUP.replicas, tree: TREE },
    ...{ clients: CLIENTS, payloadBytes: SETUP.payloadBytesMax, changes: CHANGES },
    sets: mixedSets(OVERLAY),
  };
  const costs: ChangesCost[] = [];
  for (const cause of ['request', 'kill'] as const) {
    const measure = async (order: Order): Promise<Cost> => {
      const { changes } = await measureChanges({ ...options, order }, cause, (name) =>
        step(`${order}: ${name}`),
      );
      return {
        gapMs: meanAndWorst(changes.map(({ gapMs }) => gapMs)).mean,
        delayMs: meanAndWorst(changes.map(({ maxMs }) => maxMs)).mean,
      };
    };
    costs.push(costOf(cause, await inPairs(pairs, measure)));
  }
  return costs;
}

async function acrossMachines({ pairs, step, signal }: Run): Promise<ChangesCost[]> {
  const clusters = new Map<Order, MachinesCluster>();
  const measure = async (order: Order): Promise<Cost> => {
    step(`${order}: requested leader changes`);
    const cluster = clusters.get(order)!;
    const sets = mixedSets(OVERLAY);
    const changes = await measureLeaderChanges(cluster, SETUP.payloadBytesMax, signal, sets);
    return { gapMs: changes.gapMs.mean, delayMs: changes.delayMs.mean };
  };
  try {
    for (const order of BOTH) {
      step(`starting a cluster with ${order} order`);
      clusters.set(order, await startCluster(SETUP, signal, { order }));
    }
    // The first changes of a cluster run code that is not compiled.
    for (const order of BOTH) await measure(order);
    return [costOf('request', await inPairs(pairs, measure))];
  } finally {
    await Promise.all([...clusters.values()].map((cluster) => cluster.close()));
  }
}

function costOf(cause: Cause, pairs: readonly Pair<Cost>[]): ChangesCost {
  return {
    cause,
    gapMs: compare(pairs, ({ gapMs }) => gapMs),
    delayMs: compare(pairs, ({ delayMs }) => delayMs),
  };
}
