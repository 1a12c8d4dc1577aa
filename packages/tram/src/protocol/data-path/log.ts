/**
 * A group's replicated log, as it lies in one member's region: two rings for each member that may
 * ever lead. The ring with the highest marker is *the* log of this member; all others are spare.
 *
 * An entry has the same index and the same ring position in every log that contains it, whoever
 * leads, so a reader keeps its place across leader changes.
 *
 * Invariants: only writes of the permitted ballot's owner count here. All entries of a ring carry its
 * marker's ballot. A marker meant for an earlier life of this member, whose memory was lost, is none. Once
 * it has one, a log never drops its last decided entry; that is why one word, `base`, is enough to find
 * its start.
 */
import type { Memory } from '../../memory/contract.js';
import { extend, numberAt, type Window, wordsOf } from '../../memory/record.js';
import { type Layout, LOG_CONTROL, RINGS_PER_WRITER } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import { isOfLife } from '../leadership/key.js';

export class LogRing implements Window {
  readonly at: number;
  readonly mask: number;
  readonly salt: number;
  readonly control: number;
  private readonly entryWordsMax: number;

  constructor(
    readonly words: Int32Array,
    layout: Layout,
    group: number,
    readonly writer: number,
    readonly ring: number,
  ) {
    this.control = layout.logControl(writer, ring);
    this.at = layout.logRing(writer, ring);
    this.mask = layout.logWords - 1;
    this.salt = layout.logSalt(group);
    this.entryWordsMax = layout.entryWordsMax;
  }

  /** The ballot under which this ring became a member's log; 0 while it is being written. */
  get marker(): number {
    return this.words[this.control + LOG_CONTROL.marker];
  }

  set marker(ballot: number) {
    this.words[this.control + LOG_CONTROL.marker] = ballot;
  }

  /** The key under which it was written: a log meant for an earlier life of its member is none. */
  get key(): number {
    return this.words[this.control + LOG_CONTROL.key];
  }

  set key(key: number) {
    this.words[this.control + LOG_CONTROL.key] = key;
  }

  /** Position of the oldest entry. */
  get base(): number {
    return this.words[this.control + LOG_CONTROL.base];
  }

  set base(position: number) {
    this.words[this.control + LOG_CONTROL.base] = position;
  }

  /** Low word of the index of the first undecided entry. */
  get decided(): number {
    return this.words[this.control + LOG_CONTROL.decided];
  }

  set decided(index: number) {
    this.words[this.control + LOG_CONTROL.decided] = index;
  }

  /** Words of entry `index` if it stands whole at `position` under `ballot`, else 0. */
  entryWords(position: number, ballot: number, index: number): number {
    return wordsOf(this, position, ballot, index, this.entryWordsMax);
  }
}

/** The extent of a log at the moment its member promised it to a candidate. */
export interface Extent {
  ballot: number;
  writer: number;
  ring: number;
  basePosition: number;
  endPosition: number;
  endIndex: number;
}

export function noExtent(origin: number): Extent {
  return {
    ballot: NO_BALLOT,
    writer: 0,
    ring: 0,
    basePosition: origin | 0,
    endPosition: origin | 0,
    endIndex: origin,
  };
}

/** Among logs, a newer ballot wins; among equals, the one that reaches further (H20). */
export function isFurther(a: Extent, b: Extent): boolean {
  return a.ballot > b.ballot || (a.ballot === b.ballot && a.endIndex > b.endIndex);
}

/** The ring that `writer` may overwrite at a member: not the one that holds the member's log (H22). */
export function spareRing(log: Extent, writer: number): number {
  return log.ballot !== NO_BALLOT && log.writer === writer ? 1 - log.ring : 0;
}

export class Log {
  private readonly rings: LogRing[];

  constructor(
    private readonly memory: Memory,
    private readonly layout: Layout,
    group: number,
    /** The life in which the region was last empty. */
    private readonly life: number,
  ) {
    this.rings = [];
    for (let writer = 0; writer < layout.sizes.replicas; writer++) {
      for (let ring = 0; ring < RINGS_PER_WRITER; ring++) {
        this.rings.push(new LogRing(memory.own, layout, group, writer, ring));
      }
    }
  }

  ring(writer: number, ring: number): LogRing {
    return this.rings[writer * RINGS_PER_WRITER + ring];
  }

  /** The ring that holds `writer`'s log under `ballot`, once its marker stands. */
  under(ballot: number, writer: number): LogRing | undefined {
    if (ballot === NO_BALLOT) return undefined;
    for (let ring = 0; ring < RINGS_PER_WRITER; ring++) {
      const candidate = this.ring(writer, ring);
      if (candidate.marker !== ballot) continue;
      if (isOfLife(candidate.key, this.life)) return candidate;
    }
    return undefined;
  }

  /** This member's log, found in memory: whatever succeeded before the last promise is in it. */
  current(): LogRing | undefined {
    let current: LogRing | undefined;
    for (const ring of this.rings) {
      if (!isOfLife(ring.key, this.life)) continue;
      if (ring.marker > (current?.marker ?? NO_BALLOT)) current = ring;
    }
    return current;
  }

  /** From `ring`'s base to the end of what stands whole; `near` is any index close to it. */
  extentOf(ring: LogRing | undefined, near: number): Extent {
    if (ring === undefined) return noExtent(this.layout.sizes.origin);
    for (;;) {
      const { base } = ring;
      const extent = this.walk(ring, base, near);
      // A deposed leader's late write may drop and overwrite entries under our eyes.
      this.memory.readFence();
      if (ring.base === base) return extent;
    }
  }

  private walk(ring: LogRing, base: number, near: number): Extent {
    const extent = noExtent(this.layout.sizes.origin);
    extent.ballot = ring.marker;
    extent.writer = ring.writer;
    extent.ring = ring.ring;
    extent.basePosition = base;
    extent.endPosition = base;
    // Only a log that was never written to has no entry at its base; it starts at the origin.
    for (let index = extend(near, numberAt(ring, base)); ; index++) {
      const words = ring.entryWords(extent.endPosition, extent.ballot, index);
      if (words === 0) return extent;
      extent.endPosition = (extent.endPosition + words) | 0;
      extent.endIndex = index + 1;
    }
  }
}
