/** The types of namespaces.mjs, for tests. */
import type { ChildProcess, SpawnOptions } from 'node:child_process';

export interface Delay {
  readonly ms?: number;
  readonly jitterMs?: number;
  readonly lossPercent?: number;
}

export class Machine {
  private constructor();
  readonly index: number;
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  spawn(command: string, args?: readonly string[], options?: SpawnOptions): ChildProcess;
  pids(): number[];
  kill(): void;
}

export class Machines {
  private constructor();
  static missing(): string | undefined;
  static create(count: number, options?: { readonly prefix?: string }): Machines;
  readonly all: readonly Machine[];
  readonly namespaces: readonly string[];
  readonly canDelay: boolean;
  cut(machine: Machine, other?: Machine): void;
  cutOneWay(from: Machine, to: Machine): void;
  delay(machine: Machine, delay: Delay): void;
  heal(machine?: Machine, other?: Machine): void;
  healOneWay(from: Machine, to: Machine): void;
  endDelay(machine: Machine): void;
  close(): void;
}
