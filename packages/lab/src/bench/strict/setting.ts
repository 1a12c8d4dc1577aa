/** What all measurements of `tram-lab bench strict` have in common. */
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';

export type StrictMemory = 'threads' | 'machines';

export interface Run {
  readonly memory: StrictMemory;
  /** Number of pairs. */
  readonly pairs: number;
  /** Duration of each measurement of a load. */
  readonly seconds: number;
  /** Announces the next step. @throws if the run is interrupted */
  readonly step: (name: string) => void;
  readonly signal: AbortSignal;
}

export const BOTH: readonly Order[] = ['multicast', 'strict'];
export const IN_FLIGHT = 256;
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
