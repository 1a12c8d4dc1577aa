/** The memories under test. The suite itself does not know which one it has. */
import type { Stage } from './stage.js';
import { MachinesStage } from './stage-machines.js';
import { ProcessesStage, ThreadsStage } from './stage-shared.js';
import { SimulatedStage } from './stage-simulated.js';

export interface Backend {
  readonly name: string;
  readonly isSimulated: boolean;
  /**
   * Do all participants map all regions, and do regions outlive their owners? Otherwise writes go to the host of the peer, and
   * are lost while it is down.
   */
  readonly isShared: boolean;
  /** Do the words of a write land in their order? The contract does not promise it. */
  readonly landsInOrder: boolean;
  /** Why its participants cannot be stopped from outside; undefined if they can. */
  readonly cantPause: string | undefined;
  /** The number of stages, each with another seed, and the number of rounds on each. */
  readonly stages: number;
  rounds(counts: { shared: number; simulated: number; machines?: number }): number;
  open(number: number): Promise<Stage>;
  /** A stage on which regions are out of reach while their owners are down; undefined if that never happens. */
  readonly openOnMachines?: (number: number) => Promise<Stage>;
  /** A stage on which a peer that does not answer is given up soon. */
  readonly openImpatient?: (number: number) => Promise<Stage>;
}

export const simulated: Backend = {
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
  cantPause: 'a thread cannot be stopped from outside',
  stages: 1,
  rounds: (counts) => counts.shared,
  open: async (number) => new ThreadsStage(number + 1),
};

const participants: Backend = {
  name: 'processes',
  isSimulated: false,
  isShared: true,
  landsInOrder: false,
  cantPause: undefined,
  stages: 1,
  rounds: (counts) => counts.shared,
  open: async (number) => new ProcessesStage(number + 1),
};

/** A round takes a round trip over the network. */
const SLOWNESS = 50;

export const machines: Backend = onMachines('machines', false);

/** Hosts of one machine, which map each other's arenas. */
export const oneMachine: Backend = onMachines('one machine', true);

function onMachines(name: string, areOnOneMachine: boolean): Backend {
  const open = (number: number, patienceUs?: number) =>
    MachinesStage.open(number + 1, areOnOneMachine, patienceUs);
  return {
    name,
    isSimulated: false,
    isShared: false,
    landsInOrder: true,
    cantPause: undefined,
    stages: 1,
    rounds: (counts) => counts.machines ?? Math.ceil(counts.shared / SLOWNESS),
    open: (number) => open(number),
    openOnMachines: (number) => open(number),
    openImpatient: (number) => open(number, 2_000_000),
  };
}

/** Processes need Linux. */
export const sharedBackends: readonly Backend[] =
  process.platform === 'linux' ? [threads, participants] : [threads];
