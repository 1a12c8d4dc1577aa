/**
 * The leader's log and its copies: the same bytes at the same places in every member that granted its log to us (paper
 * step 2.3, and 4.3 for the adopted part). The leader appends and sends; takeover.ts starts the log and installs it.
 *
 * Our log is installed at a member in one way, whether the member granted early or late (H3, H27): reset the spare ring
 * that it named, write the whole log from the base on, all under our ballot, and then the marker that makes the ring
 * the member's log. A leader that dies half-way has changed nothing there.
 *
 * Invariants: an entry counts at a member only after our marker succeeded there. Everything is posted at once, without
 * waiting for any member (H16). decided ≤ end.
 */
import { type Memory, OPEN, type ParticipantId } from '../../memory/contract.js';
import {
  copyWords,
  FRAME_WORDS,
  HEAD_WORDS,
  postRange,
  postRangeAtOnce,
  seal,
  sealHashed,
  word,
} from '../../memory/record.js';
import { assert } from '../assert.js';
import { LOG_CONTROL } from '../layout.js';
import type { Member } from '../member.js';
import { reachedBy } from '../quorum.js';
import { KIND, tagOf } from '../tags.js';
import { type Extent, type LogRing, spareRing } from './log.js';

/** Absent: we do not write there. Installing: the marker is under way. Installed: our log is the member's log. */
type Phase = 'absent' | 'installing' | 'installed';

/** One member's copy of our log. Our own place is unused, and stays absent. */
interface Copy {
  readonly participant: ParticipantId;
  phase: Phase;
  /** Counts the installations at this member, so that completions of an earlier one do not count for this one. */
  installation: number;
  /** The incarnation that granted its log, and the key that it permits for that. */
  incarnation: number;
  guard: number;
  /** Where the ring that we write, and its control words, lie at the member. */
  ringAt: number;
  controlAt: number;
  /** Entries below this index have been posted. heldIndex ≤ sentIndex ≤ endIndex. */
  sentIndex: number;
  /** The position of entry `sentIndex`. */
  sentPosition: number;
  /** The writes of entries below this index have succeeded. They count once the phase is `installed`. */
  heldIndex: number;
  /** The decided index that was posted last. toldDecided ≤ decided. */
  toldDecided: number;
}

/**
 * The number in a completion's tag: the installation (modulo 16) and, for entries, the index below which they are
 * written (modulo 2²³, which is more than are ever under way).
 */
const INSTALLATION_BITS = 4;
const INDEX_MASK = (1 << 23) - 1;

/** In one of so many rounds the writes to all members are urgent. */
const ROUNDS_PER_TRIAL = 64;

function copyTag(kind: number, copy: Copy, endIndex: number): number {
  const installation = installationOf(copy.installation);
  return tagOf(kind, ((endIndex & INDEX_MASK) << INSTALLATION_BITS) | installation);
}

function installationOf(value: number): number {
  return value & ((1 << INSTALLATION_BITS) - 1);
}

export class Replication {
  ballot = 0;
  /** Our own ring, the source of all copies. */
  ring: LogRing;
  /** The log holds entries baseIndex … endIndex - 1. */
  baseIndex = 0;
  endIndex = 0;
  /** Where entry `baseIndex` lies, as in `ring.base`, and where entry `endIndex` will lie. */
  private basePosition = 0;
  endPosition = 0;
  /** First undecided index (paper's FUO). Never goes back under one ballot. */
  decided = 0;

  private readonly memory: Memory;
  private readonly copies: Copy[] = [];
  readonly ringWords: number;
  private rounds = 0;
  /** What our own log says of that. */
  private keptDecided = 0;
  /** Is there a member that has not been told how far the log is decided? */
  owesDecided = false;
  /** Buffers that are allocated once. */
  private readonly control = new Int32Array(LOG_CONTROL.words);
  private readonly held: Float64Array;

  constructor(private readonly member: Member) {
    this.memory = member.edges.memory;
    this.ring = member.log.ring(member.index, 0);
    this.ringWords = member.layout.logWords;
    this.held = new Float64Array(member.replicas);
    for (let i = 0; i < member.replicas; i++) this.copies.push(newCopy(member.participantOf(i)));
  }

  /** A new attempt begins: completions of what was written before no longer count. */
  abandon(): void {
    for (const copy of this.copies) copy.phase = 'absent';
  }

  /**
   * Begin under `ballot` with a copy of the adopted entries, which lie whole in `source` from `basePosition` on, under
   * their old ballot. From here on this is our own log as well.
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
    assert(this.endPosition === adopted.endPosition, 'the adopted log is taken over whole');
    this.basePosition = adopted.basePosition;
    ring.base = this.basePosition;
    this.keptDecided = this.decided;
    ring.decided = this.decided | 0;
    ring.key = this.member.key;
    ring.marker = ballot;
  }

  /** Install our log at a member that granted it, in a ring that spares its current log (H22). */
  install(other: number, incarnation: number, key: number, log: Extent): void {
    const { index, layout } = this.member;
    assert(other !== index, 'our own log needs no copy');
    const copy = this.copies[other];
    const ringIndex = spareRing(log, index);
    copy.phase = 'installing';
    copy.installation++;
    copy.incarnation = incarnation;
    // A write counts only while the member permits the key of this grant (H11, H12).
    copy.guard = key;
    copy.ringAt = layout.logRing(index, ringIndex);
    copy.controlAt = layout.logControl(index, ringIndex);
    copy.heldIndex = this.baseIndex;
    copy.toldDecided = this.decided;
    // The whole log, all of it under our ballot, whatever the member has already (H27).
    copy.sentIndex = this.baseIndex;
    copy.sentPosition = this.basePosition;
    // The ring is no log any more before anything of it changes: words of one write land in any order.
    this.writeControl(copy, LOG_CONTROL.marker, 0);
    const { control } = this;
    control[LOG_CONTROL.base] = this.basePosition;
    control[LOG_CONTROL.decided] = this.decided | 0;
    control[LOG_CONTROL.key] = key;
    const { base, words } = LOG_CONTROL;
    const to = copy.controlAt + base;
    this.memory.write(copy.participant, to, control, base, words - base, copy.guard, KIND.none);
    this.send(copy);
    this.writeControl(copy, LOG_CONTROL.marker, this.ballot, copyTag(KIND.marker, copy, 0));
    this.memory.wake(copy.participant, true);
  }

  private writeControl(copy: Copy, field: number, value: number, tag: number = KIND.none): void {
    this.memory.writeWord(copy.participant, copy.controlAt + field, value, copy.guard, tag);
  }

  /** Post the entries that a member does not have yet: one write for all of them, two where the ring wraps. */
  private send(copy: Copy): void {
    const { memory, ring, endPosition, endIndex } = this;
    const { participant, ringAt, sentPosition, guard } = copy;
    const tag = copyTag(KIND.entries, copy, endIndex);
    postRange(memory, participant, ringAt, ring, sentPosition, endPosition, guard, KIND.none, tag);
    copy.sentIndex = endIndex;
    copy.sentPosition = endPosition;
  }

  /** The same at once, if the memory can. False if it must be polled whether the member has them. */
  private sendAtOnce(copy: Copy): boolean {
    const { memory, ring, endPosition, endIndex } = this;
    const { participant: to, ringAt, sentPosition: from, guard } = copy;
    const tag = copyTag(KIND.entries, copy, endIndex);
    const { none } = KIND;
    const isHeld = postRangeAtOnce(memory, to, ringAt, ring, from, endPosition, guard, none, tag);
    copy.sentIndex = endIndex;
    copy.sentPosition = endPosition;
    if (isHeld) copy.heldIndex = endIndex;
    return isHeld;
  }

  /** How many members, ourselves included, have installed our log. */
  countInstalled(): number {
    let count = 1;
    for (const copy of this.copies) if (copy.phase === 'installed') count++;
    return count;
  }

  /** How many members, ourselves included, have installed our log or are about to. */
  countPresent(): number {
    let count = 1;
    for (const copy of this.copies) if (copy.phase !== 'absent') count++;
    return count;
  }

  /** Where the next entry's body goes. */
  get nextBody(): number {
    return (this.endPosition + HEAD_WORDS) | 0;
  }

  /** How many words of entries there is room for. */
  get roomWords(): number {
    return this.ringWords - this.usedWords;
  }

  get usedWords(): number {
    return (this.endPosition - this.basePosition) | 0;
  }

  /** Is the log more than half full, so that the progress of others matters? */
  get isPressed(): boolean {
    return this.usedWords * 2 > this.ringWords;
  }

  /** Words of the entry at `position`. */
  wordsAt(position: number): number {
    return word(this.ring, position);
  }

  /** Frame the body at `nextBody`, which has this hash, as the next entry. */
  append(bodyWords: number, hash: number): void {
    const { ring, endPosition, ballot, endIndex } = this;
    const words = sealHashed(ring, endPosition, bodyWords, ballot, endIndex, hash);
    this.endPosition = (this.endPosition + words) | 0;
    this.endIndex++;
  }

  /**
   * In a quick step: send the new entries to no more members than make a quorum with us, if these hold them at once. The
   * others get them in the next full step. If any of these does not, all members get them now: we wait for none (H16).
   */
  sendToQuorum(): number {
    const { copies, endIndex } = this;
    if (this.decided === endIndex) return 0;
    let missing = this.member.quorum - 1;
    for (const copy of copies) {
      if (copy.phase !== 'installed' || copy.sentIndex === endIndex) continue;
      if (!this.sendAtOnce(copy)) return this.sendAll(true);
      if (--missing === 0) return 1;
    }
    return this.sendAll();
  }

  /**
   * Send to each member what it does not have yet. Returns to how many.
   * @param isAwaited  does this step wait already for what it has sent to one of them?
   */
  sendAll(isAwaited = false): number {
    let work = 0;
    for (const copy of this.copies) {
      if (copy.phase === 'absent' || copy.sentIndex === this.endIndex) continue;
      this.send(copy);
      work++;
    }
    if (work > 0 || isAwaited) this.markQuorumUrgent();
    return work;
  }

  /**
   * We wait for a quorum, so the writes to a quorum are urgent: to those that hold most, which have been the fastest.
   * Now and then the writes to all are urgent, since others may have become faster.
   */
  private markQuorumUrgent(): void {
    const { copies, member, memory } = this;
    const held = this.heldByQuorum();
    const isTrial = ++this.rounds % ROUNDS_PER_TRIAL === 0;
    let missing = isTrial ? copies.length : member.quorum - 1;
    for (const copy of copies) {
      if (missing === 0) return;
      if (copy.phase !== 'installed' || (copy.heldIndex < held && !isTrial)) continue;
      memory.markUrgent(copy.participant);
      missing--;
    }
  }

  /** A write to a member's log has finished. False if it failed and we lose the member by that. */
  onWritten(other: number, kind: number, value: number, guard: number, ok: boolean): boolean {
    const copy = this.copies[other];
    if (installationOf(value) !== installationOf(copy.installation)) return true;
    if (!ok) return !this.onFailed(other, guard);
    if (copy.phase === 'absent' || guard !== copy.guard) return true;
    if (kind === KIND.marker) copy.phase = 'installed';
    else
      copy.heldIndex =
        copy.sentIndex - ((copy.sentIndex - (value >>> INSTALLATION_BITS)) & INDEX_MASK);
    return true;
  }

  /** A write under this guard failed. True if we lose the member by that. */
  onFailed(other: number, guard: number): boolean {
    const copy = this.copies[other];
    if (copy.phase === 'absent' || guard !== copy.guard) return false;
    copy.phase = 'absent';
    return true;
  }

  /** Entries below this index are at a quorum under our ballot: they are decided, and stay so. */
  heldByQuorum(): number {
    const { held, copies, endIndex } = this;
    const { quorum } = this.member;
    // Mostly a quorum holds all entries: we do, and f others at which our log is installed. Our own place is not counted twice:
    // it stays absent.
    let missing = quorum - 1;
    for (const { heldIndex, phase } of copies) {
      if (heldIndex === endIndex && phase === 'installed') missing--;
    }
    if (missing <= 0) return endIndex;
    for (let other = 0; other < copies.length; other++) {
      const copy = copies[other];
      const own = other === this.member.index;
      held[other] = own ? endIndex : copy.phase === 'installed' ? copy.heldIndex : -1;
    }
    // f+1 members decide, without waiting for the rest (H16).
    return reachedBy(held, quorum);
  }

  /** Our own log says how far it is decided whenever something was delivered: a later incarnation relies on that. */
  keepDecided(): void {
    if (this.keptDecided === this.decided) return;
    this.keptDecided = this.decided;
    this.ring.decided = this.decided | 0;
    this.owesDecided = true;
  }

  /** Tell the members how far the log is decided; they deliver up to there (H15). Returns how many were told. */
  publishDecided(): number {
    const { decided, memory } = this;
    // Clients wait for the journals of a quorum, if they wait for journals. The leader waits when the log fills up.
    const isUrgent = this.isPressed || this.member.edges.journal?.isAwaited === true;
    let told = 0;
    this.owesDecided = false;
    for (const copy of this.copies) {
      if (copy.phase === 'absent' || copy.toldDecided === decided) continue;
      // A quick step may have left the member out. It delivers what is decided without a look at the checks.
      assert(copy.sentIndex >= decided, 'entries are posted before they are told to be decided');
      copy.toldDecided = decided;
      this.writeControl(copy, LOG_CONTROL.decided, decided | 0);
      memory.wake(copy.participant, isUrgent);
      told++;
    }
    return told;
  }

  /** Drop the entries before `index`, which lies at `position`. The base moves before anything is overwritten. */
  truncate(index: number, position: number): void {
    assert(index < this.decided, 'a log keeps its last decided entry');
    this.baseIndex = index;
    this.basePosition = position;
    this.ring.base = position;
    for (const copy of this.copies) {
      if (copy.phase !== 'absent') this.writeControl(copy, LOG_CONTROL.base, position);
    }
  }

  /** The incarnation of a member at which we write our log; 0 if we do not. */
  incarnationOf(other: number): number {
    const copy = this.copies[other];
    return copy.phase === 'absent' ? 0 : copy.incarnation;
  }
}

function newCopy(participant: ParticipantId): Copy {
  return {
    participant,
    phase: 'absent',
    installation: 0,
    incarnation: 0,
    guard: OPEN,
    ringAt: 0,
    controlAt: 0,
    sentIndex: 0,
    sentPosition: 0,
    heldIndex: 0,
    toldDecided: 0,
  };
}
