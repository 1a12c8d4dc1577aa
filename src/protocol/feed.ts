/**
 * Forwarding to one child group (paper steps 2.5 and 5.3): the k-th message that this group sends to
 * the child is a function of its log, whoever leads, and only decided entries go.
 *
 * The leader keeps in every child member's memory all messages from the child's decided count on. That
 * count, the maximum over the child's members, alone governs what may be overwritten: what a child
 * has merely seen can be lost with its leader (H26). `mirror` holds the same bytes as the window at
 * each child member, so writing one of them again is a copy of the mirror.
 */
import { OPEN } from '../memory/contract.js';
import { OLDEST, ORIGIN } from '../memory/layout.js';
import {
  copyWords,
  FRAME_WORDS,
  HEAD_WORDS,
  postRange,
  ringAt,
  sealHashed,
  type Window,
  word,
} from '../memory/window.js';
import { destinationsHigh, destinationsLow } from './counters.js';
import type { Member } from './member.js';
import type { Replication } from './replication.js';
import type { Rows } from './rows.js';
import { SlotWriter } from './slots.js';
import { failureTagOf, KIND } from './tags.js';

const UNKNOWN = -1;

export class Feed {
  readonly child: number;
  private readonly mirror: Window;
  private readonly capacity: number;
  private readonly oldestWriter = new SlotWriter(OLDEST.words);
  private oldestWrites = 0;
  private ballot = 0;

  /** The next log entry to look at, and the number that the next message to this child gets. */
  private logIndex = 0;
  private logPosition = 0;
  private nextNumber = 0;

  private oldestNumber = 0;
  private oldestPosition = 0;
  private oldestHasMoved = false;
  private endPosition: number;
  private sentPosition: number;
  /** Which life of each child member has everything from the oldest record on. */
  private readonly incarnations: Int32Array;

  /** The rows as of which everything was forwarded; a failed write asks for all of it again. */
  private seenNews = UNKNOWN;
  /** Is there something to forward for which there is no room? */
  isFull = false;
  /** What is decided in the child, as far as we know. Never goes back. */
  decidedByChild: number;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    /** The child's place among this group's children. */
    readonly place: number,
  ) {
    const { layout } = member;
    this.child = member.children[place]!;
    this.capacity = layout.feedWords;
    const mirror = member.edges.memory.scratch(this.capacity);
    this.mirror = ringAt(mirror, 0, this.capacity, layout.sizes.salt);
    this.endPosition = layout.sizes.origin | 0;
    this.sentPosition = this.endPosition;
    this.incarnations = new Int32Array(member.replicas);
    this.decidedByChild = layout.sizes.origin;
  }

  /** A leader begins: from the log's base, where the number to this child was `firstNumber`. */
  start(ballot: number, baseIndex: number, basePosition: number, firstNumber: number): void {
    this.ballot = ballot;
    this.logIndex = baseIndex;
    this.logPosition = basePosition;
    this.nextNumber = firstNumber;
    this.oldestNumber = firstNumber;
    this.oldestPosition = this.endPosition;
    this.sentPosition = this.endPosition;
    this.incarnations.fill(UNKNOWN);
    this.seenNews = UNKNOWN;
  }

  /** Forward decided entries as far as there is room. Returns how many went. */
  forward(replication: Replication): number {
    if (this.logIndex === replication.decided && this.seenNews === this.rows.news) return 0;
    this.seenNews = this.rows.news;
    this.learnDecided();
    this.isFull = false;
    const { overlay } = this.member.edges;
    const { ring } = replication;
    let count = 0;
    while (this.logIndex < replication.decided) {
      const position = this.logPosition;
      const words = replication.wordsAt(position);
      if (
        overlay.reaches(
          this.child,
          destinationsLow(ring, position),
          destinationsHigh(ring, position),
        )
      ) {
        if (this.nextNumber < this.decidedByChild) {
          // Decided long ago; whatever we hold is older still. Numbers in a feed have no gap.
          this.dropDecided();
        } else {
          const bodyWords = words - FRAME_WORDS - ORIGIN.words;
          if (!this.fits(bodyWords)) {
            this.dropDecided();
            if (!this.fits(bodyWords)) {
              this.member.edges.observer.transition('feed full');
              this.isFull = true;
              break;
            }
          }
          this.append(replication.ring, position, bodyWords);
          count++;
        }
        this.nextNumber++;
      }
      this.logIndex++;
      this.logPosition = (position + words) | 0;
    }
    this.send();
    return count;
  }

  private learnDecided(): void {
    for (let other = 0; other < this.member.replicas; other++) {
      const peer = this.rows.childPeer(this.place, other);
      this.decidedByChild = Math.max(this.decidedByChild, peer.fromParent);
    }
  }

  private fits(bodyWords: number): boolean {
    const used = (this.endPosition - this.oldestPosition) | 0;
    return used + bodyWords + FRAME_WORDS <= this.capacity;
  }

  /** Free what the child has decided. */
  private dropDecided(): void {
    while (this.oldestPosition !== this.endPosition && this.oldestNumber < this.decidedByChild) {
      this.oldestPosition = (this.oldestPosition + word(this.mirror, this.oldestPosition)) | 0;
      this.oldestNumber++;
      this.oldestHasMoved = true;
    }
  }

  private append(log: Window, position: number, bodyWords: number): void {
    if (this.oldestPosition === this.endPosition && this.oldestNumber !== this.nextNumber) {
      this.oldestNumber = this.nextNumber;
      this.oldestHasMoved = true;
    }
    const { mirror, endPosition, ballot, nextNumber } = this;
    const message = position + HEAD_WORDS;
    const hash = word(log, message + bodyWords + ORIGIN.hash);
    copyWords(log, message, mirror, endPosition + HEAD_WORDS, bodyWords);
    const words = sealHashed(mirror, endPosition, bodyWords, ballot, nextNumber, hash);
    this.endPosition = (endPosition + words) | 0;
  }

  /** Write what is new to every child member, and everything to one that came back with empty memory. */
  private send(): void {
    for (let other = 0; other < this.member.replicas; other++) {
      const { incarnation, seen } = this.rows.childPeer(this.place, other);
      if (!seen) continue;
      if (this.incarnations[other] === incarnation) {
        if (this.oldestHasMoved) this.writeOldest(other);
        this.writeRange(other, this.sentPosition);
      } else if (this.endPosition !== this.oldestPosition) {
        if (this.incarnations[other] !== UNKNOWN) {
          this.member.edges.observer.transition('feed written again');
        }
        this.incarnations[other] = incarnation;
        this.writeOldest(other);
        this.writeRange(other, this.oldestPosition);
      }
    }
    if (this.sentPosition !== this.endPosition) this.wakeChild();
    this.sentPosition = this.endPosition;
    this.oldestHasMoved = false;
  }

  /** Only a leader has anything to do with it: whoever led when we looked last, or by now another. */
  private wakeChild(): void {
    const { layout, memory } = this.member.edges;
    let leader = 0;
    for (let other = 1; other < this.member.replicas; other++) {
      const isLater =
        this.rows.childPeer(this.place, other).ledBallot >
        this.rows.childPeer(this.place, leader).ledBallot;
      if (isLater) leader = other;
    }
    for (let other = 0; other < this.member.replicas; other++) {
      memory.wake(layout.replicaProcess(this.child, other), other === leader);
    }
  }

  /** A write to this child member was lost: write all of it again. */
  onWriteFailed(other: number): void {
    this.incarnations[other] = UNKNOWN;
    this.seenNews = UNKNOWN;
  }

  private writeOldest(other: number): void {
    const { layout, memory } = this.member.edges;
    const { body } = this.oldestWriter;
    body[OLDEST.epoch] = this.ballot;
    body[OLDEST.number] = this.oldestNumber | 0;
    body[OLDEST.position] = this.oldestPosition;
    const to = layout.feedOldest(this.member.index);
    const peer = layout.replicaProcess(this.child, other);
    const number = ++this.oldestWrites;
    const tag = failureTagOf(KIND.feed, this.place);
    this.oldestWriter.post(memory, peer, to, OLDEST.words, this.member.incarnation, number, tag);
  }

  private writeRange(other: number, from: number): void {
    const { layout, memory } = this.member.edges;
    const peer = layout.replicaProcess(this.child, other);
    const to = layout.feedRing(this.member.index);
    const tag = failureTagOf(KIND.feed, this.place);
    postRange(memory, peer, to, this.mirror, from, this.endPosition, OPEN, tag, tag);
  }
}
