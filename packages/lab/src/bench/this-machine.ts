/** What the results of a benchmark say of the machine that it ran on. */
import { cpus, loadavg } from 'node:os';

export interface ThisMachine {
  readonly cores: number;
  readonly model: string;
  readonly node: string;
  /** Of the minute before: the load of other programs. */
  readonly loadAverage: number;
}

export function thisMachine(): ThisMachine {
  return {
    cores: cpus().length,
    model: cpus()[0]?.model ?? 'unknown',
    node: process.version,
    loadAverage: loadavg()[0],
  };
}
