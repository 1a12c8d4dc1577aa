/**
 * The clusters of `tram-lab bench durable`: one for each durability, alike in everything else. They are started at the
 * beginning. Those that are not measured are idle, and their hosts are parked.
 */
import { join } from 'node:path';
import { Cluster } from 'tram-multicast/internal/cluster.js';
import type { JournalStatus } from 'tram-multicast/internal/hosting/journal-status.js';
import type { ClusterStatus } from 'tram-multicast/internal/hosting/status.js';
import type { Durability } from 'tram-multicast/internal/protocol/edges.js';
import { measure } from '../load/measure.js';
import { startCluster } from '../machines/cluster.js';
import { loadOn } from '../machines/system.js';
import type { Load, Measurement } from '../systems/system.js';
import { type RunningTram, startTram } from '../systems/tram.js';
import { MODES, type Run, SETUP, TREE } from './setting.js';

/** What the journals of all hosts did during a measurement, its warm-up included. */
export interface Journaled {
  readonly syncs: number;
  readonly bytes: number;
  readonly seconds: number;
}

export interface DurableMeasurement extends Measurement {
  readonly journaled: Journaled;
}

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
    const before = journals(cluster.status());
    const startedMs = performance.now();
    const measurement = await measure(cluster, load);
    const seconds = (performance.now() - startedMs) / 1000;
    const after = journals(cluster.status());
    const grown = (read: (journal: JournalStatus) => number): number =>
      after.reduce((sum, journal, host) => sum + read(journal) - read(before[host]), 0);
    const syncs = grown((journal) => journal.syncs);
    const bytes = grown(({ syncedBytes }) => syncedBytes);
    return { ...measurement, journaled: { syncs, bytes, seconds } };
  }

  async close(): Promise<void> {
    await Promise.all([...this.byMode.values()].map((cluster) => cluster.close()));
  }
}

function journals({ hosts }: ClusterStatus): JournalStatus[] {
  return hosts.flatMap(({ journal }) => journal ?? []);
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
