/** What all measurements of `tram-lab bench durable` have in common. */
import { DURABILITIES, type Durability } from 'tram-multicast/internal/protocol/edges.js';
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';

export type DurableMemory = 'threads' | 'processes' | 'machines';

/** To one group, to all groups, or nine messages to one group and then one to two. */
export type LoadName = 'one' | 'all' | 'mix';
export const LOAD_NAMES: readonly LoadName[] = ['one', 'all', 'mix'];

export interface Run {
  readonly memory: DurableMemory;
  readonly loads: readonly LoadName[];
  readonly rounds: number;
  /** Duration of each measurement. */
  readonly seconds: number;
  /** On a disk: journals and the files of the bare loop. */
  readonly folder: string;
  /** Announces the next step. @throws if the run is interrupted */
  readonly step: (name: string) => void;
  readonly signal: AbortSignal;
}

export const MODES: readonly Durability[] = DURABILITIES;
export const IN_FLIGHT = 1024;
/** The tree of all clusters. */
export const TREE = 'base';
export const SETUP = {
  groups: 8,
  replicas: 3,
  clientsMax: 1,
  outstandingMax: IN_FLIGHT,
  payloadBytesMax: 64,
} as const;
export const OVERLAY = new Overlay(parseTree(TREE, SETUP.groups));
