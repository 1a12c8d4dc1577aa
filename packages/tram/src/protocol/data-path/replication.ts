/**
 * The leader's copies: its own log, and the same bytes at the same places in every member that
 * granted it (paper step 2.3, and 4.3 for the adopted part).
 *
 * A member is brought up in one way, whether it granted early or late (H3, H27): reset the spare ring
 * it named, write the whole log from the base on, all under our ballot, then the marker that makes it
 * that member's log. A leader that dies half-way has changed nothing there.
 *
 * Invariants: an entry counts at a member only after our marker succeeded there. Everything is
 * posted at once and nobody is waited for (H16).
 */
import { type Memory, OPEN, type ProcessId } from '../../memory/contract.js';
import {
  copyWords,
  FRAME_WORDS,
  HEAD_WORDS,
  postRange,
  seal,
  sealHashed,
  word,
} from '../../memory/record.js';
import { LOG_CONTROL } from '../layout.js';
import type { Member } from '../member.js';
import { reachedBy } from '../quorum.js';
import { KIND, tagOf } from '../tags.js';
import { type Extent, type LogRing, spareRing } from './log.js';

type Phase = 'absent' | 'installing' | 'standing';

/** One member's copy. */
interface Copy {
  readonly process: ProcessId;
  phase: Phase;
  /** Counts how often it was brought up, so that completions of an earlier life are not taken for this one's. */
  admission: number;
  /** The life that granted it, and with which key. */
  incarnation: number;
  guard: number;
  /** Where the ring that we write, and its control words, lie at the member. */
  ringAt: number;
  controlAt: number;
  sentIndex: number;
  sentPosition: number;
  /** Entries below this index are there. */
  heldIndex: number;
  /** The decided index it was last told. */
  toldDecided: number;
}

/**
 * A completion tells its admission (modulo 16) and, for entries, the index below which they are written
 * (modulo 2²³: more are never under way).
 */
const ADMISSION_BITS = 4;
const INDEX_MASK = (1 << 23) - 1;

/** How often all are hurried. */
const ROUNDS_PER_TRIAL = 64;

function copyTag(kind: number, copy: Copy, endIndex: number): number {
  return tagOf(kind, ((endIndex & INDEX_MASK) << ADMISSION_BITS) | admissionOf(copy.admission));
}

function admissionOf(value: number): number {
  return value & ((1 << ADMISSION_BITS) - 1);
}

export class Replication {
  ballot = 0;
  /** The leader's own ring, the source of all copies. */
  ring: LogRing;
  baseIndex = 0;
  endIndex = 0;
  endPosition = 0;
  /** First undecided index (paper's FUO). */
  decided = 0;

  private readonly memory: Memory;
  private rounds = 0;
  private readonly copies: Copy[] = [];
  private readonly control = new Int32Array(LOG_CONTROL.words);
  private readonly held: Float64Array;
  private readonly ringWords: number;

  constructor(private readonly member: Member) {
    this.memory = member.edges.memory;
    this.ring = member.log.ring(member.index, 0);
    this.ringWords = member.layout.logWords;
    this.held = new Float64Array(member.replicas);
    for (let i = 0; i < member.replicas; i++) {
      this.copies.push({
        process: member.processOf(i),
        phase: 'absent',
        admission: 0,
        incarnation: 0,
        guard: OPEN,
        ringAt: 0,
        controlAt: 0,
        sentIndex: 0,
        sentPosition: 0,
        heldIndex: 0,
        toldDecided: 0,
      });
    }
  }

  /**
   * Begin under `ballot` with a copy of the adopted entries, which stand whole in `source` from
   * `basePosition` on under their old ballot. From here on this is our own log as well.
   */
  start(ballot: number, ring: LogRing, source: LogRing, adopted: Extent, baseIndex: number): void {
    ring.marker = 0;
    this.ballot = ballot;
    this.ring = ring;
    this.baseIndex = baseIndex;
    this.endIndex = baseIndex;
    this.endPosition = adopted.basePosition;
    this.decided = this.member.nextToDeliver;
    while (this.endIndex < adopted.endIndex) {
      const words = word(source, this.endPosition);
      copyWords(source, this.endPosition, ring, this.endPosition, words);
      seal(ring, this.endPosition, words - FRAME_WORDS, ballot, this.endIndex);
      this.endPosition = (this.endPosition + words) | 0;
      this.endIndex++;
    }
    ring.base = adopted.basePosition;
    ring.decided = this.decided | 0;
    ring.key = this.member.key;
    ring.marker = ballot;
  }

  /** A new attempt begins: completions of what was written before no longer count. */
  abandon(): void {
    for (const copy of this.copies) copy.phase = 'absent';
  }

  /** Bring up a member that granted us its log, in a ring that spares its current one (H22). */
  admit(other: number, incarnation: number, key: number, log: Extent): void {
    const { index, layout } = this.member;
    const copy = this.copies[other];
    const ring = spareRing(log, index);
    copy.phase = 'installing';
    copy.admission++;
    copy.incarnation = incarnation;
    // A write counts only while the member permits the key of this grant (H11, H12).
    copy.guard = key;
    copy.ringAt = layout.logRing(index, ring);
    copy.controlAt = layout.logControl(index, ring);
    copy.heldIndex = this.baseIndex;
    copy.toldDecided = this.decided;
    // The whole log, all of it under our ballot, whatever the member has already (H27).
    copy.sentIndex = this.baseIndex;
    copy.sentPosition = this.ring.base;
    // No log any more before anything of it changes: words of one write land in any order.
    this.writeControl(copy, LOG_CONTROL.marker, 0);
    const { control } = this;
    control[LOG_CONTROL.base] = this.ring.base;
    control[LOG_CONTROL.decided] = this.decided | 0;
    control[LOG_CONTROL.key] = key;
    const { base, words } = LOG_CONTROL;
    const to = copy.controlAt + base;
    this.memory.write(copy.process, to, control, base, words - base, copy.guard, KIND.none);
    this.send(copy);
    this.writeControl(copy, LOG_CONTROL.marker, this.ballot, copyTag(KIND.marker, copy, 0));
    this.memory.wake(copy.process, true);
  }

  /** How many words of entries there is room for. */
  get roomWords(): number {
    return this.ringWords - this.usedWords;
  }

  get usedWords(): number {
    return (this.endPosition - this.ring.base) | 0;
  }

  /** Is the log filling up, so that it matters how far others are? */
  get isPressed(): boolean {
    return this.usedWords * 2 > this.ringWords;
  }

  /** The body of the next entry, with this hash, has been put at `nextBody`. */
  append(bodyWords: number, hash: number): void {
    const { ring, endPosition, ballot, endIndex } = this;
    const words = sealHashed(ring, endPosition, bodyWords, ballot, endIndex, hash);
    this.endPosition = (this.endPosition + words) | 0;
    this.endIndex++;
  }

  /** Where the next entry's body goes. */
  get nextBody(): number {
    return (this.endPosition + HEAD_WORDS) | 0;
  }

  /**
   * Post what each member does not have yet: one write for all of it, two where the ring wraps. A quorum is waited for,
   * so a quorum is hurried.
   */
  sendAll(): number {
    let work = 0;
    for (const copy of this.copies) {
      if (copy.phase === 'absent' || copy.sentIndex === this.endIndex) continue;
      this.send(copy);
      work++;
    }
    if (work > 0) this.hurryQuorum();
    return work;
  }

  /**
   * Those who hold most have been the fastest. Now and then all are hurried: others may have become faster.
   */
  private hurryQuorum(): void {
    const { copies, member, memory } = this;
    const held = this.heldByQuorum();
    const isTrial = ++this.rounds % ROUNDS_PER_TRIAL === 0;
    let missing = isTrial ? copies.length : member.quorum - 1;
    for (const copy of copies) {
      if (missing === 0) return;
      if (copy.phase !== 'standing' || (copy.heldIndex < held && !isTrial)) continue;
      memory.hurry(copy.process);
      missing--;
    }
  }

  private send(copy: Copy): void {
    const { memory, ring, endPosition, endIndex } = this;
    const { process, ringAt, sentPosition, guard } = copy;
    const tag = copyTag(KIND.entries, copy, endIndex);
    postRange(memory, process, ringAt, ring, sentPosition, endPosition, guard, KIND.none, tag);
    copy.sentIndex = endIndex;
    copy.sentPosition = endPosition;
  }

  private writeControl(copy: Copy, field: number, value: number, tag: number = KIND.none): void {
    this.memory.writeWord(copy.process, copy.controlAt + field, value, copy.guard, tag);
  }

  /** A write to a member's log has finished. False if it failed and the member is lost to us. */
  onWritten(other: number, kind: number, value: number, guard: number, ok: boolean): boolean {
    const copy = this.copies[other];
    if (admissionOf(value) !== admissionOf(copy.admission)) return true;
    if (!ok) return !this.onFailed(other, guard);
    if (copy.phase === 'absent' || guard !== copy.guard) return true;
    if (kind === KIND.marker) copy.phase = 'standing';
    else
      copy.heldIndex =
        copy.sentIndex - ((copy.sentIndex - (value >>> ADMISSION_BITS)) & INDEX_MASK);
    return true;
  }

  /** Whatever was written under this guard failed. True if the member is lost to us by that. */
  onFailed(other: number, guard: number): boolean {
    const copy = this.copies[other];
    if (copy.phase === 'absent' || guard !== copy.guard) return false;
    copy.phase = 'absent';
    return true;
  }

  /** The life of a member whose copy we keep; 0 if we keep none. */
  lifeOf(other: number): number {
    const copy = this.copies[other];
    return copy.phase === 'absent' ? 0 : copy.incarnation;
  }

  /** How many members, ourselves included, have our log as theirs. */
  standing(): number {
    let count = 1;
    for (const copy of this.copies) if (copy.phase === 'standing') count++;
    return count;
  }

  /** How many members, ourselves included, have it or are getting it. */
  present(): number {
    let count = 1;
    for (const copy of this.copies) if (copy.phase !== 'absent') count++;
    return count;
  }

  /** Entries below this index are at a quorum under our ballot: they are decided, for ever. */
  heldByQuorum(): number {
    const { held, copies } = this;
    for (let other = 0; other < copies.length; other++) {
      const copy = copies[other];
      const own = other === this.member.index;
      held[other] = own ? this.endIndex : copy.phase === 'standing' ? copy.heldIndex : -1;
    }
    // f+1 members decide; nobody waits for the rest (H16).
    return reachedBy(held, this.member.quorum);
  }

  /** Tell the members how far the log is decided; they deliver up to there (H15). */
  publishDecided(): number {
    const { decided, memory } = this;
    let told = 0;
    this.ring.decided = decided | 0;
    for (const copy of this.copies) {
      if (copy.phase === 'absent' || copy.toldDecided === decided) continue;
      copy.toldDecided = decided;
      this.writeControl(copy, LOG_CONTROL.decided, decided | 0);
      // Nobody waits for a follower, unless the log is filling up.
      memory.wake(copy.process, this.isPressed);
      told++;
    }
    return told;
  }

  /** Drop entries before the one at `position`: the base moves before anything is overwritten. */
  truncate(index: number, position: number): void {
    this.baseIndex = index;
    this.ring.base = position;
    for (const copy of this.copies) {
      if (copy.phase !== 'absent') this.writeControl(copy, LOG_CONTROL.base, position);
    }
  }

  wordsAt(position: number): number {
    return word(this.ring, position);
  }
}
