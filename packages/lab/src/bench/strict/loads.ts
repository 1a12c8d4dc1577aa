/**
 * The latency and the throughput of both orders, for several loads. Both clusters are started at the beginning: the one that
 * is not measured is idle, and its hosts are parked.
 */
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { type DestinationSet, destinationSets, mixedSets } from '../load/destinations.js';
import { measure, rateOf } from '../load/measure.js';
import type { Rung } from '../load/saturation.js';
import { machinesSystem } from '../machines/system.js';
import type { Measurement, RunningSystem, System } from '../systems/system.js';
import { tram } from '../systems/tram.js';
import { plural } from '../text/words.js';
import { type Comparison, compare, inPairs } from './pairs.js';
import { BOTH, IN_FLIGHT, OVERLAY, type Run, SETUP, TREE } from './setting.js';

export interface LoadCost {
  /** `1 group`, `8 groups`, `mix` */
  readonly load: string;
  /** One message at a time. */
  readonly latencyNsP50: Comparison;
  /** With `IN_FLIGHT` messages in flight. */
  readonly messagesPerSecond: Comparison;
}

const ALONE: Rung = { clients: 1, outstanding: 1 };
const MANY: Rung = { clients: 1, outstanding: IN_FLIGHT };
const WARM_UP_SECONDS_MAX = 0.3;

export async function compareLoads(run: Run): Promise<LoadCost[]> {
  const clusters = new Map<Order, RunningSystem>();
  try {
    for (const order of BOTH) {
      run.step(`starting a cluster with ${order} order`);
      clusters.set(order, await systemOf(run, order).start(SETUP));
    }
    return await measureOn(clusters, run);
  } finally {
    await Promise.all([...clusters.values()].map((cluster) => cluster.close()));
  }
}

function systemOf({ memory, signal }: Run, order: Order): System {
  if (memory === 'machines') return machinesSystem(signal, order);
  return tram({ tree: TREE, memory, order, signal });
}

async function measureOn(
  clusters: ReadonlyMap<Order, RunningSystem>,
  { pairs, seconds, step }: Run,
): Promise<LoadCost[]> {
  const measureLoad = (
    order: Order,
    sets: readonly DestinationSet[],
    rung: Rung,
  ): Promise<Measurement> => {
    const warmUpSeconds = Math.min(seconds, WARM_UP_SECONDS_MAX);
    const load = { ...rung, sets, payloadBytes: SETUP.payloadBytesMax, warmUpSeconds, seconds };
    return measure(clusters.get(order)!, load);
  };
  const mix = mixedSets(OVERLAY);
  step('warm-up');
  for (const order of BOTH) await measureLoad(order, mix, MANY);
  const loads: [name: string, sets: readonly DestinationSet[]][] = [
    ...[1, 2, SETUP.groups].map((count): [string, DestinationSet[]] => [
      plural(count, 'group'),
      destinationSets(OVERLAY, 'rotating', count),
    ]),
    ['mix', mix],
  ];
  const costs: LoadCost[] = [];
  for (const [load, sets] of loads) {
    step(`${load}, one message at a time`);
    const alone = await inPairs(pairs, (order) => measureLoad(order, sets, ALONE));
    step(`${load}, ${IN_FLIGHT} messages in flight`);
    const many = await inPairs(pairs, (order) => measureLoad(order, sets, MANY));
    costs.push({
      load,
      latencyNsP50: compare(alone, ({ latencyNsP50 }) => latencyNsP50),
      messagesPerSecond: compare(many, rateOf),
    });
  }
  return costs;
}
