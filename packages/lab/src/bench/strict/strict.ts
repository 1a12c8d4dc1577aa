/**
 * `tram-lab bench strict`: what `order: 'strict'` costs, compared with `multicast`. Two clusters that differ in nothing but
 * their order are measured in turn, pair by pair (`pairs.ts`).
 */
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { type ChangesCost, compareChanges } from './changes.js';
import { compareLoads, type LoadCost } from './loads.js';
import type { Run } from './setting.js';

export type Part = 'loads' | 'changes';

export interface StrictOptions extends Pick<Run, 'memory' | 'pairs' | 'seconds'> {
  /** Default: both parts. */
  readonly only?: Part;
}

export interface StrictResult {
  readonly options: StrictOptions;
  readonly machine: ThisMachine;
  readonly loads: readonly LoadCost[];
  readonly changes: readonly ChangesCost[];
}

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchStrict(
  options: StrictOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<StrictResult> {
  const { only, ...rest } = options;
  const step = (name: string): void => {
    signal.throwIfAborted();
    progress(name);
  };
  const run: Run = { ...rest, step, signal };
  const machine = thisMachine();
  try {
    const loads = only === 'changes' ? [] : await compareLoads(run);
    const changes = only === 'loads' ? [] : await compareChanges(run);
    return { options, machine, loads, changes };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
