/**
 * Merges sequences into one order of all messages, or finds a short cycle that prevents it. Used by
 * acyclic-order.ts and real-time-order.ts.
 *
 * There are two kinds of sequences:
 * - *Deliveries*: each message precedes all later ones.
 * - A *timeline*: what clients did, in real time. `~m` is the first reply to m, and `m` is the multicast
 *   of m. Each reply precedes all later multicasts. Replies do not precede replies, and multicasts
 *   precede nothing.
 *
 * The merge repeatedly takes a message that nothing left precedes. If it consumes all sequences, there
 * is no cycle. If it gets stuck, the messages that are left contain a cycle. Merging these from the
 * other end removes the messages that only follow a cycle. The shortest cycle is then searched for in
 * the core that remains, up to a limit of steps. Without a cycle, the merge visits every item of every
 * sequence once.
 */

/** The search stops after so many steps and reports the shortest cycle found so far. */
const SEARCH_STEPS_MAX = 50_000_000;

const NONE = -1;

/** `sequence` has `before` before `after`. */
export interface Step {
  readonly before: number;
  readonly after: number;
  readonly sequence: number;
}

/**
 * A shortest cycle, or the shortest one that the search has found within its limit of steps: the `after`
 * of each step is the `before` of the next, and the last step closes it.
 * Sequences are numbered through, deliveries first. `undefined` if all of them can be merged.
 */
export function findCycle(
  deliveries: readonly Int32Array[],
  timelines: readonly Int32Array[],
  messageCount: number,
): Step[] | undefined {
  const merge = new Merge(deliveries, timelines, messageCount);
  return merge.run() ? undefined : findShortestCycle(merge);
}

/** One direction of merging: items are taken from the begin or from the end of each sequence. */
interface Pass {
  /** The index of the next item of a sequence, NONE if there is none. */
  head(sequence: number): number;
  drop(sequence: number): void;
  /** Whether the item's message can only be merged once the pass has come to the item. */
  waits(sequence: number, index: number): boolean;
  /** Whether the pass stops at the item until its message is merged. */
  blocks(sequence: number, index: number): boolean;
}

class Merge {
  readonly sequences: readonly Int32Array[];
  /** The first so many sequences are deliveries; the others are timelines. */
  readonly deliveryCount: number;
  /** The part of each sequence that is not merged yet: `[begin, end)`. */
  readonly begin: Int32Array;
  readonly end: Int32Array;
  /** The places of message m are `placeSequence/placeIndex[firstPlace[m] .. firstPlace[m + 1]]`. */
  readonly firstPlace: Int32Array;
  readonly placeSequence: Int32Array;
  readonly placeIndex: Int32Array;
  private readonly isMerged: Uint8Array;

  constructor(
    deliveries: readonly Int32Array[],
    timelines: readonly Int32Array[],
    readonly messageCount: number,
  ) {
    this.sequences = [...deliveries, ...timelines];
    this.deliveryCount = deliveries.length;
    this.isMerged = new Uint8Array(messageCount);
    const { sequences } = this;
    this.begin = new Int32Array(sequences.length);
    this.end = Int32Array.from(sequences, (sequence) => sequence.length);
    this.firstPlace = new Int32Array(messageCount + 1);
    for (const sequence of sequences) {
      for (const item of sequence) this.firstPlace[messageOf(item) + 1]++;
    }
    for (let m = 0; m < messageCount; m++) this.firstPlace[m + 1] += this.firstPlace[m];
    const places = this.firstPlace[messageCount];
    this.placeSequence = new Int32Array(places);
    this.placeIndex = new Int32Array(places);
    const next = this.firstPlace.slice();
    for (let s = 0; s < sequences.length; s++) {
      for (let i = 0; i < sequences[s].length; i++) {
        const place = next[messageOf(sequences[s][i])]++;
        this.placeSequence[place] = s;
        this.placeIndex[place] = i;
      }
    }
  }

  messageAt(sequence: number, index: number): number {
    return messageOf(this.sequences[sequence][index]);
  }

  /** Whether the item precedes later ones: a delivery or a reply. */
  precedes(sequence: number, index: number): boolean {
    return sequence < this.deliveryCount || this.sequences[sequence][index] < 0;
  }

  /** Whether the item follows earlier ones: a delivery or a multicast. */
  follows(sequence: number, index: number): boolean {
    return this.sequences[sequence][index] >= 0;
  }

  /** True if all sequences could be merged; otherwise `[begin, end)` is the core of each. */
  run(): boolean {
    const { begin, end } = this;
    this.mergeWith({
      head: (s) => (begin[s] < end[s] ? begin[s] : NONE),
      drop: (s) => begin[s]++,
      waits: (s, i) => this.follows(s, i),
      blocks: (s, i) => this.precedes(s, i),
    });
    if (begin.every((first, s) => first === end[s])) return true;
    this.mergeWith({
      head: (s) => (begin[s] < end[s] ? end[s] - 1 : NONE),
      drop: (s) => end[s]--,
      waits: (s, i) => this.precedes(s, i),
      blocks: (s, i) => this.follows(s, i),
    });
    return false;
  }

  private mergeWith(pass: Pass): void {
    const { isMerged, firstPlace, placeSequence, placeIndex } = this;
    const awaited = this.countAwaited(pass);
    const ready: number[] = [];
    awaited.forEach((count, message) => {
      if (count === 0 && isMerged[message] === 0) ready.push(message);
    });
    const advance = (s: number) => {
      for (let i = pass.head(s); i !== NONE; i = pass.head(s)) {
        const message = this.messageAt(s, i);
        if (isMerged[message] === 0) {
          if (pass.waits(s, i) && --awaited[message] === 0) ready.push(message);
          if (pass.blocks(s, i)) return;
        }
        pass.drop(s);
      }
    };
    for (let s = 0; s < this.sequences.length; s++) advance(s);
    for (let message = ready.pop(); message !== undefined; message = ready.pop()) {
      isMerged[message] = 1;
      for (let p = firstPlace[message]; p < firstPlace[message + 1]; p++) {
        const s = placeSequence[p];
        if (pass.head(s) !== placeIndex[p]) continue;
        pass.drop(s);
        advance(s);
      }
    }
  }

  /** For each message, how many items the pass must come to before the message can be merged. */
  private countAwaited(pass: Pass): Int32Array {
    const awaited = new Int32Array(this.messageCount);
    for (let s = 0; s < this.sequences.length; s++) {
      for (let i = this.begin[s]; i < this.end[s]; i++) {
        if (pass.waits(s, i)) awaited[this.messageAt(s, i)]++;
      }
    }
    return awaited;
  }
}

function messageOf(item: number): number {
  return item < 0 ? ~item : item;
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
    for (let i = merge.begin[s]; i < merge.end[s]; i++) yield merge.messageAt(s, i);
  }
}

/** Two messages that precede each other in two sequences, of which at least one has deliveries. */
function findInvertedPair(merge: Merge): Step[] | undefined {
  const { firstPlace, placeSequence, placeIndex } = merge;
  /** In each sequence, the last item that follows others and whose message was delivered before. */
  const lastIndex = new Int32Array(merge.sequences.length);
  for (let s = 0; s < merge.deliveryCount; s++) {
    lastIndex.fill(NONE);
    for (let i = merge.begin[s]; i < merge.end[s]; i++) {
      const message = merge.messageAt(s, i);
      for (let p = firstPlace[message]; p < firstPlace[message + 1]; p++) {
        const other = placeSequence[p];
        const index = placeIndex[p];
        if (index < lastIndex[other] && merge.precedes(other, index)) {
          const earlier = merge.messageAt(other, lastIndex[other]);
          return [
            { before: earlier, after: message, sequence: s },
            { before: message, after: earlier, sequence: other },
          ];
        }
        if (index > lastIndex[other] && merge.follows(other, index)) lastIndex[other] = index;
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
  const { begin, end, firstPlace, placeSequence, placeIndex } = merge;
  const headOf = (sequence: number) => merge.messageAt(sequence, begin[sequence]);
  const isBlocked = (sequence: number, index: number) =>
    index > begin[sequence] && merge.follows(sequence, index);
  const visited = new Map<number, number>();
  const steps: Step[] = [];
  let message = headOf(begin.findIndex((first, sequence) => first < end[sequence]));
  while (!visited.has(message)) {
    visited.set(message, steps.length);
    let place = firstPlace[message];
    while (!isBlocked(placeSequence[place], placeIndex[place])) place++;
    const sequence = placeSequence[place];
    steps.push({ before: headOf(sequence), after: message, sequence });
    message = headOf(sequence);
  }
  return steps.slice(visited.get(message)).reverse();
}

/** Breadth-first search: what a message precedes in a sequence is one step away. */
class CycleSearch {
  /** Sequence elements visited so far, over all searches. */
  steps = 0;
  private readonly reachedFrom: Int32Array;
  /** The step by which a message was reached; valid if `reachedFrom` says that it was. */
  private readonly stepTo: Step[];
  private readonly depth: Int32Array;

  constructor(private readonly merge: Merge) {
    this.reachedFrom = new Int32Array(merge.messageCount).fill(NONE);
    this.depth = new Int32Array(merge.messageCount);
    this.stepTo = new Array(merge.messageCount);
  }

  /** A shortest cycle through `start`, if it has fewer than `limit` steps. */
  shorterCycle(start: number, limit: number): Step[] | undefined {
    const { merge } = this;
    const { firstPlace, placeSequence, placeIndex, end } = merge;
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
        if (!merge.precedes(sequence, placeIndex[p])) continue;
        for (let i = placeIndex[p] + 1; i < unseenEnd[sequence]; i++) {
          this.steps++;
          if (!merge.follows(sequence, i)) continue;
          const after = merge.messageAt(sequence, i);
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
