/** The memories under test. The suite itself does not know which one it has. */
import type { Stage } from './stage.js';
import { ProcessesStage, ThreadsStage } from './stage-shared.js';
import { SimulatedStage } from './stage-simulated.js';

export interface Backend {
  readonly name: string;
  readonly isSimulated: boolean;
  /** Why one of its processes can't be stopped from outside; undefined if it can. */
  readonly cantPause: string | undefined;
  /** How many stages show something new, and how many rounds on each. */
  readonly stages: number;
  rounds(counts: { shared: number; simulated: number }): number;
  open(number: number): Promise<Stage>;
}

const simulated: Backend = {
  name: 'simulated',
  isSimulated: true,
  cantPause: undefined,
  stages: 40,
  rounds: (counts) => counts.simulated,
  open: async (number) => new SimulatedStage(number + 1),
};

const threads: Backend = {
  name: 'threads',
  isSimulated: false,
  cantPause: 'a thread can not be stopped from outside',
  stages: 1,
  rounds: (counts) => counts.shared,
  open: async (number) => new ThreadsStage(number + 1),
};

const processes: Backend = {
  name: 'processes',
  isSimulated: false,
  cantPause: undefined,
  stages: 1,
  rounds: (counts) => counts.shared,
  open: async (number) => new ProcessesStage(number + 1),
};

/** Linux alone has what processes need; elsewhere they are not a backend. */
export const backends: Backend[] =
  process.platform === 'linux' ? [simulated, threads, processes] : [simulated, threads];
