/**
 * What an experiment is: sessions that are measured in every round, the figures of their results, and the comparison with the
 * findings of the paper. `experiments/` has all experiments, `run.ts` runs them, `report.ts` reports them.
 */
import type { Figure } from '../figures/figure.js';
import type { BenchMemory } from '../load/run.js';
import type { Profile } from './profiles.js';
import type { Outcome, Point } from './results.js';
import type { Setting } from './setting.js';
import type { Summary } from './summary.js';
import type { SystemName, Systems } from './systems.js';

export interface Plan {
  readonly profile: Profile;
  /** For experiments that work on both kinds of memory. */
  readonly memory: BenchMemory;
  readonly systems: Systems;
}

/** One system, started once, and the points that are measured on it. */
export interface Session {
  readonly system: string;
  /** Estimated duration of start, warm-up and end. */
  readonly startSeconds: number;
  readonly tasks: readonly Task[];
  start(): Promise<Started>;
}

export interface Task {
  readonly point: Point;
  /** Estimated duration. */
  readonly seconds: number;
}

export interface Started {
  take(task: Task): Promise<Outcome>;
  close(): Promise<void>;
}

export interface Finding {
  /** The finding of the paper; none for experiments beyond it. */
  readonly paper?: string;
  /** The finding here, computed from the results; none if some of them are missing. */
  readonly here?: string;
  readonly agrees?: boolean;
  /** The reason, if the findings differ. */
  readonly why?: string;
}

/** What findings may use besides the results of their own experiment. */
export interface Context {
  readonly setting: Setting;
  /** The results of another experiment with the same setting; may be empty. */
  summaryOf(experiment: string): Summary;
}

export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Experiment {
  readonly name: string;
  readonly title: string;
  /** The section of the paper. */
  readonly section: string;
  /** What is measured and how, in sentences. */
  readonly about: string;
  readonly systems: readonly SystemName[];
  /** If it differs from the profile's. */
  rounds?(profile: Profile): number;
  /** What this machine lacks, as a sentence: the experiment is then skipped. */
  lacks?(): string | undefined;
  sessions(plan: Plan): Session[];
  figures(summary: Summary): Omit<Figure, 'caption'>[];
  findings(summary: Summary, context: Context): Finding[];
  /** Replaces the table of all points. */
  tables?(summary: Summary): Table[];
}

export function roundsOf(experiment: Experiment, profile: Profile): number {
  return experiment.rounds?.(profile) ?? profile.rounds;
}

export function missingSystems({ systems }: Experiment, available: Systems): SystemName[] {
  return systems.filter((name) => available[name] === undefined);
}
