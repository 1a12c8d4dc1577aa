/**
 * Uniform acyclic order. "Some replica delivers m before m′" has no cycle exactly if all sequences
 * can be merged into one.
 *
 * The merge repeatedly takes a message that is next in every sequence that contains it. If it
 * consumes all sequences, there is no cycle. If it gets stuck, the messages that are left contain a
 * cycle. Merging these from the other end removes the messages that only follow a cycle. The
 * shortest cycle is then searched for in the core that remains.
 */

import { type GroupOrder, replicaHolding } from './group-order.js';
import type { History } from './history.js';
import type { Violation } from './properties.js';

/** The search stops after so many steps and reports the shortest cycle found so far. */
const SEARCH_STEPS_MAX = 50_000_000;

/** `sequence` has `before` before `after`. */
interface Step {
  readonly before: number;
  readonly after: number;
  readonly sequence: number;
}

export function findAcyclicViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  // A sequence that is not a stray is a prefix of its group's order, so it adds no constraint.
  const strays = orders.flatMap((order) => order.strays);
  const sequences = [
    ...orders.map(({ order }) => order),
    ...strays.map(({ sequence }) => sequence),
  ];
  const merge = new Merge(sequences, history.messageCount);
  if (merge.run()) return undefined;

  const cycle = findShortestCycle(merge);
  const replicaOf = ({ before, after, sequence }: Step): number => {
    if (sequence >= orders.length) return strays[sequence - orders.length].replica;
    const { order } = orders[sequence];
    return replicaHolding(orders[sequence], order.indexOf(before), order.indexOf(after));
  };
  return {
    property: 'uniform-acyclic-order',
    cycle: cycle.map((step) => ({
      before: history.messageIds[step.before],
      after: history.messageIds[step.after],
      replica: history.replicaNames[replicaOf(step)],
    })),
  };
}

class Merge {
  /** The part of each sequence that is not merged yet: `[begin, end)`. */
  readonly begin: Int32Array;
  readonly end: Int32Array;
  /** The places of message m are `placeSequence/placeIndex[firstPlace[m] .. firstPlace[m + 1]]`. */
  readonly firstPlace: Int32Array;
  readonly placeSequence: Int32Array;
  readonly placeIndex: Int32Array;

  constructor(
    readonly sequences: readonly Int32Array[],
    readonly messageCount: number,
  ) {
    this.begin = new Int32Array(sequences.length);
    this.end = Int32Array.from(sequences, (sequence) => sequence.length);
    this.firstPlace = new Int32Array(messageCount + 1);
    for (const sequence of sequences) {
      for (const message of sequence) this.firstPlace[message + 1]++;
    }
    for (let m = 0; m < messageCount; m++) this.firstPlace[m + 1] += this.firstPlace[m];
    const places = this.firstPlace[messageCount];
    this.placeSequence = new Int32Array(places);
    this.placeIndex = new Int32Array(places);
    const next = this.firstPlace.slice();
    for (let s = 0; s < sequences.length; s++) {
      for (let i = 0; i < sequences[s].length; i++) {
        const place = next[sequences[s][i]]++;
        this.placeSequence[place] = s;
        this.placeIndex[place] = i;
      }
    }
  }

  /** True if all sequences could be merged; otherwise `[begin, end)` is the core of each. */
  run(): boolean {
    this.mergeFromBegin();
    if (this.isComplete()) return true;
    this.mergeFromEnd();
    return false;
  }

  private isComplete(): boolean {
    return this.begin.every((begin, sequence) => begin === this.end[sequence]);
  }

  private mergeFromBegin(): void {
    this.mergeWith(
      (s) => (this.begin[s] < this.end[s] ? this.sequences[s][this.begin[s]] : -1),
      (s) => this.begin[s]++,
    );
  }

  private mergeFromEnd(): void {
    this.mergeWith(
      (s) => (this.begin[s] < this.end[s] ? this.sequences[s][this.end[s] - 1] : -1),
      (s) => this.end[s]--,
    );
  }

  /** @param head  the next message of a sequence, -1 if there is none */
  private mergeWith(head: (sequence: number) => number, drop: (sequence: number) => void): void {
    const timesAtHead = new Int32Array(this.messageCount);
    const ready: number[] = [];
    const look = (sequence: number) => {
      const message = head(sequence);
      if (message === -1) return;
      const places = this.firstPlace[message + 1] - this.firstPlace[message];
      if (++timesAtHead[message] === places) ready.push(message);
    };
    for (let s = 0; s < this.sequences.length; s++) look(s);
    for (let message = ready.pop(); message !== undefined; message = ready.pop()) {
      for (let p = this.firstPlace[message]; p < this.firstPlace[message + 1]; p++) {
        drop(this.placeSequence[p]);
        look(this.placeSequence[p]);
      }
    }
  }
}

function findShortestCycle(merge: Merge): Step[] {
  const pair = findInvertedPair(merge);
  if (pair !== undefined) return pair;
  // Without inverted pairs, a cycle has at least three steps.
  let shortest = findBlockedCycle(merge);
  const search = new CycleSearch(merge);
  const starts = new Set(shortest.map(({ before }) => before));
  for (const start of [...starts, ...coreMessages(merge)]) {
    if (shortest.length === 3 || search.steps > SEARCH_STEPS_MAX) break;
    shortest = search.shorterCycle(start, shortest.length) ?? shortest;
  }
  return shortest;
}

function* coreMessages(merge: Merge): Iterable<number> {
  for (let s = 0; s < merge.sequences.length; s++) {
    yield* merge.sequences[s].subarray(merge.begin[s], merge.end[s]);
  }
}

/** Two messages that two sequences contain in opposite order. */
function findInvertedPair(merge: Merge): Step[] | undefined {
  const lastIndex = new Int32Array(merge.sequences.length);
  for (let s = 0; s < merge.sequences.length; s++) {
    lastIndex.fill(-1);
    for (let i = merge.begin[s]; i < merge.end[s]; i++) {
      const message = merge.sequences[s][i];
      for (let p = merge.firstPlace[message]; p < merge.firstPlace[message + 1]; p++) {
        const other = merge.placeSequence[p];
        const index = merge.placeIndex[p];
        if (index < lastIndex[other]) {
          const earlier = merge.sequences[other][lastIndex[other]];
          return [
            { before: earlier, after: message, sequence: s },
            { before: message, after: earlier, sequence: other },
          ];
        }
        lastIndex[other] = index;
      }
    }
  }
  return undefined;
}

/**
 * Some cycle, with at most one step per sequence. The head of each stuck sequence is blocked by the
 * head of another sequence. Following these heads leads to one that was visited before.
 */
function findBlockedCycle(merge: Merge): Step[] {
  const { sequences, begin, end, firstPlace, placeSequence, placeIndex } = merge;
  const headOf = (sequence: number) => sequences[sequence][begin[sequence]];
  const visited = new Map<number, number>();
  const steps: Step[] = [];
  let message = headOf(begin.findIndex((first, sequence) => first < end[sequence]));
  while (!visited.has(message)) {
    visited.set(message, steps.length);
    let place = firstPlace[message];
    while (placeIndex[place] === begin[placeSequence[place]]) place++;
    const sequence = placeSequence[place];
    steps.push({ before: headOf(sequence), after: message, sequence });
    message = headOf(sequence);
  }
  return steps.slice(visited.get(message)).reverse();
}

/** Breadth-first search: from a message, each later message of the same sequence is one step away. */
class CycleSearch {
  /** Sequence elements visited so far, over all searches. */
  steps = 0;
  private readonly reachedFrom: Int32Array;
  /** The step by which a message was reached; valid if `reachedFrom` says that it was. */
  private readonly stepTo: Step[];
  private readonly depth: Int32Array;

  constructor(private readonly merge: Merge) {
    this.reachedFrom = new Int32Array(merge.messageCount).fill(-1);
    this.depth = new Int32Array(merge.messageCount);
    this.stepTo = new Array(merge.messageCount);
  }

  /** A shortest cycle through `start`, if it has fewer than `limit` steps. */
  shorterCycle(start: number, limit: number): Step[] | undefined {
    const { sequences, firstPlace, placeSequence, placeIndex, end } = this.merge;
    const unseenEnd = end.slice(); // In each sequence, the messages from here on are reached already.
    const queue = [start];
    this.reachedFrom[start] = start;
    this.depth[start] = 0;
    for (let next = 0; next < queue.length; next++) {
      const before = queue[next];
      const depth = this.depth[before] + 1;
      if (depth >= limit) return undefined;
      for (let p = firstPlace[before]; p < firstPlace[before + 1]; p++) {
        const sequence = placeSequence[p];
        for (let i = placeIndex[p] + 1; i < unseenEnd[sequence]; i++) {
          this.steps++;
          const after = sequences[sequence][i];
          if (after === start) return this.pathTo(before, start, { before, after, sequence });
          if (this.reachedFrom[after] === start) continue;
          this.reachedFrom[after] = start;
          this.depth[after] = depth;
          this.stepTo[after] = { before, after, sequence };
          queue.push(after);
        }
        unseenEnd[sequence] = Math.min(unseenEnd[sequence], placeIndex[p] + 1);
      }
    }
    return undefined;
  }

  private pathTo(message: number, start: number, last: Step): Step[] {
    const path = [last];
    for (let at = message; at !== start; at = path[0].before) path.unshift(this.stepTo[at]);
    return path;
  }
}
