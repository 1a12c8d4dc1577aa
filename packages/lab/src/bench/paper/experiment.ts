/**
 * What an experiment is: sessions that are measured round after round, and how their results are shown and
 * compared with what the paper found. `run.ts` runs them, `report.ts` shows them, `experiments/` has them all.
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
  /** For experiments that work on either. */
  readonly memory: BenchMemory;
  readonly systems: Systems;
}

/** One system, started once, and what is measured on it. */
export interface Session {
  readonly system: string;
  /** How long start, warm-up and end take, about. */
  readonly startSeconds: number;
  readonly tasks: readonly Task[];
  start(): Promise<Started>;
}

export interface Task {
  readonly point: Point;
  /** How long it takes, about. */
  readonly seconds: number;
}

export interface Started {
  take(task: Task): Promise<Outcome>;
  close(): Promise<void>;
}

export interface Finding {
  /** What the paper says; none for what goes beyond it. */
  readonly paper?: string;
  /** The same here, from the results; none if something for it was not measured. */
  readonly here?: string;
  readonly agrees?: boolean;
  /** Where it differs. */
  readonly why?: string;
}

/** What findings may look at besides their own results. */
export interface Context {
  readonly setting: Setting;
  /** The results of another experiment; empty if there are none that fit. */
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
  /** Where it is in the paper. */
  readonly section: string;
  /** What is measured, and how. */
  readonly about: string;
  readonly systems: readonly SystemName[];
  /** If not as many as the profile has. */
  rounds?(profile: Profile): number;
  /** What this machine lacks for it, as a sentence: then it is not measured. */
  lacks?(): string | undefined;
  sessions(plan: Plan): Session[];
  figures(summary: Summary): Omit<Figure, 'caption'>[];
  findings(summary: Summary, context: Context): Finding[];
  /** Instead of the table of all points. */
  tables?(summary: Summary): Table[];
}

export function roundsOf(experiment: Experiment, profile: Profile): number {
  return experiment.rounds?.(profile) ?? profile.rounds;
}

export function missingSystems({ systems }: Experiment, available: Systems): SystemName[] {
  return systems.filter((name) => available[name] === undefined);
}
