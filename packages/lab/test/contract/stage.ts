/** What the suite sees of a memory under test: a stage on which several processes act. */
import type { Arena, ArenaMap } from 'tram-multicast/internal/memory/arena.js';
import type { ProcessId } from 'tram-multicast/internal/memory/contract.js';
import type { Random } from '../../src/sim/random.js';
import type { Puppet } from './play.mjs';

/** The same, of somebody who may be in another thread or process. */
export type Remote<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : never;
};

/** A player at work. */
export interface Playing {
  /** Resolves once it is done. */
  result<T>(): Promise<T>;
}

/** One life of one process. */
export interface Actor {
  readonly incarnation: number;
  readonly puppet: Remote<Puppet>;
  play(name: string, options: object): Playing;
  /** It ends here and now, whatever it is doing; resolves when it has ended. */
  kill(): Promise<void>;
  /** It stops here and now, whatever it is doing, until `goOn`. */
  pause(): Promise<void>;
  goOn(): void;
}

export interface Stage {
  readonly random: Random;
  /** A process begins a life. @param resumes  with its region as it is */
  begin(process: ProcessId, resumes?: boolean): Promise<Actor>;
  /** Let those who are at work go on for a while, never the same. */
  aWhile(): Promise<void>;
  /** Let them go on until a word of a process's region is this, or more. */
  until(process: ProcessId, at: number, value: number): Promise<void>;
  /** A word of a process's region, whether it is alive or not. */
  word(process: ProcessId, at: number): number;
  close(): Promise<void>;
}

/** On shared memory there is more to see. */
export interface SharedStage extends Stage {
  readonly arena: Arena;
  readonly map: ArenaMap;
  /** The platform notices that a process has ended, as hosts do (hosting/host-process.ts). */
  noteEnd(process: ProcessId): void;
}

export function isShared(stage: Stage): stage is SharedStage {
  return 'arena' in stage;
}
