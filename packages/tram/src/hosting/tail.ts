/**
 * Reads the log of a group from outside, for `deliveries()` and `tram tail`. It costs the replicas nothing and
 * blocks nobody. A reader that falls behind by a whole log has lost its place.
 *
 * An entry that any member's log declares decided is decided forever, and it has the same index and position in every
 * log. So the reader takes the next entry from any log that has it.
 */
import { TramError } from '../errors.js';
import {
  copyWords,
  distance,
  extend,
  HEAD_WORDS,
  numberAt,
  slotAt,
  type Window,
  word,
  wordsOf,
} from '../memory/record.js';
import { readFence } from '../memory/shared.js';
import { LogRing } from '../protocol/data-path/log.js';
import {
  CANCEL,
  entryGroupOf,
  type Layout,
  MARK,
  MESSAGE,
  messageId,
  numberIn,
  RINGS_PER_WRITER,
} from '../protocol/layout.js';
import { NO_BALLOT } from '../protocol/leadership/ballot.js';
import { contains } from '../protocol/overlay.js';
import type { ClusterContext } from './cluster-context.js';
import { pause } from './oversight.js';
import { groupsOf } from './service.js';

const POLL_MS = 1;
/** So many polls in vain, and a reader of deliveries sleeps between polls. */
const EAGER_POLLS = 100;

/** A message that a group has delivered. */
export interface Delivered {
  readonly group: number;
  /** Its place in the group's order: consecutive for everything the group has ordered, relayed messages included. */
  readonly index: number;
  readonly id: string;
  readonly destinations: readonly number[];
  readonly payload: Uint8Array;
}

export interface DeliveriesOptions {
  readonly group: number;
  readonly signal?: AbortSignal | undefined;
}

/** @internal */
export class Tail {
  private readonly rings: LogRing[] = [];
  private readonly entry: Window;
  private index: number;
  private position: number;

  /** Starts at the first entry that is not decided yet. */
  constructor(
    context: ClusterContext,
    private readonly group: number,
  ) {
    const { layout } = context;
    const { replicas, firstIndex } = layout.sizes;
    for (let member = 0; member < replicas; member++) {
      const own = context.region(layout.replicaParticipant(group, member));
      this.rings.push(...ringsOf(own, layout, group));
    }
    const entry = new Int32Array(layout.entryWordsMax);
    this.entry = slotAt(entry, 0, layout.logSalt(group));
    this.index = firstIndex;
    this.position = firstIndex | 0;
    this.goToEnd();
  }

  /** The next message for this group, if one is decided. @throws TRAM_LAGGED */
  next(): Delivered | undefined {
    for (;;) {
      const words = this.copyNext();
      if (words === 0) {
        this.requireNotLagged();
        return undefined;
      }
      const delivered = this.delivered();
      this.index++;
      this.position = (this.position + words) | 0;
      if (delivered !== undefined) return delivered;
    }
  }

  private copyNext(): number {
    for (const ring of this.rings) {
      const ballot = ring.marker;
      if (ballot === NO_BALLOT || extend(this.index, ring.decided) <= this.index) continue;
      const words = ring.entryWords(this.position, ballot, this.index);
      if (words === 0) continue;
      copyWords(ring, this.position, this.entry, 0, words);
      // The entry may have been dropped, or overwritten by the next leader, during the copy. And the decided index may
      // be one of the next log in this ring.
      if (wordsOf(this.entry, 0, ballot, this.index, words) === words && ring.marker === ballot)
        return words;
    }
    return 0;
  }

  private delivered(): Delivered | undefined {
    const { words } = this.entry;
    const low = words[HEAD_WORDS + MESSAGE.destinationsLow];
    const high = words[HEAD_WORDS + MESSAGE.destinationsHigh];
    if (!contains(low, high, this.group)) return undefined;
    const series = words[HEAD_WORDS + MESSAGE.series];
    const start = (HEAD_WORDS + MESSAGE.payload) * 4;
    const bytes = words[HEAD_WORDS + MESSAGE.payloadBytes];
    if ((bytes & (CANCEL | MARK)) !== 0) return undefined;
    return {
      group: this.group,
      index: this.index,
      id: messageId({
        session: words[HEAD_WORDS + MESSAGE.session],
        entryGroup: entryGroupOf(series),
        number: numberIn(series, words[HEAD_WORDS + MESSAGE.number]),
      }),
      destinations: groupsOf(low, high),
      payload: new Uint8Array(words.buffer.slice(start, start + bytes)),
    };
  }

  /**
   * If the group has dropped the next entry, it is lost to this reader. The logs of former leaders stay in memory with
   * the entries that they had, so only a log that has decided the next entry tells whether it is still there.
   */
  private requireNotLagged(): void {
    let oldest = Number.POSITIVE_INFINITY;
    for (const ring of this.rings) {
      if (extend(this.index, ring.decided) <= this.index) continue;
      oldest = Math.min(oldest, this.firstOf(ring) ?? oldest);
    }
    if (oldest === Number.POSITIVE_INFINITY || oldest <= this.index) return;
    throw new TramError(
      'TRAM_LAGGED',
      `group ${this.group} has dropped ${oldest - this.index} entries that were not read yet`,
      { hint: 'Read faster, or start the cluster with a larger `logBytes`.' },
    );
  }

  /** The index of the oldest entry of a log; undefined if it has no whole entry. */
  private firstOf(ring: LogRing): number | undefined {
    for (;;) {
      const { marker, base } = ring;
      if (marker === NO_BALLOT) return undefined;
      const first = extend(this.index, numberAt(ring, base));
      const isWhole = ring.entryWords(base, marker, first) > 0;
      // The entry may have been dropped and overwritten while we looked.
      readFence();
      if (ring.base === base && ring.marker === marker) return isWhole ? first : undefined;
    }
  }

  /** Walks the newest log, from its base to its decided index. */
  private goToEnd(): void {
    let furthest: LogRing | undefined;
    for (const ring of this.rings) {
      if (this.firstOf(ring) === undefined) continue;
      if (furthest === undefined || isFurther(ring, furthest)) furthest = ring;
    }
    if (furthest === undefined) return;
    for (;;) {
      const { base } = furthest;
      let index = this.firstOf(furthest);
      let position = base;
      if (index === undefined) return;
      const decided = extend(index, furthest.decided);
      while (index < decided) {
        if (furthest.entryWords(position, furthest.marker, index) === 0) break;
        position = (position + word(furthest, position)) | 0;
        index++;
      }
      readFence();
      if (furthest.base !== base) continue;
      this.index = index;
      this.position = position;
      return;
    }
  }
}

/** A log of a higher ballot; or of the same one, if it says of more entries that they are decided: members hear of that later. */
function isFurther(ring: LogRing, other: LogRing): boolean {
  if (ring.marker !== other.marker) return ring.marker > other.marker;
  return distance(ring.decided, other.decided) > 0;
}

function ringsOf(own: Int32Array, layout: Layout, group: number): LogRing[] {
  const rings: LogRing[] = [];
  for (let writer = 0; writer < layout.sizes.replicas; writer++) {
    for (let ring = 0; ring < RINGS_PER_WRITER; ring++) {
      rings.push(new LogRing(own, layout, group, writer, ring));
    }
  }
  return rings;
}

/** @internal Iterates over what a group delivers from this call on. */
export function follow(
  context: ClusterContext,
  group: number,
  isOver: () => boolean,
): AsyncGenerator<Delivered, void, void> {
  // The tail starts here: the body of a generator would start only with the first call of `next`.
  return readOn(new Tail(context, group), isOver);
}

async function* readOn(tail: Tail, isOver: () => boolean): AsyncGenerator<Delivered, void, void> {
  let polls = 0;
  while (!isOver()) {
    const delivered = tail.next();
    if (delivered !== undefined) {
      polls = 0;
      yield delivered;
    } else if (polls++ < EAGER_POLLS) {
      await new Promise((resolve) => setImmediate(resolve));
    } else {
      await pause(POLL_MS);
    }
  }
}
