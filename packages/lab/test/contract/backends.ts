/** The memories under test. The suite itself does not know which one it has. */
import type { Stage } from './stage.js';
import { MachinesStage } from './stage-machines.js';
import { ProcessesStage, ThreadsStage } from './stage-shared.js';
import { SimulatedStage } from './stage-simulated.js';

export interface Backend {
  readonly name: string;
  readonly isSimulated: boolean;
  /**
   * Are its regions before all processes, and do they outlive those who own them? Else what is posted goes to the
   * host of the peer, and is lost while there is none.
   */
  readonly isShared: boolean;
  /** Nothing is promised of the order in which the words of a write land; but there is one. */
  readonly landsInOrder: boolean;
  /** Why one of its processes can't be stopped from outside; undefined if it can. */
  readonly cantPause: string | undefined;
  /** How many stages show something new, and how many rounds on each. */
  readonly stages: number;
  rounds(counts: { shared: number; simulated: number; hosts?: number }): number;
  open(number: number): Promise<Stage>;
  /** The same, with regions out of reach while their processes are not there; undefined if they never are. */
  readonly openOnMachines?: (number: number) => Promise<Stage>;
  /** The same, where one that does not answer is given up soon. */
  readonly openImpatient?: (number: number) => Promise<Stage>;
}

const simulated: Backend = {
  name: 'simulated',
  isSimulated: true,
  isShared: false,
  landsInOrder: false,
  cantPause: undefined,
  stages: 40,
  rounds: (counts) => counts.simulated,
  open: async (number) => new SimulatedStage(number + 1),
  openOnMachines: async (number) => new SimulatedStage(number + 1, true),
};

const threads: Backend = {
  name: 'threads',
  isSimulated: false,
  isShared: true,
  landsInOrder: false,
  cantPause: 'a thread can not be stopped from outside',
  stages: 1,
  rounds: (counts) => counts.shared,
  open: async (number) => new ThreadsStage(number + 1),
};

const processes: Backend = {
  name: 'processes',
  isSimulated: false,
  isShared: true,
  landsInOrder: false,
  cantPause: undefined,
  stages: 1,
  rounds: (counts) => counts.shared,
  open: async (number) => new ProcessesStage(number + 1),
};

/** Where a round takes a way over the network and back. */
const SLOWNESS = 50;

const hosts: Backend = {
  name: 'machines',
  isSimulated: false,
  isShared: false,
  landsInOrder: true,
  cantPause: undefined,
  stages: 1,
  rounds: (counts) => counts.hosts ?? Math.ceil(counts.shared / SLOWNESS),
  open: (number) => MachinesStage.open(number + 1),
  openOnMachines: (number) => MachinesStage.open(number + 1),
  openImpatient: (number) => MachinesStage.open(number + 1, 2_000_000),
};

/** Linux alone has what processes and hosts need; elsewhere they are no backends. */
export const backends: Backend[] =
  process.platform === 'linux' ? [simulated, threads, processes, hosts] : [simulated, threads];
