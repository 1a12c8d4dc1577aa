/**
 * The clusters of `tram-lab bench durable`: one for each durability, alike in everything else. They are started at the
 * beginning. Those that are not measured are idle, and their hosts are parked.
 */
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Cluster } from 'tram-multicast/internal/cluster.js';
import { groupsOf } from 'tram-multicast/internal/hosting/service.js';
import type { ClusterStatus } from 'tram-multicast/internal/hosting/status.js';
import type { JournalStatus } from 'tram-multicast/internal/journal/status.js';
import type { Durability } from 'tram-multicast/internal/protocol/edges.js';
import { measure, rateOf } from '../load/measure.js';
import { startCluster } from '../machines/cluster.js';
import { loadOn } from '../machines/system.js';
import type { Load, Measurement } from '../systems/system.js';
import { type RunningTram, startTram } from '../systems/tram.js';
import { MODES, type Run, SETUP, TREE } from './setting.js';

/** What the journals of all hosts did during a measurement. */
export interface Journaled {
  readonly bytesPerSync: number;
  readonly bytesPerSecond: number;
}

export interface DurableMeasurement extends Measurement {
  readonly journaled: Journaled;
}

const NOTED_MS = 300;

export class Clusters {
  private constructor(private readonly byMode: ReadonlyMap<Durability, RunningTram>) {}

  static async start(run: Run): Promise<Clusters> {
    const byMode = new Map<Durability, RunningTram>();
    const clusters = new Clusters(byMode);
    try {
      for (const mode of MODES) {
        run.step(`starting a cluster with durability ${mode}`);
        byMode.set(mode, await start(run, mode));
      }
      return clusters;
    } catch (error) {
      await clusters.close();
      throw error;
    }
  }

  /** The hosts of each cluster. */
  get hosts(): number {
    return this.byMode.get('none')!.status().hosts.length;
  }

  async measure(mode: Durability, load: Load): Promise<DurableMeasurement> {
    const cluster = this.byMode.get(mode)!;
    const before = cluster.status();
    const measurement = await measure(cluster, load);
    // Hosts note what their journals have done several times a second.
    await setTimeout(NOTED_MS);
    const after = cluster.status();
    const syncs = grown(before, after, (journal) => journal.syncs);
    const bytes = grown(before, after, ({ syncedBytes }) => syncedBytes);
    // The warm-up counts for these, so the duration of the measurement does not tell.
    const deliveries = deliveriesOf(after) - deliveriesOf(before);
    const bytesPerMessage = (bytes / deliveries) * deliveriesPerMessage(load);
    const bytesPerSecond = bytesPerMessage * rateOf(measurement);
    return { ...measurement, journaled: { bytesPerSync: bytes / syncs, bytesPerSecond } };
  }

  async close(): Promise<void> {
    await Promise.all([...this.byMode.values()].map((cluster) => cluster.close()));
  }
}

/** The messages that all groups have delivered. */
export function deliveriesOf({ groups }: ClusterStatus): number {
  const delivered = groups.map(({ replicas }) => Math.max(...replicas.map((one) => one.messages)));
  return delivered.reduce((sum, count) => sum + count, 0);
}

/** One for each destination. */
function deliveriesPerMessage({ sets }: Load): number {
  const destinations = sets.map(({ low, high }) => groupsOf(low, high).length);
  return destinations.reduce((sum, count) => sum + count, 0) / sets.length;
}

/** Of all journals together. */
function grown(
  before: ClusterStatus,
  after: ClusterStatus,
  read: (journal: JournalStatus) => number,
): number {
  const sum = ({ hosts }: ClusterStatus): number =>
    hosts.reduce((total, { journal }) => total + (journal === undefined ? 0 : read(journal)), 0);
  return sum(after) - sum(before);
}

async function start(
  { memory, folder, signal }: Run,
  durability: Durability,
): Promise<RunningTram> {
  const durable = durability === 'none' ? {} : { durability, journal: join(folder, durability) };
  if (memory !== 'machines') return startTram({ tree: TREE, memory, signal, ...durable }, SETUP);
  const cluster = await startCluster(SETUP, signal, durable);
  const running = loadOn(cluster, signal);
  const attached = await Cluster.attach(cluster.configFile);
  return {
    ...running,
    status: () => attached.status(),
    close: async () => {
      await attached.close();
      await running.close();
    },
  };
}
