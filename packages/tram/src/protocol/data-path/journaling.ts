/**
 * What each member does with the journal of its host: it hands over the entries that it has delivered, and tells the member
 * that it follows how far the journal is durable. delivery.ts calls `admits` and `add` for each stretch of entries; the
 * replica calls `tell` in every step.
 *
 * Decided entries are final, so the journal gets them without ballots, and it does not matter which member of the group on
 * this host hands them over first.
 *
 * A slow disk holds up its group only while the quorum needs it. If the journal has no room, the member stops delivering as
 * long as fewer than f+1 other members have journals that are durable further on. Otherwise it leaves entries out, and the
 * journal goes on from a snapshot, which is taken right after a mark (leadership/journal-snapshots.ts).
 *
 * Invariant: the journal gets entries without gaps, except where a snapshot fills the gap.
 */
import type { GroupJournal } from '../edges.js';
import { DURABLE } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import type { JournalSnapshots } from '../leadership/journal-snapshots.js';
import type { Rows } from '../leadership/rows.js';
import { SlotWriter } from '../leadership/slots.js';
import type { Member } from '../member.js';
import { writeWide } from '../wide.js';

/** At every so many marks, a journal takes its snapshot even if others are durable further. */
const MARKS_PER_TRIAL = 4;

export class Journaling {
  /** So many words had no room when the member tried last; 0 if there was room. */
  private refusedWords = 0;
  /** What was told last, and under which promise. */
  private toldDurable = 0;
  private toldBallot = NO_BALLOT;
  private readonly slotWriter = new SlotWriter(DURABLE.words);
  private slotWrites = 0;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly journal: GroupJournal,
    private readonly snapshots: JournalSnapshots,
  ) {}

  /**
   * The end of the next stretch, if the member may deliver up to `decided`. It delivers apart what the journal has already: for
   * that there need be no room.
   */
  stretchEnd(decided: number): number {
    const { next } = this.journal;
    return next > this.member.nextToDeliver ? Math.min(decided, next) : decided;
  }

  /** May this member deliver so many words of entries now, up to the end of the next stretch? */
  admits(words: number): boolean {
    const { journal, member } = this;
    this.refusedWords = 0;
    // It has them already, or it can't continue with them.
    const ignoresThem = journal.next !== member.nextToDeliver;
    if (ignoresThem || journal.hasRoom(words)) return true;
    const { observer } = member.edges;
    if (this.isNeeded()) {
      observer.transition('journal full');
      this.refusedWords = words;
      return false;
    }
    journal.leaveOut();
    observer.transition('journal left out');
    return true;
  }

  /** Did the member have to stop delivering when it tried last? */
  get isFull(): boolean {
    return this.refusedWords > 0;
  }

  /** Would it have to stop again, if it tried now? */
  isStillFull(): boolean {
    return this.isFull && !this.admits(this.refusedWords);
  }

  /** Does the quorum need the entries that this journal has no room for? */
  private isNeeded(): boolean {
    const { member, rows, journal } = this;
    let further = 0;
    for (let other = 0; other < member.replicas; other++) {
      if (other !== member.index && rows.peer(other).durable > journal.next) further++;
    }
    return further < member.quorum;
  }

  /**
   * Hand over the stretch that was admitted and delivered: entries from this index on, which lie side by side. If the journal
   * lacks earlier ones, another member of the group on this host hands them over, or a snapshot fills the gap.
   */
  add(index: number, entries: Int32Array, words: number): void {
    const { next } = this.journal;
    if (index <= next && next < this.member.nextToDeliver)
      this.journal.add(index, entries, 0, words);
  }

  /** The last entry that was handed over, or left out, is a mark. */
  onMark(): void {
    const { member, journal } = this;
    journal.mark(member.nextToDeliver, member.marks);
    this.snapshots.onMark(this.isMarkNeeded());
  }

  /**
   * Do marks not get complete without this journal? So it seems if fewer than f+1 other members hold the mark before. Of those
   * that do not, the ones that are durable further are needed first; but now and then all are tried.
   */
  private isMarkNeeded(): boolean {
    const { member, rows, journal } = this;
    let holders = 0;
    let further = 0;
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      const { heldMark, durable } = rows.peer(other);
      if (heldMark >= member.marks - 1) holders++;
      if (durable > journal.durable && rows.suspicion.isLive(other)) further++;
    }
    if (holders >= member.quorum) return false;
    return further < member.quorum || member.marks % MARKS_PER_TRIAL === 0;
  }

  /** If the journal is durable further on, or we follow another member: tell it. Returns 1 if there was news, else 0. */
  tell(): number {
    const { member, slotWriter } = this;
    const { durable } = this.journal;
    // Again and again: when it was delivered, the journal may have had no room for it.
    this.journal.stable(member.stable);
    this.journal.complete(member.completeMark);
    const { promised, promisedMember } = member;
    if (durable === this.toldDurable && promised === this.toldBallot) return 0;
    this.toldDurable = durable;
    this.toldBallot = promised;
    if (promised === NO_BALLOT || promisedMember === member.index) return 1;
    const { memory, layout, observer } = member.edges;
    const peer = member.participantOf(promisedMember);
    const to = layout.durable(member.index);
    writeWide(slotWriter.body, DURABLE.index, durable);
    slotWriter.post(memory, peer, to, DURABLE.words, member.incarnation, ++this.slotWrites);
    memory.wake(peer, true);
    observer.transition('durable index told');
    return 1;
  }
}
