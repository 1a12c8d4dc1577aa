/** Clients of a cluster across machines as a load target. Each has an arena and a network of its own. */

import type { Wire } from 'tram-multicast/internal/hosting/duty.js';
import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { joinFrom } from 'tram-multicast/internal/hosting/machines/join.js';
import { pacingOf } from 'tram-multicast/internal/hosting/pacing.js';
import { latencyOf } from 'tram-multicast/internal/hosting/statistics.js';
import type { Parking } from 'tram-multicast/internal/memory/arena.js';
import type { Network } from 'tram-multicast/internal/memory/machines/network.js';
import { native } from 'tram-multicast/internal/memory/processes/native.js';
import { type LoadTarget, seatOf } from '../load/target.js';
import { sumOf } from './calls.js';

/** Clients of the public API spin as long. */
const SPIN_US = 2000;

/** @param configFile  the cluster file */
export async function machinesTarget(
  configFile: string,
  clients: number,
  pids: readonly number[],
): Promise<LoadTarget> {
  // All join concurrently: hosts would suspect a client that joined and then stays idle while others join.
  const joined = await Promise.all(Array.from({ length: clients }, () => joinFrom(configFile)));
  const { arena, map, config, network } = joined[0].context;
  const free = [...joined];
  return {
    arena: { words: arena.words, parking: parkingOf(network!), close: () => arena.close() },
    map,
    pacing: { ...pacingOf(config), spinUs: SPIN_US, relax: () => native().yieldProcessor() },
    callsMax: config.sizes.callsMax,
    wire: together(joined.map(({ context }) => context.network!)),
    calls: () => sumOf(joined.map(({ context }) => context.network!.calls)),
    pids,
    takeSeat: (listener) => {
      const { context, slot } = free.shift()!;
      return seatOf(context, slot, listener);
    },
    latency: () => {
      const total = Histogram.empty();
      for (const { context, slot } of joined) {
        total.add(latencyOf(context.arena.words, context.map, slot.participant));
      }
      return total;
    },
    // A client leaves the cluster when its seat is released.
    close: () => undefined,
  };
}

/** No other process shares a client's memory: the network wakes it. */
function parkingOf(network: Network): Parking {
  return { wait: (_at, _expected, timeoutUs) => network.wait(timeoutUs), wake: () => undefined };
}

function together(networks: readonly Network[]): Wire {
  if (networks.length === 1) return networks[0];
  return {
    poll: (nowUs) => {
      let wasAwaited = false;
      for (const network of networks) if (network.poll(nowUs)) wasAwaited = true;
      return wasAwaited;
    },
    flush: (nowUs, batchUs) => {
      for (const network of networks) network.flush(nowUs, batchUs);
    },
  };
}
