/** TRAM across machines as a `System`: one process for each host, on the loopback, and clients in a process of their own. */
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { runLoad } from '../load/run.js';
import type { RunningSystem, System } from '../systems/system.js';
import { type MachinesCluster, startCluster } from './cluster.js';

/** Hosts start, connect to each other, and elect leaders. */
const START_SECONDS = 2;

/** @param signal  aborts a measurement, and the start of a cluster */
export function machinesSystem(
  signal: AbortSignal = new AbortController().signal,
  order?: Order,
): System {
  return {
    name: 'TRAM machines',
    startSeconds: START_SECONDS,
    start: async (setup) => loadOn(await startCluster(setup, signal, { order }), signal),
  };
}

export function loadOn(cluster: MachinesCluster, signal: AbortSignal): RunningSystem {
  const { configFile: address, pids } = cluster;
  return {
    measure: (load) => runLoad('processes', { ...load, system: 'machines', address, pids }, signal),
    close: () => cluster.close(),
  };
}
