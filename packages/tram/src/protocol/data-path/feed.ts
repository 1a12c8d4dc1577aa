/**
 * Forwarding to one child group (paper steps 2.5 and 5.3): the decided entries of the log whose destinations lie in or
 * below the child, in log order. forwarding.ts walks the log for all feeds, and offers each entry to those that it goes to
 * (`take`); `flush` and `tell` follow when it is at the end. A feed that is full stops, and goes on by itself (`onNews`).
 *
 * A record of the feed is the entry itself, byte for byte, so it is copied straight from the log, together with those
 * that lie side by side with it. The leader keeps in every child member's memory all entries from the child's decided
 * index on. That index, the maximum over the child's members, alone governs what may be overwritten: what a child has
 * merely seen can be lost with its leader (H26). The log keeps these entries too, so a child member that has lost its
 * memory is given them again from there.
 *
 * Invariants: every entry between the feed's start and its end, as a child member knows them, was posted to it before
 * the end was. A new start is posted before anything ahead of it is overwritten.
 * baseIndex ≤ oldestIndex ≤ logIndex ≤ decided.
 * oldestPosition ≤ sentPosition ≤ endPosition ≤ oldestPosition + capacity.
 */
import { type Memory, OPEN, type ParticipantId } from '../../memory/contract.js';
import {
  commonRun,
  FRAME_WORDS,
  HEAD_WORDS,
  type Places,
  placeOf,
  seal,
  slotAt,
  type Window,
} from '../../memory/record.js';
import { assert } from '../assert.js';
import { FEED_GATES, FEED_START, GATES_AFTER_END, SETTLED } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import type { Rows } from '../leadership/rows.js';
import { SlotReader, SlotWriter } from '../leadership/slots.js';
import type { Member } from '../member.js';
import type { Overlay } from '../overlay.js';
import { failureTagOf, KIND } from '../tags.js';
import { writeWide } from '../wide.js';
import { destinationsHigh, destinationsLow } from './counters.js';
import type { Replication } from './replication.js';

/** No incarnation, and no index. */
const UNKNOWN = -1;

const END_AND_GATES_WORDS = GATES_AFTER_END + FRAME_WORDS + FEED_GATES.words;

/** An entry of the log, and where it lies. */
export interface Cursor {
  readonly index: number;
  readonly position: number;
}

export class Feed {
  private readonly child: number;
  private readonly memory: Memory;
  private readonly overlay: Overlay;
  private readonly firstMember: ParticipantId;
  /** Where our feed lies at a child member: its start, its end, and the ring. */
  private readonly startAt: number;
  private readonly endAt: number;
  private readonly ring: Places;
  private readonly capacity: number;
  private readonly tag: number;
  private readonly startWriter = new SlotWriter(FEED_START.words);
  private startWrites = 0;
  private ballot = 0;

  /** While the feed is full: the next log entry to look at. All before it are in the feed, or do not go there. */
  private stoppedIndex = 0;
  private stoppedPosition = 0;
  /** The first entry that is kept: its index, and where it lies in the log and in the feed. */
  private oldestIndex = 0;
  private oldestLogPosition = 0;
  private oldestPosition = 0;
  /** Has the start moved since it was posted last? */
  private oldestHasMoved = false;
  private endPosition: number;
  /** Entries before it are posted. Those after it are one piece of the log, from `unsentLogPosition` on. */
  private sentPosition: number;
  private unsentLogPosition = 0;
  /** The incarnation of each child member that has been posted everything from the oldest entry on, or UNKNOWN. */
  private readonly incarnations: Int32Array;

  /** Has the end moved since it was told last? */
  private endHasMoved = false;
  /** May a child member have come back, or have been seen for the first time? */
  private mayHaveReturned = false;

  /** The last entry of the log that goes to the child, among those before `logIndex`. */
  private lastIndex = UNKNOWN;
  /** Before it, the child has settled every entry that goes there: index and position. */
  private settledIndex = 0;
  private settledPosition = 0;
  /** The child has settled every entry that goes there below this index of our log, as far as we know. Never goes back. */
  private settledByChild: number;
  private readonly settledSlots: SlotReader[] = [];
  private readonly isStrict: boolean;
  private readonly hasJournal: boolean;
  /** Our group's gate and recoverable index, as they were passed to `tell` last. */
  private gate = 0;
  private recoverable = 0;
  /** Those that all current child members have been told, or UNKNOWN. toldGate ≤ gate. */
  private toldGate = UNKNOWN;
  private toldRecoverable = UNKNOWN;
  private readonly endAndGates = new Int32Array(END_AND_GATES_WORDS);
  private readonly gatesRecord: Window = slotAt(this.endAndGates, GATES_AFTER_END);
  private gateWrites = 0;

  /** The child's leader as its rows tell: nobody else reads the feed. */
  private leader = 0;
  /** Is it in the list of those that have something to flush or to tell? forwarding.ts says so. */
  isTouched = false;
  /** Does an entry wait for room? */
  isFull = false;
  /** The child has decided every entry that goes there below this index of our log, as far as we know. Never goes back. */
  decidedByChild: number;
  /** The same for what is durable in the child. */
  durableByChild: number;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly replication: Replication,
    /** The child's place among this group's children. */
    private readonly place: number,
    /** The next log entry that is offered to feeds. */
    private readonly cursor: Cursor,
  ) {
    const { layout } = member;
    const { firstIndex } = layout.sizes;
    this.memory = member.edges.memory;
    this.overlay = member.edges.overlay;
    this.isStrict = member.edges.order === 'strict';
    this.hasJournal = member.edges.journal !== undefined;
    this.child = member.children[place];
    this.firstMember = layout.replicaParticipant(this.child, 0);
    this.startAt = layout.feedStart(member.index);
    this.endAt = layout.feedEnd(member.index);
    this.capacity = layout.feedWords;
    this.ring = { at: layout.feedRing(member.index), mask: this.capacity - 1 };
    this.tag = failureTagOf(KIND.feed, place);
    this.endPosition = firstIndex | 0;
    this.sentPosition = this.endPosition;
    this.incarnations = new Int32Array(member.replicas);
    this.decidedByChild = firstIndex;
    this.settledByChild = firstIndex;
    this.durableByChild = firstIndex;
    for (let other = 0; other < member.replicas; other++) {
      const at = layout.settled(this.child, other);
      this.settledSlots.push(new SlotReader(this.memory.own, at, SETTLED.words));
    }
  }

  /** How much of the ring has entries that are kept for the child. They are dropped late, when there is no room. */
  get usedWords(): number {
    return (this.endPosition - this.oldestPosition) | 0;
  }

  /** Begin under a new ballot, with this entry of the log. */
  start(ballot: number, { index, position }: Cursor): void {
    this.ballot = ballot;
    this.isFull = false;
    this.oldestIndex = index;
    this.oldestLogPosition = position;
    this.oldestPosition = this.endPosition;
    this.sentPosition = this.endPosition;
    this.incarnations.fill(UNKNOWN);
    this.endHasMoved = false;
    this.lastIndex = index - 1;
    this.settledIndex = index;
    this.settledPosition = position;
    // Only settled entries have been dropped.
    this.settledByChild = Math.max(this.settledByChild, index);
    this.toldGate = UNKNOWN;
    this.toldRecoverable = UNKNOWN;
  }

  /** The next log entry to look at: all before it are in the feed, or do not go there. */
  private get logIndex(): number {
    return this.isFull ? this.stoppedIndex : this.cursor.index;
  }

  private get logPosition(): number {
    return this.isFull ? this.stoppedPosition : this.cursor.position;
  }

  /** Take the entry at the cursor, which goes to the child. If there is no room for it, stop there. */
  take(words: number): void {
    const { index, position } = this.cursor;
    // It has stopped before, or the entry has several destinations below the child.
    if (this.isFull || this.lastIndex === index || this.add(index, position, words)) return;
    this.isFull = true;
    this.stoppedIndex = index;
    this.stoppedPosition = position;
  }

  /** False if there is no room. */
  private add(index: number, position: number, words: number): boolean {
    if (index < this.decidedByChild) {
      this.skip(words);
    } else {
      if (!this.makeRoom(words)) return false;
      const unsent = (this.endPosition - this.sentPosition) | 0;
      if (position !== ((this.unsentLogPosition + unsent) | 0)) this.flush();
      if (this.sentPosition === this.endPosition) this.unsentLogPosition = position;
      this.endPosition = (this.endPosition + words) | 0;
      this.endHasMoved = true;
    }
    this.lastIndex = index;
    return true;
  }

  /** Rows were read. A child member may have come back, have another leader, or have made room. */
  onNews(): void {
    this.mayHaveReturned = true;
    this.learnDecided();
    if (this.isFull) this.goOn();
  }

  /** Take the entries for which there was no room, up to the cursor. */
  private goOn(): void {
    const { replication, cursor } = this;
    while (this.stoppedIndex < cursor.index) {
      const position = this.stoppedPosition;
      const words = replication.wordsAt(position);
      if (this.reaches(position) && !this.add(this.stoppedIndex, position, words)) return;
      this.stoppedIndex++;
      this.stoppedPosition = (position + words) | 0;
    }
    this.isFull = false;
  }

  /** Below the index that this returns, the child has settled every entry of the log that goes there. */
  settle(): number {
    if (this.settledByChild <= this.lastIndex) this.takeSettled();
    if (this.settledByChild > this.lastIndex) {
      this.settledIndex = this.logIndex;
      this.settledPosition = this.logPosition;
    }
    while (
      this.settledIndex < this.logIndex &&
      (this.settledIndex < this.settledByChild || !this.reaches(this.settledPosition))
    ) {
      const words = this.replication.wordsAt(this.settledPosition);
      this.settledPosition = (this.settledPosition + words) | 0;
      this.settledIndex++;
    }
    return this.settledIndex;
  }

  private takeSettled(): void {
    const { settledSlots, rows, place } = this;
    for (let other = 0; other < settledSlots.length; other++) {
      const slot = settledSlots[other];
      // With a journal, a member that still ran in an earlier era may have written it, before this one began.
      if (!slot.poll() || slot.epoch !== rows.childPeer(place, other).incarnation) continue;
      this.settledByChild = Math.max(this.settledByChild, slot.wide(SETTLED.index));
    }
  }

  /** Tell the child members where the feed ends and, as long as an entry that goes there waits for them, our gates. */
  tell(gate: number, recoverable: number): void {
    this.gate = gate;
    this.recoverable = recoverable;
    const isNews = this.isStrict && gate > this.toldGate && this.toldGate <= this.lastIndex;
    const tellsCurrent = this.endHasMoved || isNews || this.isRecoverableNews();
    if (tellsCurrent) this.tellCurrent();
    const hasReturned = this.mayHaveReturned && this.writeToReturned();
    if (tellsCurrent || hasReturned) this.wakeChild();
  }

  private isRecoverableNews(): boolean {
    if (!this.hasJournal || this.recoverable <= this.toldRecoverable) return false;
    if (this.toldRecoverable > this.lastIndex) return false;
    this.member.edges.observer.transition('recoverable index told');
    return true;
  }

  private tellCurrent(): void {
    this.endHasMoved = false;
    this.toldGate = this.gate;
    this.toldRecoverable = this.recoverable;
    for (let turn = 0; turn < this.member.replicas; turn++) {
      const other = (this.leader + turn) % this.member.replicas;
      if (this.isCurrent(other)) this.tellEnd(other, this.endPosition);
    }
  }

  /** Do destinations of the entry at `position` of the log lie in or below the child? */
  private reaches(position: number): boolean {
    const { ring } = this.replication;
    const low = destinationsLow(ring, position);
    return this.overlay.reaches(this.child, low, destinationsHigh(ring, position));
  }

  private learnDecided(): void {
    let highest = NO_BALLOT;
    for (let other = 0; other < this.member.replicas; other++) {
      const peer = this.rows.childPeer(this.place, other);
      if (peer.ledBallot > highest) this.leader = other;
      highest = Math.max(highest, peer.ledBallot);
      this.decidedByChild = Math.max(this.decidedByChild, peer.fromParent);
      this.settledByChild = Math.max(this.settledByChild, peer.settledFromParent);
      this.durableByChild = Math.max(this.durableByChild, peer.durableFromParent);
    }
  }

  /** The child has decided the entry at hand, and so everything before it. */
  private skip(words: number): void {
    const { logIndex, logPosition } = this;
    this.flush();
    this.dropBelow(logIndex);
    assert(this.oldestPosition === this.endPosition, 'a feed has no gap');
    this.oldestIndex = logIndex + 1;
    this.oldestLogPosition = (logPosition + words) | 0;
    this.oldestHasMoved = true;
  }

  private makeRoom(words: number): boolean {
    if (this.fits(words)) return true;
    this.flush();
    this.dropBelow(this.decidedByChild);
    if (this.fits(words)) return true;
    this.member.edges.observer.transition('feed full');
    this.isFull = true;
    return false;
  }

  private fits(words: number): boolean {
    return this.usedWords + words <= this.capacity;
  }

  /** An entry below `dropTo` is being dropped from the log. It goes to the child, and the child has decided it. */
  drop(index: number, words: number): void {
    if (index < this.oldestIndex) return;
    this.oldestIndex = index + 1;
    this.oldestPosition = (this.oldestPosition + words) | 0;
    this.oldestHasMoved = true;
  }

  /** All entries below this one are dropped from the log. */
  dropTo(index: number, position: number): void {
    assert(index <= this.logIndex, 'the log keeps what a feed has no room for');
    if (index < this.oldestIndex) return;
    this.oldestHasMoved ||= index > this.oldestIndex;
    this.oldestIndex = index;
    this.oldestLogPosition = position;
  }

  /** Keep no entry below this index: the child has decided those that go there. */
  private dropBelow(index: number): void {
    const limit = Math.min(index, this.logIndex);
    while (this.oldestIndex < limit) {
      const position = this.oldestLogPosition;
      const words = this.replication.wordsAt(position);
      if (this.reaches(position)) this.oldestPosition = (this.oldestPosition + words) | 0;
      this.oldestLogPosition = (position + words) | 0;
      this.oldestIndex++;
      this.oldestHasMoved = true;
    }
  }

  /** Write what is new, one piece of the log, to every child member that has everything before it, its leader first. */
  flush(): void {
    const words = (this.endPosition - this.sentPosition) | 0;
    if (words === 0) return;
    for (let turn = 0; turn < this.member.replicas; turn++) {
      const other = (this.leader + turn) % this.member.replicas;
      if (!this.isCurrent(other)) continue;
      if (this.oldestHasMoved) this.writeStart(other);
      this.write(other, this.unsentLogPosition, this.sentPosition, words);
    }
    this.oldestHasMoved = false;
    this.sentPosition = this.endPosition;
  }

  private isCurrent(other: number): boolean {
    const { incarnation, seen } = this.rows.childPeer(this.place, other);
    return seen && this.incarnations[other] === incarnation;
  }

  /** Write everything to child members that have come back, or have had nothing yet. True if there are any. */
  private writeToReturned(): boolean {
    // Even if the feed is empty, the child may wait for our gates.
    if (this.endPosition === this.oldestPosition && !this.tellsGates) return false;
    this.mayHaveReturned = false;
    let hasReturned = false;
    for (let other = 0; other < this.member.replicas; other++) {
      const { incarnation, seen } = this.rows.childPeer(this.place, other);
      if (!seen || this.incarnations[other] === incarnation) continue;
      hasReturned = true;
      if (this.incarnations[other] !== UNKNOWN) {
        this.member.edges.observer.transition('feed written again');
      }
      this.incarnations[other] = incarnation;
      // What it was told before must not count any more when the first word changes.
      this.writeStart(other, NO_BALLOT);
      this.tellEnd(other, this.oldestPosition);
      this.writeStart(other);
      this.writeAll(other);
      this.tellEnd(other, this.endPosition);
    }
    return hasReturned;
  }

  private writeAll(other: number): void {
    const { replication } = this;
    let position = this.oldestPosition;
    let logPosition = this.oldestLogPosition;
    for (let index = this.oldestIndex; index < this.logIndex; index++) {
      const words = replication.wordsAt(logPosition);
      if (this.reaches(logPosition)) {
        this.write(other, logPosition, position, words);
        position = (position + words) | 0;
      }
      logPosition = (logPosition + words) | 0;
    }
  }

  /** Wake the child's leader as we know it. If it has ended, wake all members. */
  private wakeChild(): void {
    const { leader } = this;
    const isGone = this.memory.hasEnded(this.firstMember + leader);
    for (let other = 0; other < this.member.replicas; other++) {
      this.memory.wake(this.firstMember + other, isGone || other === leader);
    }
  }

  /**
   * A write to this child member was lost: write everything again once its row has been read anew. Completions come in
   * order, so by then every lost write has been reported.
   */
  onWriteFailed(participant: ParticipantId): void {
    const other = participant - this.firstMember;
    this.incarnations[other] = UNKNOWN;
    this.rows.childPeer(this.place, other).seen = false;
  }

  private writeStart(other: number, epoch: number = this.ballot): void {
    const { body } = this.startWriter;
    body[FEED_START.epoch] = epoch;
    body[FEED_START.incarnation] = this.incarnations[other];
    writeWide(body, FEED_START.index, this.oldestIndex);
    body[FEED_START.position] = this.oldestPosition;
    const { memory, startAt, tag, member } = this;
    const peer = this.firstMember + other;
    const number = ++this.startWrites;
    this.startWriter.post(memory, peer, startAt, FEED_START.words, member.incarnation, number, tag);
  }

  private get tellsGates(): boolean {
    return this.isStrict || this.hasJournal;
  }

  /** Tell a child member that the feed ends here, and our gates. */
  private tellEnd(other: number, position: number): void {
    const { memory, endAt, tag, endAndGates } = this;
    const peer = this.firstMember + other;
    if (!this.tellsGates) {
      memory.writeWord(peer, endAt, position, OPEN, tag);
      return;
    }
    const body = GATES_AFTER_END + HEAD_WORDS;
    endAndGates[0] = position;
    // Without strict order the gate is infinite, and no child looks at it.
    writeWide(endAndGates, body + FEED_GATES.strict, this.isStrict ? this.gate : 0);
    writeWide(endAndGates, body + FEED_GATES.recoverable, this.recoverable);
    const number = ++this.gateWrites;
    seal(this.gatesRecord, 0, FEED_GATES.words, this.member.incarnation, number);
    memory.write(peer, endAt, endAndGates, 0, END_AND_GATES_WORDS, OPEN, tag);
  }

  /** Copy from the log to the feed at a child member; either may wrap. */
  private write(other: number, logPosition: number, position: number, count: number): void {
    const { memory, ring, tag } = this;
    const log = this.replication.ring;
    const peer = this.firstMember + other;
    for (let done = 0; done < count; ) {
      const from = placeOf(log, logPosition + done);
      const to = placeOf(ring, position + done);
      const run = commonRun(log, logPosition + done, ring, position + done, count - done);
      memory.write(peer, to, log.words, from, run, OPEN, tag);
      done += run;
    }
  }
}
