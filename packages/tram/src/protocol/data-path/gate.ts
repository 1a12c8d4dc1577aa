/**
 * What the gates of a group have in common: the strict gate (settling.ts) and the recoverable index (recoverable.ts). A
 * group may pass a gate with an entry only if, in case the entry came from the parent, the parent has passed its gate with
 * it. The parent tells its gate beside the end of its feed.
 *
 * `Gate` finds the longest prefix of the leader's log that the parent's gate permits. `FromParent` counts the opposite way:
 * how much of what the parent has sent lies in a prefix of the log.
 *
 * A log drops entries before the parent's gate has passed them, if it must. A new leader does not know which of the dropped
 * entries came from the parent. They all lie below the parent's index of the first entry that the log still has from the
 * parent, or of the next one that will come. Once the parent's gate has reached that index, the prefix reaches the log's
 * base; until then it does not grow.
 *
 * Invariant: the log of a leader only grows at its end and is dropped from its base, so a place in it stays right until it
 * is dropped.
 */
import { type Window, word } from '../../memory/record.js';
import { PARENT, SOURCE, sourceIn } from '../layout.js';
import { WIDE } from '../wide.js';
import type { Counters } from './counters.js';
import type { Replication } from './replication.js';

/** The parent's index of an entry that came from a client. */
const NOT_FROM_PARENT = -1;

export class Gate {
  /** Every entry below this index, if it came from the parent, lies below the parent's gate. */
  index = 0;
  private position = 0;
  /** Every entry that was dropped and came from the parent has a lower index there. */
  private droppedFromParent = 0;

  constructor(
    private readonly replication: Replication,
    /** Counters over all entries of the log, decided or not. */
    private readonly proposed: Counters,
    private readonly firstIndex: number,
  ) {}

  /** Begin to lead. @param droppedFromParent  `firstFromParent` */
  start(droppedFromParent: number): void {
    this.index = this.firstIndex;
    this.position = this.replication.ring.base;
    this.droppedFromParent = droppedFromParent;
  }

  /** Entries below `end` are about to be dropped. */
  onDrop(end: number): void {
    if (end <= this.index) return;
    const { replication } = this;
    let position = replication.ring.base;
    for (let index = replication.baseIndex; index < end; index++) {
      const from = indexAtParent(replication.ring, position);
      if (from !== NOT_FROM_PARENT)
        this.droppedFromParent = Math.max(this.droppedFromParent, from + 1);
      position = (position + replication.wordsAt(position)) | 0;
    }
  }

  /** Move on as far as the parent's gate permits. */
  advance(parentGate: number): void {
    const { replication } = this;
    // If no entry waits for the parent's gate, there is no need to look at them one by one.
    if (parentGate >= this.proposed.nextFromParent) {
      this.index = replication.endIndex;
      this.position = replication.endPosition;
    } else {
      this.advanceBelow(parentGate);
    }
  }

  private advanceBelow(parentGate: number): void {
    const { replication } = this;
    this.reachBase(parentGate);
    if (this.index < replication.baseIndex) return;
    while (this.index < replication.endIndex) {
      if (indexAtParent(replication.ring, this.position) >= parentGate) return;
      this.position = (this.position + replication.wordsAt(this.position)) | 0;
      this.index++;
    }
  }

  /** The prefix may end below the log's base: then it grows to the base, or not at all. */
  private reachBase(parentGate: number): void {
    const { baseIndex, ring } = this.replication;
    if (this.index >= baseIndex || parentGate < this.droppedFromParent) return;
    this.index = baseIndex;
    this.position = ring.base;
  }
}

/** For a prefix of the log that grows: the parent's index below which all that goes to this group lies in the prefix. */
export class FromParent {
  /** How far it has been counted: index and position. */
  private index = 0;
  private position = 0;
  private next = 0;

  constructor(
    private readonly replication: Replication,
    private readonly proposed: Counters,
  ) {}

  /** Begin to lead. @param firstFromParent  `firstFromParent` */
  start(firstFromParent: number): void {
    this.index = this.replication.baseIndex;
    this.position = this.replication.ring.base;
    this.next = firstFromParent;
  }

  /** Entries below `end` are about to be dropped. */
  onDrop(end: number): void {
    this.countTo(end);
  }

  /** Count the entries below `end`. Returns 0 if it is unknown: entries from `end` on have been dropped. */
  below(end: number): number {
    const { replication } = this;
    if (end === replication.endIndex) {
      this.index = end;
      this.position = replication.endPosition;
      this.next = this.proposed.nextFromParent;
    } else {
      this.countTo(end);
    }
    return this.index <= end ? this.next : 0;
  }

  private countTo(end: number): void {
    const { replication } = this;
    while (this.index < end) {
      const from = indexAtParent(replication.ring, this.position);
      if (from !== NOT_FROM_PARENT) this.next = from + 1;
      this.position = (this.position + replication.wordsAt(this.position)) | 0;
      this.index++;
    }
  }
}

/** The parent's index of the first entry in the log that came from it, or else of the first one that has yet to come. */
export function firstFromParent(replication: Replication, proposed: Counters): number {
  let position = replication.ring.base;
  for (let index = replication.baseIndex; index < replication.endIndex; index++) {
    const from = indexAtParent(replication.ring, position);
    if (from !== NOT_FROM_PARENT) return from;
    position = (position + replication.wordsAt(position)) | 0;
  }
  return proposed.nextFromParent;
}

function indexAtParent(log: Window, position: number): number {
  const from = position + sourceIn(word(log, position));
  if (word(log, from + SOURCE.id) !== PARENT) return NOT_FROM_PARENT;
  return word(log, from + SOURCE.nextPosition) * WIDE + (word(log, from + SOURCE.number) >>> 0);
}
