/**
 * FIFO order. The messages of one client with the same entry group form a *stream*. Of each stream,
 * the messages that a group has delivered must be a prefix of those that were multicast to it.
 */

import { type GroupOrder, replicaHolding } from './group-order.js';
import type { History } from './history.js';
import type { Violation } from './properties.js';

const NO_STREAM = -1;

interface Streams {
  readonly ofMessage: Int32Array;
  readonly count: number;
  /** False if the entry group of some message is unknown. Such a message is in no stream. */
  readonly complete: boolean;
}

export interface FifoFinding {
  readonly violation: Violation | undefined;
  /** True if the entry group of every message is known. */
  readonly complete: boolean;
}

export function judgeFifo(history: History, orders: readonly GroupOrder[]): FifoFinding {
  const streams = findStreams(history);
  const addressed = messagesByGroup(history);
  const ranks = new Int32Array(history.messageCount);
  for (const group of orders) {
    rankMessages(addressed[group.group], streams, ranks);
    const gap = findGapInGroup(group, streams, ranks);
    if (gap === undefined) continue;
    const stream = streams.ofMessage[gap.delivered];
    const skipped = addressed[group.group].find(
      (message) => streams.ofMessage[message] === stream && ranks[message] === gap.expectedRank,
    )!;
    const violation: Violation = {
      property: 'fifo-order',
      client: history.clientNames[history.clientOf(gap.delivered)],
      entryGroup: history.entryGroupOf(gap.delivered)!,
      replica: history.replicaNames[gap.replica],
      delivered: history.messageIds[gap.delivered],
      skipped: history.messageIds[skipped],
    };
    return { violation, complete: streams.complete };
  }
  return { violation: undefined, complete: streams.complete };
}

function findStreams(history: History): Streams {
  const ofMessage = new Int32Array(history.messageCount).fill(NO_STREAM);
  const streamsOfClient: Map<number, number>[] = history.clientNames.map(() => new Map());
  let count = 0;
  let complete = true;
  for (const message of history.multicasts.view()) {
    const entryGroup = history.entryGroupOf(message);
    if (entryGroup === undefined) {
      complete = false;
      continue;
    }
    const streams = streamsOfClient[history.clientOf(message)];
    let stream = streams.get(entryGroup);
    if (stream === undefined) {
      stream = count++;
      streams.set(entryGroup, stream);
    }
    ofMessage[message] = stream;
  }
  return { ofMessage, count, complete };
}

/** For each group, the messages addressed to it in multicast order. */
function messagesByGroup(history: History): Int32Array[] {
  const multicasts = history.multicasts.view();
  const sizes = new Int32Array(history.groupCount);
  for (const message of multicasts) {
    for (const group of history.destinationsOf(message)) sizes[group]++;
  }
  const lists = Array.from(sizes, (size) => new Int32Array(size));
  sizes.fill(0);
  for (const message of multicasts) {
    for (const group of history.destinationsOf(message)) lists[group][sizes[group]++] = message;
  }
  return lists;
}

/** The rank of a message: how many messages of its stream were multicast to this group before it. */
function rankMessages(addressed: Int32Array, streams: Streams, ranks: Int32Array): void {
  const next = new Int32Array(streams.count);
  for (const message of addressed) {
    const stream = streams.ofMessage[message];
    if (stream !== NO_STREAM) ranks[message] = next[stream]++;
  }
}

interface Gap {
  readonly index: number;
  readonly delivered: number;
  /** The rank of the message that should have been delivered instead. */
  readonly expectedRank: number;
}

function findGapInGroup(
  group: GroupOrder,
  streams: Streams,
  ranks: Int32Array,
): (Gap & { readonly replica: number }) | undefined {
  const gap = findGap(group.order, streams, ranks);
  if (gap !== undefined) return { ...gap, replica: replicaHolding(group, gap.index) };
  for (const { replica, sequence, isPlaced } of group.strays) {
    // A sequence whose position is unknown may begin in the middle of a stream.
    if (!isPlaced) continue;
    const gap = findGap(sequence, streams, ranks);
    if (gap !== undefined) return { ...gap, replica };
  }
  return undefined;
}

function findGap(sequence: Int32Array, streams: Streams, ranks: Int32Array): Gap | undefined {
  const next = new Int32Array(streams.count);
  for (let index = 0; index < sequence.length; index++) {
    const delivered = sequence[index];
    const stream = streams.ofMessage[delivered];
    if (stream === NO_STREAM) continue;
    const expectedRank = next[stream]++;
    if (ranks[delivered] !== expectedRank) return { index, delivered, expectedRank };
  }
  return undefined;
}
