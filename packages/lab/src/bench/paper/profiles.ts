/**
 * How much is measured: `--quick` has every figure within six minutes; `--full` has every point of the paper's figures, longer
 * and more often, within an hour. The planned duration of a run follows from these numbers (`experiment.ts`). It assumes the
 * start-up times of the machine on which they were chosen.
 */
import type { Rung } from '../load/saturation.js';

export interface Timing {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Profile {
  readonly name: string;
  /** Every round measures all systems. */
  readonly rounds: number;
  /** The warm-up after a system has started. */
  readonly startUp: Timing;
  /** The timing of each measurement. */
  readonly timing: Timing;
  /** The loads of a search for saturation. */
  readonly ladder: readonly Rung[];
  readonly patience: number;
  /** Numbers of destinations of messages, and of targets of writes. */
  readonly destinations: readonly number[];
  readonly payloads: readonly number[];
  readonly replicas: readonly number[];
  /** For the experiments on scaling. */
  readonly groups: readonly number[];
  readonly clients: readonly number[];
  readonly outstanding: readonly number[];
  /** Number of leader changes for each cause. */
  readonly changes: number;
}

const KIB = 1024;

export const QUICK: Profile = {
  name: 'quick',
  rounds: 2,
  startUp: { warmUpSeconds: 0.2, seconds: 0.1 },
  timing: { warmUpSeconds: 0.1, seconds: 0.15 },
  ladder: [
    { clients: 1, outstanding: 64 },
    { clients: 1, outstanding: 256 },
    { clients: 1, outstanding: 1024 },
    { clients: 4, outstanding: 512 },
    { clients: 8, outstanding: 1024 },
  ],
  patience: 1,
  destinations: [1, 2, 4, 8],
  payloads: [32, KIB, 16 * KIB, 64 * KIB],
  replicas: [1, 3, 5, 7],
  groups: [1, 4, 16, 64],
  clients: [1, 8, 64, 256],
  outstanding: [1, 8, 64, 256, 1024],
  changes: 3,
};

export const FULL: Profile = {
  name: 'full',
  rounds: 3,
  startUp: { warmUpSeconds: 0.5, seconds: 0.5 },
  timing: { warmUpSeconds: 0.25, seconds: 0.6 },
  ladder: [
    { clients: 1, outstanding: 16 },
    { clients: 1, outstanding: 64 },
    { clients: 1, outstanding: 256 },
    { clients: 1, outstanding: 1024 },
    { clients: 4, outstanding: 512 },
    { clients: 4, outstanding: 1024 },
    { clients: 8, outstanding: 1024 },
  ],
  patience: 2,
  destinations: [1, 2, 3, 4, 5, 6, 7, 8],
  payloads: [32, 64, 128, 256, 512, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB],
  replicas: [1, 3, 5, 7],
  groups: [1, 2, 4, 8, 16, 32, 64],
  clients: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  outstanding: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
  changes: 10,
};
