/** Everything that a replica or a client of RamCast gets from outside: no clock, no I/O, no randomness. */
import type { Memory } from 'tram-multicast/internal/memory/contract.js';
import type { RamcastLayout } from './layout.js';

/** A message as the application sees it. The object and its payload are reused after the call. */
export interface Delivery {
  readonly group: number;
  readonly client: number;
  /** With the client, the name of the message. */
  readonly sequence: number;
  readonly destinationsLow: number;
  readonly destinationsHigh: number;
  readonly payload: Uint8Array;
}

/** The replicated service; deterministic. */
export interface Application {
  deliver(message: Delivery): Uint8Array | undefined;
}

/** How many messages one step of a leader takes on: at most so many in all, and from one client. */
export interface Pace {
  readonly batchMessages: number;
  readonly clientMessages: number;
}

/** As TRAM's. */
export const PACE: Pace = { batchMessages: 256, clientMessages: 64 };

export interface Edges {
  readonly memory: Memory;
  readonly layout: RamcastLayout;
  readonly pace: Pace;
}

/** A broken invariant: a bug, never the user's fault. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

export function assert(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new InvariantError(sentence);
}

/** For whoever waits for no completion: all of them are good, because nobody fails. */
export function drain(memory: Memory): void {
  while (memory.poll()) {
    assert(memory.completion.outcome === 'ok', 'a write to a process that lives succeeds');
  }
}

/** Groups (or clients) that there is something to do for: each once, in the order of coming. Allocates nothing. */
export class Todo {
  count = 0;
  private readonly listed: Int32Array;
  private readonly isListed: Uint8Array;

  constructor(most: number) {
    this.listed = new Int32Array(most);
    this.isListed = new Uint8Array(most);
  }

  add(which: number): void {
    if (this.isListed[which] === 1) return;
    this.isListed[which] = 1;
    this.listed[this.count++] = which;
  }

  at(i: number): number {
    return this.listed[i];
  }

  clear(): void {
    for (let i = 0; i < this.count; i++) this.isListed[this.listed[i]] = 0;
    this.count = 0;
  }
}
