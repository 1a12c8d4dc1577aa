/** TRAM on processes, measured by the same rule as its peers: all destinations have delivered and replied. */
import { Cluster } from '../../cluster.js';
import type { LoadJob } from '../load-worker.js';
import type { Load, Measurement, RunningSystem, Setup } from '../system.js';
import { forkLoad } from './peer.js';
import { cpuSecondsOf } from './servers.js';

const TREE = 'breadth';

export const TRAM = {
  id: 'tram',
  name: 'TRAM, processes',
  version: '',
  guarantee: {
    brief: 'one order across all groups',
    full:
      'Each group is replicated by consensus (2 of 3); no two replicas of any groups disagree on the order of what ' +
      'both deliver; a message is delivered by all its destinations or by none. It runs on one machine and in memory.',
  },
  /** Its rings hold fewer, and are full long before. */
  outstandingMax: 8 ** 4,
  conditions: `eight groups of three replicas on processes, ${TREE} tree; a shard is a group`,
} as const;

const RING_BYTES = { logBytes: 1 << 18, inboxBytes: 1 << 16, feedBytes: 1 << 16 } as const;

export async function startTram(setup: Setup, signal: AbortSignal): Promise<RunningSystem> {
  const { groups, replicas, clientsMax, outstandingMax, payloadBytesMax } = setup;
  const cluster = await Cluster.start({
    ...{ memory: 'processes', groups, replicas, tree: TREE, payloadBytesMax },
    ...RING_BYTES,
    clients: clientsMax + 1,
    callsMax: outstandingMax,
    replyBytesMax: 16,
  });
  return {
    measure: (load) => measure(cluster, load, signal),
    close: () => (signal.aborted ? cluster.destroy() : cluster.close()),
  };
}

async function measure(cluster: Cluster, load: Load, signal: AbortSignal): Promise<Measurement> {
  const job: LoadJob = { ...load, address: cluster.address };
  const cpuSeconds = (): number =>
    cluster.status().hosts.reduce((sum, { pid }) => sum + cpuSecondsOf(pid), 0);
  const cpuBefore = cpuSeconds();
  const startedMs = performance.now();
  const report = await forkLoad(new URL('../load-worker.js', import.meta.url), job, signal);
  const elapsed = (performance.now() - startedMs) / 1000;
  return { ...report, coresUsed: (cpuSeconds() - cpuBefore + report.cpuSeconds) / elapsed };
}
