/**
 * Forwarding to one child group (paper steps 2.5 and 5.3): the decided entries of the log whose destinations lie in or
 * below the child, in log order. forwarding.ts walks the log for all feeds, and offers each entry to those that it goes to
 * (`take`); `flush` and `tell` follow when it is at the end. A feed that is full stops, and goes on by itself (`onNews`).
 * feed-writer.ts says how the parts of a feed get to a child member.
 *
 * A record of the feed is the entry itself, byte for byte, so it is copied straight from the log, together with those
 * that lie side by side with it. The leader keeps in every child member's memory all entries from the child's decided
 * index on. That index, the maximum over the child's members, alone governs what may be overwritten: what a child has
 * merely seen can be lost with its leader (H26). The log keeps these entries too, so a child member that has lost its
 * memory is given them again from there.
 *
 * Only the child's leader reads the feed, and waits for it. So a quick step posts new entries, and then the end, to that member
 * alone, and *owes* them to the others. They get them in the next full step, or earlier: before rows may show another leader of
 * the child, before the start moves, and before the log drops entries. Under a new ballot nothing is owed: its feed starts with
 * all that the child has not decided, and goes to all members.
 *
 * Invariants: every entry between the feed's start and its end, as a child member knows them, was posted to it before
 * the end was. A new start is posted before anything ahead of it is overwritten.
 * baseIndex ≤ oldestIndex ≤ logIndex ≤ decided. oldestPosition ≤ owedPosition ≤ sentPosition ≤ endPosition ≤ oldestPosition + capacity.
 */
import type { ParticipantId } from '../../memory/contract.js';
import { assert } from '../assert.js';
import { SETTLED } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import type { Peer } from '../leadership/row.js';
import type { Rows } from '../leadership/rows.js';
import { SlotReader } from '../leadership/slots.js';
import type { Member } from '../member.js';
import type { Overlay } from '../overlay.js';
import { destinationsHigh, destinationsLow } from './counters.js';
import { FeedWriter } from './feed-writer.js';
import type { Replication } from './replication.js';

/** No incarnation, and no index. */
const UNKNOWN = -1;
/** At most so many pieces of the log are owed. */
const PIECES_MAX = 32;

/** An entry of the log, and where it lies. */
export interface Cursor {
  readonly index: number;
  readonly position: number;
}

export class Feed {
  private readonly child: number;
  private readonly overlay: Overlay;
  private readonly firstMember: ParticipantId;
  /** The child's members. */
  private readonly peers: readonly Peer[];
  private readonly writer: FeedWriter;
  private readonly capacity: number;
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
  /** Entries before it are posted to the child's leader, if that is current. */
  private sentPosition: number;
  /** Entries before it are posted to all current child members. */
  private owedPosition: number;
  /** The entries behind `owedPosition`, as pieces of the log: where each of them ends there, and its words. */
  private readonly pieceEnds = new Int32Array(PIECES_MAX);
  private readonly pieceWords = new Int32Array(PIECES_MAX);
  private pieces = 0;
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
  /** Those that the child has been told, or UNKNOWN. toldGate ≤ gate. */
  private toldGate = UNKNOWN;
  private toldRecoverable = UNKNOWN;

  /** The child's leader as its rows tell: nobody else reads the feed. */
  private leader = 0;
  /** Is it in the list of those that have something to flush or to tell? forwarding.ts says so. */
  isTouched = false;
  /** Does an entry wait for room? */
  isFull = false;
  /** Does the child's leader alone know where the feed ends, or our gates? So it is whenever entries are owed. */
  owesEnd = false;
  /** The child has decided every entry that goes there below this index of our log, as far as we know. Never goes back. */
  decidedByChild: number;
  /** The same for what is durable in the child. */
  durableByChild: number;

  constructor(
    private readonly member: Member,
    rows: Rows,
    private readonly replication: Replication,
    /** The child's place among this group's children. */
    place: number,
    /** The next log entry that is offered to feeds. */
    private readonly cursor: Cursor,
  ) {
    const { layout } = member;
    const { firstIndex } = layout.sizes;
    this.overlay = member.edges.overlay;
    this.isStrict = member.edges.order === 'strict';
    this.hasJournal = member.edges.journal !== undefined;
    this.child = member.children[place];
    this.firstMember = layout.replicaParticipant(this.child, 0);
    this.peers = Array.from({ length: member.replicas }, (_, other) =>
      rows.childPeer(place, other),
    );
    this.writer = new FeedWriter(member, place);
    this.capacity = layout.feedWords;
    this.endPosition = firstIndex | 0;
    this.sentPosition = this.endPosition;
    this.owedPosition = this.endPosition;
    this.incarnations = new Int32Array(member.replicas);
    this.decidedByChild = firstIndex;
    this.settledByChild = firstIndex;
    this.durableByChild = firstIndex;
    for (let other = 0; other < member.replicas; other++) {
      const at = layout.settled(this.child, other);
      this.settledSlots.push(new SlotReader(member.edges.memory.own, at, SETTLED.words));
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
    this.owesNothing();
    this.owesEnd = false;
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
      this.addPiece(position, words);
      this.endPosition = (this.endPosition + words) | 0;
      this.endHasMoved = true;
    }
    this.lastIndex = index;
    return true;
  }

  /** These words of the log come next. If they lie side by side with the last ones, they are one piece. */
  private addPiece(position: number, words: number): void {
    const { pieceEnds, pieceWords } = this;
    if (this.pieces === 0 || pieceEnds[this.pieces - 1] !== position) {
      if (this.pieces === PIECES_MAX) this.post();
      pieceWords[this.pieces++] = 0;
    }
    const last = this.pieces - 1;
    pieceEnds[last] = position + words;
    pieceWords[last] += words;
  }

  /** Rows were read. A child member may have come back, have another leader, or have made room. */
  onNews(): void {
    // What is owed goes to the others while we still know which member has it.
    this.post();
    this.mayHaveReturned = true;
    const { leader } = this;
    this.learnDecided();
    // A new leader of the child waits for the end.
    if (this.leader !== leader) this.endHasMoved ||= this.owesEnd;
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
    const { settledSlots, peers } = this;
    for (let other = 0; other < settledSlots.length; other++) {
      const slot = settledSlots[other];
      // With a journal, a member that still ran in an earlier era may have written it, before this one began.
      if (!slot.poll() || slot.epoch !== peers[other].incarnation) continue;
      this.settledByChild = Math.max(this.settledByChild, slot.wide(SETTLED.index));
    }
  }

  /**
   * Tell the child members where the feed ends and, as long as an entry that goes there waits for them, our gates.
   * @param isQuick  is the child's leader enough, for now?
   */
  tell(gate: number, recoverable: number, isQuick: boolean): void {
    this.gate = gate;
    this.recoverable = recoverable;
    const isNews = this.isStrict && gate > this.toldGate && this.toldGate <= this.lastIndex;
    const isTold = this.endHasMoved || isNews || this.isRecoverableNews();
    const tellsCurrent = isTold || (this.owesEnd && !isQuick);
    if (tellsCurrent) this.tellCurrent(isQuick);
    const hasReturned = this.mayHaveReturned && this.writeToReturned();
    if (isTold || hasReturned) this.writer.wakeLeader(this.leader);
    if ((tellsCurrent || hasReturned) && !this.owesEnd) this.writer.wakeOthers(this.leader);
  }

  private isRecoverableNews(): boolean {
    if (!this.hasJournal || this.recoverable <= this.toldRecoverable) return false;
    if (this.toldRecoverable > this.lastIndex) return false;
    this.member.edges.observer.transition('recoverable index told');
    return true;
  }

  private tellCurrent(isQuick: boolean): void {
    const { leader, member } = this;
    this.endHasMoved = false;
    this.toldGate = this.gate;
    this.toldRecoverable = this.recoverable;
    // Whoever is told the end has been posted the entries before it.
    this.owesEnd = this.pieces > 0 || (isQuick && this.leaderIsEnough());
    if (this.owesEnd) {
      this.tellEnd(leader, this.endPosition);
      return;
    }
    for (let turn = 0; turn < member.replicas; turn++) {
      const other = (leader + turn) % member.replicas;
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
      const peer = this.peers[other];
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
    this.post();
    this.dropBelow(logIndex);
    assert(this.oldestPosition === this.endPosition, 'a feed has no gap');
    this.oldestIndex = logIndex + 1;
    this.oldestLogPosition = (logPosition + words) | 0;
    this.oldestHasMoved = true;
  }

  private makeRoom(words: number): boolean {
    if (this.fits(words)) return true;
    this.post();
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
    assert(this.pieces === 0, 'the log keeps what a feed owes');
    if (index < this.oldestIndex) return;
    this.oldestHasMoved ||= index > this.oldestIndex;
    this.oldestIndex = index;
    this.oldestLogPosition = position;
  }

  /** Keep no entry below this index: the child has decided those that go there. */
  private dropBelow(index: number): void {
    assert(this.pieces === 0, 'a feed posts what it owes before its start moves');
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

  /**
   * Post what is new.
   * @param isQuick  is the child's leader enough, for now?
   */
  flush(isQuick: boolean): void {
    if (isQuick && this.leaderIsEnough()) {
      this.writePieces(this.leader, this.sentPosition);
      this.sentPosition = this.endPosition;
    } else {
      this.post();
    }
  }

  /**
   * May the others get later what the child's leader gets now? A new start goes to all, before what lies ahead of it. If that
   * leader has ended, another one leads or soon will, and until its row was read we do not know which.
   */
  private leaderIsEnough(): boolean {
    const { leader, firstMember, member } = this;
    if (this.oldestHasMoved || !this.isCurrent(leader)) return false;
    return !member.edges.memory.hasEnded(firstMember + leader);
  }

  /** Post what is new or owed to every child member that has everything before it, its leader first. */
  private post(): void {
    if (this.pieces === 0) return;
    const { leader, member } = this;
    if (this.sentPosition !== this.owedPosition)
      member.edges.observer.transition('owed entries posted');
    for (let turn = 0; turn < member.replicas; turn++) {
      const other = (leader + turn) % member.replicas;
      if (!this.isCurrent(other)) continue;
      if (this.oldestHasMoved) this.writeStart(other);
      this.writePieces(other, other === leader ? this.sentPosition : this.owedPosition);
    }
    this.oldestHasMoved = false;
    this.owesNothing();
  }

  private owesNothing(): void {
    this.pieces = 0;
    this.sentPosition = this.endPosition;
    this.owedPosition = this.endPosition;
  }

  /** Write everything behind `start` to a child member, the last piece first: none of it counts before the end is told. */
  private writePieces(other: number, start: number): void {
    const { writer, replication, pieceEnds, pieceWords } = this;
    let position = this.endPosition;
    for (let piece = this.pieces - 1; piece >= 0 && position !== start; piece--) {
      const words = Math.min(pieceWords[piece], (position - start) | 0);
      position = (position - words) | 0;
      writer.write(other, replication.ring, (pieceEnds[piece] - words) | 0, position, words);
    }
    assert(position === start, 'the pieces of a feed are all that is not posted');
  }

  private isCurrent(other: number): boolean {
    const { incarnation, seen } = this.peers[other];
    return seen && this.incarnations[other] === incarnation;
  }

  /** Write everything to child members that have come back, or have had nothing yet. True if there are any. */
  private writeToReturned(): boolean {
    // Even if the feed is empty, the child may wait for our gates.
    if (this.endPosition === this.oldestPosition && !this.writer.tellsGates) return false;
    this.mayHaveReturned = false;
    let hasReturned = false;
    for (let other = 0; other < this.member.replicas; other++) {
      const { incarnation, seen } = this.peers[other];
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
    const { replication, writer } = this;
    let position = this.oldestPosition;
    let logPosition = this.oldestLogPosition;
    for (let index = this.oldestIndex; index < this.logIndex; index++) {
      const words = replication.wordsAt(logPosition);
      if (this.reaches(logPosition)) {
        writer.write(other, replication.ring, logPosition, position, words);
        position = (position + words) | 0;
      }
      logPosition = (logPosition + words) | 0;
    }
  }

  /**
   * A write to this child member was lost: write everything again once its row has been read anew. Completions come in
   * order, so by then every lost write has been reported.
   */
  onWriteFailed(participant: ParticipantId): void {
    const other = participant - this.firstMember;
    this.incarnations[other] = UNKNOWN;
    this.peers[other].seen = false;
  }

  private writeStart(other: number, epoch: number = this.ballot): void {
    const { writer, oldestIndex, oldestPosition } = this;
    writer.start(other, this.incarnations[other], epoch, oldestIndex, oldestPosition);
  }

  private tellEnd(other: number, position: number): void {
    assert(this.isCurrent(other), 'the end of a feed is told to members that have its entries');
    this.writer.end(other, position, this.gate, this.recoverable);
  }
}
