/** A measured system: TRAM on one of its trees, or a system that it is compared with. Implemented in this folder. */
import type { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import type { Calls } from 'tram-multicast/internal/memory/fabric/calls.js';
import type { LoadOptions } from '../load/load.js';

export interface Setup {
  readonly groups: number;
  /** Members of each group; a system without replication takes 1 only. */
  readonly replicas: number;
  /** Upper bounds for all loads. */
  readonly clientsMax: number;
  readonly outstandingMax: number;
  readonly payloadBytesMax: number;
}

export interface Load extends LoadOptions {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** From the offer of a message to its last reply. */
export interface Latencies {
  readonly latencyNsP50: number;
  readonly latencyNsP90: number;
  readonly latencyNsP99: number;
  readonly latencyNsP999: number;
  readonly latencyNsMax: number;
}

export function latenciesIn(histogram: Histogram): Latencies {
  return {
    latencyNsP50: histogram.percentile(50),
    latencyNsP90: histogram.percentile(90),
    latencyNsP99: histogram.percentile(99),
    latencyNsP999: histogram.percentile(99.9),
    latencyNsMax: histogram.max,
  };
}

export interface LoadReport extends Latencies {
  readonly messages: number;
  readonly seconds: number;
  /** Messages that were not answered in time. */
  readonly unanswered: number;
}

export interface Measurement extends LoadReport {
  /** Cores that replicas and clients kept busy, on average. */
  readonly coresUsed: number;
  /** What the clients have asked of the network, if there is one between them and the replicas. */
  readonly calls?: Calls;
}

export interface RunningSystem {
  measure(load: Load): Promise<Measurement>;
  close(): Promise<void>;
}

export interface System {
  /** Its name in the figures: `TRAM base`, `RamCast`, `Skeen`. */
  readonly name: string;
  /** Estimated duration of its start, if it is unusually long. */
  readonly startSeconds?: number;
  start(setup: Setup): Promise<RunningSystem>;
}
