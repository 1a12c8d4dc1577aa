/** The types of play.mjs, for the suite. */
import type { Arena, ArenaMap } from 'tram-multicast/internal/memory/arena.js';
import type { Completion, Memory, ParticipantId } from 'tram-multicast/internal/memory/contract.js';

export const DONE: number;

export interface Player {
  /** @returns the amount of work; `DONE` after the last step */
  step(): number;
  result(): unknown;
}

export interface Context {
  permissionOf(peer: ParticipantId): number;
  permissionPlainly?(peer: ParticipantId): number;
  arena?: Arena;
  map?: ArenaMap;
}

export function newPlayer(name: string, memory: Memory, options: object, context: Context): Player;

export interface Puppet {
  permit(guard: number): void;
  permitted(): number;
  write(peer: ParticipantId, to: number, values: number[], guard: number, tag: number): void;
  writeMany(peer: ParticipantId, to: number, count: number): void;
  writeAndForget(
    peer: ParticipantId,
    to: number,
    values: number[],
    from: number,
    count: number,
    tag: number,
  ): void;
  read(peer: ParticipantId, at: number, count: number, tag: number): void;
  /** The result of the last read. */
  fetched(): number[];
  completions(): Completion[];
  own(at: number, count: number): number[];
  setOwn(at: number, value: number): void;
  ownWords(): number;
  isEmpty(): boolean;
  /** New scratch, filled with sevens. */
  scratch(words: number): number[];
  freshScratch(words: number): number[];
  wake(peer: ParticipantId, urgent: boolean): void;
  hasEnded(peer: ParticipantId): boolean;
}

export function newPuppet(memory: Memory): Puppet;
