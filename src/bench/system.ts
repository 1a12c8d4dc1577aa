/** What is measured, whatever system it is: TRAM on one of its trees, or one of those it is compared with. */
import type { LoadOptions } from './load.js';
import type { LoadReport } from './load-worker.js';

export interface Setup {
  readonly groups: number;
  /** Members of each group; a system without replication takes 1 only. */
  readonly replicas: number;
  /** The most that any load on it will ask for. */
  readonly clientsMax: number;
  readonly outstandingMax: number;
  readonly payloadBytesMax: number;
}

export interface Load extends LoadOptions {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Measurement extends LoadReport {
  /** Cores busy on average, of everyone who takes part: replicas and clients. */
  readonly coresUsed: number;
}

export interface RunningSystem {
  measure(load: Load): Promise<Measurement>;
  close(): Promise<void>;
}

export interface System {
  /** As in the figures: `TRAM base`, `RamCast`, `Skeen`. */
  readonly name: string;
  start(setup: Setup): Promise<RunningSystem>;
}
