/**
 * Runs experiments: round after round over all systems, so that a disturbance of the machine affects all systems alike. Every
 * result is stored at once; points that have a result are skipped.
 */
import { cpus } from 'node:os';
import { type Experiment, type Plan, roundsOf, type Session, type Task } from './experiment.js';
import type { Results } from './results.js';
import type { Setting } from './setting.js';

export interface Failure {
  readonly experiment: string;
  readonly system: string;
  readonly error: unknown;
}

/** The progress of a run. */
export class RunState {
  /** What is measured now, for the progress display. */
  what = 'nothing yet';
  /** In seconds. */
  planned = 0;
  done = 0;
  measured = 0;
  points = 0;
  readonly failures: Failure[] = [];
  private startedMs = 0;

  begin(planned: number, points: number): void {
    this.planned = planned;
    this.points = points;
    this.startedMs = performance.now();
  }

  /** The plan, corrected by the speed so far. */
  get secondsLeft(): number {
    const elapsed = (performance.now() - this.startedMs) / 1000;
    const slowness = (elapsed + TRUST_SECONDS) / (this.done + TRUST_SECONDS);
    return (this.planned - this.done) * slowness;
  }
}

/** The correction has full weight only after this much of the plan. */
const TRUST_SECONDS = 20;
const LOOK_MS = 60;
/** A step that takes this much longer than planned is stuck. */
const LIMIT_SECONDS = 60;
const PATIENCE = 10;

export interface RunOptions {
  readonly experiments: readonly Experiment[];
  readonly plan: Plan;
  readonly results: Results;
  readonly setting: Setting;
  readonly state?: RunState;
  /** Ends the run after the current point. */
  readonly signal?: AbortSignal;
  /** How long to sample the load of other programs before each session. */
  readonly lookMs?: number;
}

/** A session of one round, with the tasks that have no result yet. */
interface Turn {
  readonly experiment: Experiment;
  readonly session: Session;
  readonly round: number;
  readonly tasks: readonly Task[];
}

export async function run(options: RunOptions): Promise<RunState> {
  const { state = new RunState(), signal } = options;
  const turns = options.experiments.flatMap((experiment) => turnsOf(experiment, options));
  state.begin(
    turns.reduce((sum, turn) => sum + secondsOf(turn), 0),
    turns.reduce((sum, { tasks }) => sum + tasks.length, 0),
  );
  for (const turn of turns) {
    if (signal?.aborted) break;
    const doneBefore = state.done;
    try {
      await take(turn, options, state);
    } catch (error) {
      // Ctrl-C reaches the processes of the system as well.
      if (signal?.aborted) break;
      const { experiment, session } = turn;
      state.failures.push({ experiment: experiment.name, system: session.system, error });
    }
    state.done = doneBefore + secondsOf(turn);
  }
  return state;
}

/** The planned duration of a run. */
export function plannedSeconds(options: RunOptions): number {
  const turns = options.experiments.flatMap((experiment) => turnsOf(experiment, options));
  return turns.reduce((sum, turn) => sum + secondsOf(turn), 0);
}

function turnsOf(experiment: Experiment, { plan, results, setting }: RunOptions): Turn[] {
  if (experiment.lacks?.() !== undefined) return [];
  const sessions = experiment.sessions(plan);
  const rounds = Array.from({ length: roundsOf(experiment, plan.profile) }, (_, i) => i + 1);
  return rounds.flatMap((round) =>
    // Each round starts with another system.
    rotated(sessions, round - 1).flatMap((session) => {
      const tasks = session.tasks.filter(({ point }) => !results.has(point, round, setting));
      return tasks.length === 0 ? [] : [{ experiment, session, round, tasks }];
    }),
  );
}

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function secondsOf({ session, tasks }: Turn): number {
  return tasks.reduce((sum, task) => sum + task.seconds, session.startSeconds + LOOK_MS / 1000);
}

async function within<Value>(seconds: number, work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const words = `it did not finish within ${Math.round(seconds)} s`;
    timer = setTimeout(() => reject(new Error(words)), seconds * 1000);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** Cores that are busy while the benchmark is idle. */
async function busyCores(ms: number): Promise<number> {
  const busyMs = (): number =>
    cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const [before, beforeMs] = [busyMs(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, ms));
  const cores = (busyMs() - before) / (performance.now() - beforeMs);
  return Math.round(cores * 100) / 100;
}

async function take(turn: Turn, options: RunOptions, state: RunState): Promise<void> {
  const { experiment, session, round, tasks } = turn;
  const { results, setting, signal, plan } = options;
  const rounds = roundsOf(experiment, plan.profile);
  const where = rounds > 1 ? `, round ${round} of ${rounds}` : '';
  state.what = `${experiment.name}: starting ${session.system}${where}`;
  const othersCores = await busyCores(options.lookMs ?? LOOK_MS);
  const started = await within(LIMIT_SECONDS, session.start());
  try {
    state.done += session.startSeconds;
    for (const task of tasks) {
      if (signal?.aborted) return;
      const { point } = task;
      state.what = `${experiment.name}: ${point.series}, ${point.measure} at ${point.x}${where}`;
      const limit = LIMIT_SECONDS + PATIENCE * task.seconds;
      const outcome = await within(limit, started.take(task));
      const at = new Date().toISOString();
      results.add({ ...point, round, ...outcome, setting, othersCores, at });
      state.done += task.seconds;
      state.measured++;
    }
  } finally {
    await within(LIMIT_SECONDS, started.close());
  }
}
