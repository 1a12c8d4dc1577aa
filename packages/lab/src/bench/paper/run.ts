/**
 * Runs experiments: round after round over all systems, so that whatever happens to the machine meanwhile
 * happens to all of them. Every point is written down as soon as it is measured; what is there already is
 * left out.
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

/** How far a run is. */
export class RunState {
  /** What is being measured. */
  what = 'nothing yet';
  /** Seconds as planned. */
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

  /** As planned, corrected by how long it has taken until now. */
  get secondsLeft(): number {
    const elapsed = (performance.now() - this.startedMs) / 1000;
    const slowness = (elapsed + TRUST_SECONDS) / (this.done + TRUST_SECONDS);
    return (this.planned - this.done) * slowness;
  }
}

/** The plan is believed until so much of it is done. */
const TRUST_SECONDS = 20;
const LOOK_MS = 60;
/** Whatever takes so much longer than planned has come to a standstill. */
const LIMIT_SECONDS = 60;
const PATIENCE = 10;

export interface RunOptions {
  readonly experiments: readonly Experiment[];
  readonly plan: Plan;
  readonly results: Results;
  readonly setting: Setting;
  readonly state?: RunState;
  /** Ends the run after the point that is being measured. */
  readonly signal?: AbortSignal;
  /** How long to look at what others do, before each session. */
  readonly lookMs?: number;
}

/** A session of one round, with what is left to measure. */
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
      // An interrupt from the keyboard reaches the processes of a system as well.
      if (signal?.aborted) break;
      const { experiment, session } = turn;
      state.failures.push({ experiment: experiment.name, system: session.system, error });
    }
    state.done = doneBefore + secondsOf(turn);
  }
  return state;
}

/** How long a run will take, if nothing has been measured yet. */
export function plannedSeconds(options: RunOptions): number {
  const turns = options.experiments.flatMap((experiment) => turnsOf(experiment, options));
  return turns.reduce((sum, turn) => sum + secondsOf(turn), 0);
}

function turnsOf(experiment: Experiment, { plan, results, setting }: RunOptions): Turn[] {
  if (experiment.lacks?.() !== undefined) return [];
  const sessions = experiment.sessions(plan);
  const rounds = Array.from({ length: roundsOf(experiment, plan.profile) }, (_, i) => i + 1);
  return rounds.flatMap((round) =>
    // Not always the same one first.
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
    const words = `it has not come to an end within ${Math.round(seconds)} s`;
    timer = setTimeout(() => reject(new Error(words)), seconds * 1000);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** How many cores are busy while nothing of ours runs. */
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
  state.what = `${experiment.name}: ${session.system} starts${where}`;
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
