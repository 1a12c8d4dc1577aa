/**
 * A group's replicated log, as it lies in one member's region: two rings for each member that may ever lead. The ring
 * with the highest marker is the log of this member; all others are spare. Leaders write it (replication.ts), followers
 * deliver from it (delivery.ts), and a member seals it when it grants it (`extentOf`).
 *
 * An entry has the same index and the same ring position in every log that contains it, whichever member leads, so a
 * reader keeps its place across leader changes.
 *
 * Invariants: only writes of the permitted ballot's owner count here. All entries of a ring carry its marker's ballot. A
 * marker that was meant for an earlier incarnation of this member, whose memory was lost, does not count. A log that has
 * had an entry never drops its last decided one; that is why one word, `base`, is enough to find its start.
 *
 * Marker and decided index are loaded by `Atomics`: what was posted before them is loaded after them. A key is loaded
 * after its marker. What lies at the base is loaded after the base, since its place depends on it.
 */
import type { Memory } from '../../memory/contract.js';
import { extend, numberAt, ringAt, type Salt, type Window, wordsOf } from '../../memory/record.js';
import { type Layout, LOG_CONTROL, RINGS_PER_WRITER } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import { isSince } from '../leadership/key.js';

export class LogRing implements Window {
  readonly at: number;
  readonly mask: number;
  readonly salt: Salt;
  readonly control: number;
  private readonly entryWordsMax: number;
  /** The same ring in the shape of other windows: code that meets one shape only is faster. */
  readonly window: Window;

  constructor(
    readonly words: Int32Array,
    layout: Layout,
    group: number,
    readonly writer: number,
    /** Which of the writer's two rings. */
    readonly ringIndex: number,
  ) {
    this.control = layout.logControl(writer, ringIndex);
    this.at = layout.logRing(writer, ringIndex);
    this.mask = layout.logWords - 1;
    this.salt = layout.logSalt(group);
    this.entryWordsMax = layout.entryWordsMax;
    this.window = ringAt(words, this.at, layout.logWords, this.salt);
  }

  /** The ballot under which this ring became its member's log; 0 while the log is being installed. */
  get marker(): number {
    return Atomics.load(this.words, this.control + LOG_CONTROL.marker);
  }

  set marker(ballot: number) {
    Atomics.store(this.words, this.control + LOG_CONTROL.marker, ballot);
  }

  /** The key under which it was written. It tells for which incarnation of its member the log was meant. */
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
    Atomics.store(this.words, this.control + LOG_CONTROL.base, position);
  }

  /** Low word of the index of the first undecided entry. */
  get decided(): number {
    return Atomics.load(this.words, this.control + LOG_CONTROL.decided);
  }

  set decided(index: number) {
    const at = this.control + LOG_CONTROL.decided;
    if (this.words[at] !== index) Atomics.store(this.words, at, index);
  }

  /** Words of entry `index` if it lies whole at `position` under `ballot`, else 0. */
  entryWords(position: number, ballot: number, index: number): number {
    return wordsOf(this.window, position, ballot, index, this.entryWordsMax);
  }
}

/** The extent of a log at the moment when its member promised it to a candidate. */
export interface Extent {
  /** The log's marker; NO_BALLOT if the member has no log. */
  ballot: number;
  /** The ring that holds it. */
  writer: number;
  ringIndex: number;
  /** The log lies whole from here … */
  basePosition: number;
  /** … to here. Equal to `basePosition` if it has no entry. */
  endPosition: number;
  /** The index after that of its last entry. */
  endIndex: number;
}

export function noExtent(firstIndex: number): Extent {
  return {
    ballot: NO_BALLOT,
    writer: 0,
    ringIndex: 0,
    basePosition: firstIndex | 0,
    endPosition: firstIndex | 0,
    endIndex: firstIndex,
  };
}

/** Among logs, a newer ballot wins; among equals, the one that reaches further (H20). */
export function isFurther(a: Extent, b: Extent): boolean {
  return a.ballot > b.ballot || (a.ballot === b.ballot && a.endIndex > b.endIndex);
}

/** Index of the ring that `writer` may overwrite at a member: not the one that holds the member's log (H22). */
export function spareRing(log: Extent, writer: number): number {
  return log.ballot !== NO_BALLOT && log.writer === writer ? 1 - log.ringIndex : 0;
}

export class Log {
  private readonly rings: LogRing[];

  constructor(
    private readonly memory: Memory,
    private readonly layout: Layout,
    group: number,
    /** The first key that this member has made since its region was last empty. */
    private readonly firstKey: number,
  ) {
    this.rings = [];
    for (let writer = 0; writer < layout.sizes.replicas; writer++) {
      for (let ringIndex = 0; ringIndex < RINGS_PER_WRITER; ringIndex++) {
        this.rings.push(new LogRing(memory.own, layout, group, writer, ringIndex));
      }
    }
  }

  ring(writer: number, ringIndex: number): LogRing {
    return this.rings[writer * RINGS_PER_WRITER + ringIndex];
  }

  /** The ring that holds `writer`'s log under `ballot`, once it is installed. */
  under(ballot: number, writer: number): LogRing | undefined {
    if (ballot === NO_BALLOT) return undefined;
    for (let ringIndex = 0; ringIndex < RINGS_PER_WRITER; ringIndex++) {
      const candidate = this.ring(writer, ringIndex);
      if (candidate.marker !== ballot) continue;
      if (isSince(candidate.key, this.firstKey)) return candidate;
    }
    return undefined;
  }

  /** This member's log, as memory shows it: every write that succeeded before the last promise is in it. */
  current(): LogRing | undefined {
    let current: LogRing | undefined;
    let highest = NO_BALLOT;
    for (const ring of this.rings) {
      const { marker } = ring;
      if (marker <= highest || !isSince(ring.key, this.firstKey)) continue;
      highest = marker;
      current = ring;
    }
    return current;
  }

  /** From `ring`'s base to the end of the last whole entry. @param near  an index within 2³¹ of those in the log */
  extentOf(ring: LogRing | undefined, near: number): Extent {
    if (ring === undefined) return noExtent(this.layout.sizes.firstIndex);
    for (;;) {
      const { base } = ring;
      const extent = this.walk(ring, base, near);
      // A deposed leader's late write may drop and overwrite entries while we walk.
      this.memory.readFence();
      if (ring.base === base) return extent;
    }
  }

  private walk(ring: LogRing, base: number, near: number): Extent {
    const extent = noExtent(this.layout.sizes.firstIndex);
    extent.ballot = ring.marker;
    extent.writer = ring.writer;
    extent.ringIndex = ring.ringIndex;
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
