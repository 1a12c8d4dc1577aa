/** The environment of a replica or a client of RamCast. There is no clock, no I/O and no randomness in it. */
import type { Memory } from 'tram-multicast/internal/memory/contract.js';
import type { RamcastLayout } from './layout.js';

/** A message as the application sees it. The object and its payload are reused after the call. */
export interface Delivery {
  readonly group: number;
  readonly client: number;
  /** Together with the client it identifies the message. */
  readonly sequence: number;
  readonly destinationsLow: number;
  readonly destinationsHigh: number;
  readonly payload: Uint8Array;
}

/** The replicated service. It must be deterministic. */
export interface Application {
  deliver(message: Delivery): Uint8Array | undefined;
}

/** The most messages that one step of a leader takes: in all, and from one client. */
export interface Pace {
  readonly batchMessages: number;
  readonly clientMessages: number;
}

/** The pace of TRAM. */
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

/** Discards completions. All of them are `ok`, because there are no failures. */
export function drain(memory: Memory): void {
  while (memory.poll()) {
    assert(memory.completion.outcome === 'ok', 'every write succeeds without failures');
  }
}

/** A queue of groups or clients without duplicates, in the order of arrival. It does not allocate. */
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
