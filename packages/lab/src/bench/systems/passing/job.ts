/** What every process of a message-passing system is told at the start, and what it may be asked for. */

import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { byzcast } from '../../../baselines/byzcast/protocol.js';
import type { Sizes } from '../../../baselines/passing/network.js';
import type { Protocol } from '../../../baselines/passing/protocol.js';
import { skeen } from '../../../baselines/skeen/protocol.js';

export interface PassingJob {
  readonly sizes: Sizes;
  /** The tree, for ByzCast; without one it is Skeen. */
  readonly parents?: readonly number[];
  /** Does everybody write down what happens? */
  readonly records: boolean;
}

export interface GroupJob extends PassingJob {
  readonly group: number;
}

/** Where the groups are. */
export interface Directory {
  readonly ports: readonly number[];
  readonly pids: readonly number[];
}

export function protocolOf({ sizes, parents }: PassingJob): Protocol {
  return parents === undefined ? skeen(sizes) : byzcast(new Overlay(parents), sizes);
}

/** Flat pairs (client, number), in order. */
export interface GroupRecord {
  readonly delivered: readonly number[];
  readonly relayed: readonly number[];
}

/** Flat, in order: client, number, and the destinations as low and high mask. */
export type ClientRecord = readonly number[];
