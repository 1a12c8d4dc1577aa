/**
 * How much is measured: `--quick` shows every figure within six minutes, `--full` takes every point of the
 * paper's figures, longer and more often, within an hour. The time that a run takes follows from these
 * numbers (`experiment.ts`), on any machine that starts hosts about as fast as ours.
 */
import type { Rung } from '../load/saturation.js';

export interface Timing {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Profile {
  readonly name: string;
  /** How often everything is measured: all systems, then all of them again. */
  readonly rounds: number;
  /** After a system has started, before its first point. */
  readonly startUp: Timing;
  /** Of each measurement. */
  readonly timing: Timing;
  /** Where saturation is looked for. */
  readonly ladder: readonly Rung[];
  readonly patience: number;
  /** How many groups messages go to, and how many targets writes. */
  readonly destinations: readonly number[];
  readonly payloads: readonly number[];
  readonly replicas: readonly number[];
  /** For the experiments on scaling. */
  readonly groups: readonly number[];
  readonly clients: readonly number[];
  readonly outstanding: readonly number[];
  /** Leader changes of each kind. */
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
