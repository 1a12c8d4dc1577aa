/**
 * Copies of logs in the arena of a mirror: for each followed group, the log with the highest decided index. A `Tail`
 * reads them there.
 *
 * New entries are copied from the end of the copy to the decided index of the log. The control words are copied
 * last, so that a reader finds whole entries. If the next entry has been dropped meanwhile, or another log has a
 * higher decided index, that log is copied from its start.
 */
import type { Link } from '../../memory/machines/link.js';
import { distance, numberAt } from '../../memory/record.js';
import { LogRing } from '../../protocol/data-path/log.js';
import { LOG_CONTROL, RINGS_PER_WRITER } from '../../protocol/layout.js';
import { NO_BALLOT } from '../../protocol/leadership/ballot.js';
import type { ClusterContext } from '../cluster-context.js';

/** Reads words of other hosts. */
export interface Source {
  /** Posts a read: the words are in `into` after `settle`. */
  read(link: Link, at: number, into: Int32Array, intoAt: number, count: number): Promise<void>;
  settle(): Promise<void>;
}

/** The log of one member. */
interface Original {
  readonly participant: number;
  readonly writer: number;
  readonly ring: number;
  /** Its control words, as last read. */
  readonly control: Int32Array;
}

/** The copy of a log. */
interface Copy {
  readonly original: Original;
  readonly ring: LogRing;
  readonly marker: number;
  /** The end of the copy: the low word of an index, and the position of that entry. */
  index: number;
  position: number;
}

/** How many words are copied at a time: at first, and while more follow. */
const FEW_WORDS = 512;
const MANY_WORDS = 8192;

export class LogCopies {
  /** By followed group: the number of its readers. */
  private readonly readers = new Map<number, number>();
  /** By group. */
  private readonly copies = new Map<number, Copy>();

  constructor(
    private readonly context: ClusterContext,
    private readonly source: Source,
  ) {}

  get isEmpty(): boolean {
    return this.readers.size === 0;
  }

  /** The decided entries of the group are here once the promise resolves. */
  async follow(group: number): Promise<void> {
    this.readers.set(group, (this.readers.get(group) ?? 0) + 1);
    await this.copy();
  }

  /** A reader needs the group no longer. */
  leave(group: number): void {
    const left = this.readers.get(group)! - 1;
    if (left > 0) this.readers.set(group, left);
    else this.readers.delete(group);
  }

  /** Copies new entries. Returns true if there were any. */
  async copy(): Promise<boolean> {
    if (this.isEmpty) return false;
    const originals = new Map<number, Original[]>();
    for (const group of [...this.readers.keys()]) {
      originals.set(group, await this.readControls(group));
    }
    await this.source.settle();
    let hasNews = false;
    for (const [group, logs] of originals) {
      const copy = await this.copyOf(group, logs);
      if (copy !== undefined && (await this.goOn(group, copy))) hasNews = true;
    }
    return hasNews;
  }

  /** Reads the control words of all reachable members. */
  private async readControls(group: number): Promise<Original[]> {
    const { layout, map, network } = this.context;
    const originals: Original[] = [];
    for (let member = 0; member < layout.sizes.replicas; member++) {
      const participant = layout.replicaParticipant(group, member);
      const link = network!.linkOf[participant]!;
      if (!link.isOpen) continue;
      for (let writer = 0; writer < layout.sizes.replicas; writer++) {
        for (let ring = 0; ring < RINGS_PER_WRITER; ring++) {
          const control = new Int32Array(LOG_CONTROL.words);
          const at = map.region(participant) + layout.logControl(writer, ring);
          await this.source.read(link, at, control, 0, LOG_CONTROL.words);
          originals.push({ participant, writer, ring, control });
        }
      }
    }
    return originals;
  }

  /** The copy to extend: that of the log with the highest decided index. */
  private async copyOf(group: number, originals: readonly Original[]): Promise<Copy | undefined> {
    const before = this.copies.get(group);
    const same = originals.find((original) => before !== undefined && isOf(original, before));
    let best = same;
    for (const original of originals) if (knowsMore(original, best)) best = original;
    if (best === undefined) return undefined;
    if (before === undefined || best !== same) return this.begin(group, best);
    before.original.control.set(best.control);
    const [, base] = best.control;
    return distance(base, before.position) > 0 ? this.begin(group, best) : before;
  }

  /** Starts a copy at the log's oldest entry, if it has one. */
  private async begin(group: number, original: Original): Promise<Copy | undefined> {
    const { layout } = this.context;
    const { participant, writer, ring: number, control } = original;
    const [marker, base, decided] = control;
    const firstIndex = layout.sizes.firstIndex | 0;
    if (base === firstIndex && decided === firstIndex) return undefined;
    const ring = new LogRing(this.context.region(participant), layout, group, writer, number);
    const copy = { original, ring, marker: marker, index: 0, position: base };
    await this.read(copy, FEW_WORDS);
    copy.index = numberAt(ring, base);
    const isWhole = ring.entryWords(copy.position, copy.marker, copy.index) > 0;
    return isWhole ? copy : undefined;
  }

  /** Returns true if there were new entries. */
  private async goOn(group: number, copy: Copy): Promise<boolean> {
    const { ring, marker, original } = copy;
    const [, base, decided, key] = original.control;
    const first = copy.index;
    for (let count = FEW_WORDS; distance(decided, copy.index) > 0; count *= 2) {
      await this.read(copy, Math.min(count, MANY_WORDS));
      const { index } = copy;
      this.walk(copy, decided);
      // The entries were dropped meanwhile, or the connection broke: start again next time.
      if (copy.index === index) {
        this.copies.delete(group);
        return false;
      }
    }
    this.hide(group);
    ring.base = base;
    ring.decided = copy.index;
    ring.key = key;
    ring.marker = marker;
    this.copies.set(group, copy);
    return copy.index !== first;
  }

  private walk(copy: Copy, decided: number): void {
    const { ring, marker } = copy;
    while (distance(decided, copy.index) > 0) {
      const words = ring.entryWords(copy.position, marker, copy.index);
      if (words === 0) return;
      copy.index = (copy.index + 1) | 0;
      copy.position = (copy.position + words) | 0;
    }
  }

  /** Hides the previous copy of a group. */
  private hide(group: number): void {
    const before = this.copies.get(group);
    if (before !== undefined) before.ring.marker = NO_BALLOT;
  }

  /** Reads the words behind the end of a copy: this many, or at least one entry. */
  private async read({ original, ring, position }: Copy, count: number): Promise<void> {
    const { layout, map, network, arena } = this.context;
    const link = network!.linkOf[original.participant]!;
    const start = map.region(original.participant) + ring.at;
    const place = position & ring.mask;
    const words = Math.min(Math.max(count, layout.entryWordsMax), layout.logWords);
    const untilWrap = Math.min(words, layout.logWords - place);
    await this.source.read(link, start + place, arena.words, start + place, untilWrap);
    if (words > untilWrap) {
      await this.source.read(link, start, arena.words, start, words - untilWrap);
    }
    await this.source.settle();
  }
}

function isOf(
  { participant, writer, ring, control }: Original,
  { original, marker }: Copy,
): boolean {
  return (
    participant === original.participant &&
    writer === original.writer &&
    ring === original.ring &&
    control[LOG_CONTROL.marker] === marker
  );
}

/** Has a higher ballot, or the same ballot and a higher decided index. */
function knowsMore({ control }: Original, than: Original | undefined): boolean {
  const marker = control[LOG_CONTROL.marker];
  const otherMarker = than?.control[LOG_CONTROL.marker] ?? NO_BALLOT;
  if (marker !== otherMarker) return marker > otherMarker;
  if (than === undefined) return false;
  return distance(control[LOG_CONTROL.decided], than.control[LOG_CONTROL.decided]) > 0;
}
