/**
 * `tram-lab bench durable`: what durability costs. Three clusters that differ in nothing but their durability are measured in
 * turn, beside a bare loop of `write` and `fdatasync` on the same disk. With `recovery`, how long it takes to recover instead.
 */
import { type FileSystem, makeDiskFolder } from '../disk-folder.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { compareLoads, type LoadCosts } from './loads.js';
import { measureRecovery, type RecoveryCost, type RecoveryOptions } from './recovery.js';
import type { Run } from './setting.js';

export interface DurableOptions extends Pick<Run, 'memory' | 'loads' | 'rounds' | 'seconds'> {
  /** On the disk to measure. Default: a temporary folder. */
  readonly folder?: string;
  /** Measure recovery instead of loads; not across machines. */
  readonly recovery?: RecoveryOptions;
}

export interface DurableResult {
  readonly options: DurableOptions;
  readonly machine: ThisMachine;
  readonly disk: FileSystem;
  readonly costs?: LoadCosts;
  readonly recoveries?: readonly RecoveryCost[];
}

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchDurable(
  options: DurableOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<DurableResult> {
  const { memory, loads, rounds, seconds, recovery } = options;
  const step = (name: string): void => {
    signal.throwIfAborted();
    progress(name);
  };
  const machine = thisMachine();
  const { path, fileSystem: disk, remove } = makeDiskFolder(options.folder);
  const run: Run = { memory, loads, rounds, seconds, folder: path, step, signal };
  try {
    if (recovery === undefined) return { options, machine, disk, costs: await compareLoads(run) };
    if (memory === 'machines') throw new Error('recovery is not measured across machines');
    const recoveries = await measureRecovery({ ...run, memory }, recovery);
    return { options, machine, disk, recoveries };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    remove();
  }
}
