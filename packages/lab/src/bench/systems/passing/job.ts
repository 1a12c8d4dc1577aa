/** The orders and answers between `system.ts` and the processes of a message-passing system. */

import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { byzcast } from '../../../baselines/byzcast/protocol.js';
import type { Sizes } from '../../../baselines/passing/network.js';
import type { Protocol } from '../../../baselines/passing/protocol.js';
import { skeen } from '../../../baselines/skeen/protocol.js';

export interface PassingJob {
  readonly sizes: Sizes;
  /** The tree of ByzCast; without a tree the system is Skeen. */
  readonly parents?: readonly number[];
  /** Do all processes record their history? */
  readonly records: boolean;
}

export interface GroupJob extends PassingJob {
  readonly group: number;
}

/** The addresses of the groups. */
export interface Directory {
  readonly ports: readonly number[];
  readonly pids: readonly number[];
}

export function protocolOf({ sizes, parents }: PassingJob): Protocol {
  return parents === undefined ? skeen(sizes) : byzcast(new Overlay(parents), sizes);
}

/** Pairs (client, number) in one array, in order. */
export interface GroupRecord {
  readonly delivered: readonly number[];
  readonly relayed: readonly number[];
}

/** Client, number, and the low and high mask of the destinations, in one array, in order. */
export type ClientRecord = readonly number[];
