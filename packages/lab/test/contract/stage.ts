/** A memory under test, as the suite sees it: a stage on which several participants act. */
import type { Arena, ArenaMap } from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import type { Random } from '../../src/sim/random.js';
import type { Puppet } from './play.mjs';

/** The same methods, executed in another thread or process. */
export type Remote<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : never;
};

/** A running player. */
export interface Playing {
  /** Resolves once it is done. */
  result<T>(): Promise<T>;
}

/** One incarnation of a participant. */
export interface Actor {
  readonly incarnation: number;
  readonly puppet: Remote<Puppet>;
  play(name: string, options: object): Playing;
  /** Ends it at once, in the middle of its work; resolves when it has ended. */
  kill(): Promise<void>;
  /** Stops it at once, in the middle of its work, until `goOn`. */
  pause(): Promise<void>;
  goOn(): void;
}

export interface Stage {
  readonly random: Random;
  /** Begins an incarnation of a participant. @param resumes  with its region as it is */
  begin(participant: ParticipantId, resumes?: boolean): Promise<Actor>;
  /** Lets the players run for a random time. */
  aWhile(): Promise<void>;
  /** Lets the players run until a word of a participant's region has at least this value. */
  until(participant: ParticipantId, at: number, value: number): Promise<void>;
  /** A word of a participant's region, whether it runs or not. */
  word(participant: ParticipantId, at: number): number;
  close(): Promise<void>;
}

/** A stage on shared memory. */
export interface SharedStage extends Stage {
  readonly arena: Arena;
  readonly map: ArenaMap;
  /** Marks a participant as ended, as hosts do (`hosting/host-process.ts`). */
  noteEnd(participant: ParticipantId): void;
}

export function isShared(stage: Stage): stage is SharedStage {
  return 'arena' in stage;
}
