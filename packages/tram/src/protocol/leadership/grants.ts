/**
 * Asking for the log and granting it (paper §5.4, Algorithm 3 and step 2.7): the two ends of the slots `leadRequest` and
 * `leadGrant`. Takeover asks; the replica answers when it is notified, and recovery grants by itself.
 *
 * Invariants: a member grants only the ballot that it has promised, after it has published the promise and sealed its
 * log. It grants one ballot to one incarnation of its owner only.
 */

import { type Extent, noExtent } from '../data-path/log.js';
import { GRANT, REQUEST } from '../layout.js';
import type { Member } from '../member.js';
import { writeWide } from '../wide.js';
import { NO_BALLOT } from './ballot.js';
import type { Rows } from './rows.js';
import { SlotReader, SlotWriter } from './slots.js';

/** A member's answer to our request. */
export interface Answer {
  member: number;
  granted: boolean;
  /** What the member has promised: our ballot if it granted; if it refused, at least our ballot. */
  promised: number;
  /** The member's incarnation. */
  incarnation: number;
  /** What the member's memory permits, if it granted. */
  key: number;
  /** The member's log as it was sealed, if it granted. */
  log: Extent;
}

const ASK_DOUBLINGS_MAX = 4;

/** The candidate's end. It keeps asking members that have not granted, also while it leads. */
export class Requests {
  private ballot = NO_BALLOT;
  private readonly slots: SlotReader[] = [];
  private readonly writer = new SlotWriter(REQUEST.words);
  private requests = 0;
  private askedUs = 0;
  private timesAsked = 0;

  constructor(private readonly member: Member) {
    const { memory, layout } = member.edges;
    for (let other = 0; other < member.replicas; other++) {
      this.slots.push(new SlotReader(memory.own, layout.leadGrant(other), GRANT.words));
    }
  }

  start(ballot: number): void {
    this.ballot = ballot;
    this.askedUs = Number.NEGATIVE_INFINITY;
    this.timesAsked = 0;
  }

  /**
   * Ask every member that has not granted, and ask again later, since a request can be lost (H9). The intervals double,
   * so that answers have the time to arrive before the next ones overwrite them.
   */
  ask(nowUs: number, hasGranted: (member: number) => boolean): void {
    const { edges } = this.member;
    const doublings = Math.min(this.timesAsked, ASK_DOUBLINGS_MAX);
    if (nowUs - this.askedUs < edges.timing.askAgainUs * (1 << doublings)) return;
    this.askedUs = nowUs;
    this.timesAsked++;
    this.requests++;
    this.writer.body[REQUEST.ballot] = this.ballot;
    this.writer.body[REQUEST.incarnation] = this.member.incarnation;
    const to = edges.layout.leadRequest(this.member.index);
    for (let other = 0; other < this.member.replicas; other++) {
      if (other === this.member.index || hasGranted(other)) continue;
      const peer = this.member.participantOf(other);
      this.writer.post(
        edges.memory,
        peer,
        to,
        REQUEST.words,
        this.member.incarnation,
        this.requests,
      );
      this.member.notify(other);
    }
  }

  /** Take the next answer to our own ballot, whatever we have promised since (H8); undefined if there is none. */
  takeAnswer(): Answer | undefined {
    for (let other = 0; other < this.slots.length; other++) {
      const slot = this.slots[other];
      if (!slot.poll()) continue;
      if (slot.body(GRANT.ballot) !== this.ballot) continue;
      if (slot.body(GRANT.candidateIncarnation) !== this.member.incarnation) continue;
      return {
        member: other,
        granted: slot.body(GRANT.granted) === 1,
        promised: slot.body(GRANT.promised),
        incarnation: slot.body(GRANT.incarnation),
        key: slot.body(GRANT.key),
        log: {
          ballot: slot.body(GRANT.logBallot),
          writer: slot.body(GRANT.logWriter),
          ringIndex: slot.body(GRANT.logRing),
          basePosition: slot.body(GRANT.basePosition),
          endPosition: slot.body(GRANT.endPosition),
          endIndex: slot.wide(GRANT.endIndex),
        },
      };
    }
    return undefined;
  }
}

/** The follower's end. */
export class Grants {
  private readonly slots: SlotReader[] = [];
  private readonly writer = new SlotWriter(GRANT.words);
  private answers = 0;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
  ) {
    const { memory, layout } = member.edges;
    for (let other = 0; other < member.replicas; other++) {
      this.slots.push(new SlotReader(memory.own, layout.leadRequest(other), REQUEST.words));
    }
  }

  /** Answer all new requests. Returns how many there were. */
  answerRequests(): number {
    const { observer } = this.member.edges;
    let answered = 0;
    for (let candidate = 0; candidate < this.slots.length; candidate++) {
      const slot = this.slots[candidate];
      // The request stays where it is; its reader remembers having seen it (H9, H10).
      if (candidate === this.member.index || !slot.poll()) continue;
      answered++;
      const ballot = slot.body(REQUEST.ballot);
      const incarnation = slot.body(REQUEST.incarnation);
      if (ballot > this.member.promised) {
        this.member.promise(ballot, incarnation);
        this.rows.peer(candidate).noteRequest(ballot, incarnation);
        // All members can read the promise before the candidate is granted it.
        this.rows.publish();
        this.grant(candidate, ballot, incarnation, this.member.sealLog());
        observer.transition('granted');
      } else if (
        ballot === this.member.promised &&
        incarnation === this.member.promisedIncarnation
      ) {
        // Only the incarnation that made a promise repeats it, and only to the incarnation that it was made to (H30).
        this.grant(candidate, ballot, incarnation, this.member.sealLog());
        observer.transition('answered again');
      } else {
        this.answer(candidate, ballot, incarnation, false, noExtent(0));
        observer.transition('refused');
      }
    }
    return answered;
  }

  /** Tell the owner of `ballot` that it alone may write this member's log. */
  grant(candidate: number, ballot: number, incarnation: number, log: Extent): void {
    this.answer(candidate, ballot, incarnation, true, log);
  }

  private answer(
    candidate: number,
    ballot: number,
    candidateIncarnation: number,
    granted: boolean,
    log: Extent,
  ): void {
    const { member, writer } = this;
    const { body } = writer;
    body[GRANT.ballot] = ballot;
    body[GRANT.granted] = granted ? 1 : 0;
    body[GRANT.promised] = member.promised;
    body[GRANT.incarnation] = member.incarnation;
    body[GRANT.candidateIncarnation] = candidateIncarnation;
    body[GRANT.key] = member.key;
    body[GRANT.logBallot] = log.ballot;
    body[GRANT.logWriter] = log.writer;
    body[GRANT.logRing] = log.ringIndex;
    body[GRANT.basePosition] = log.basePosition;
    body[GRANT.endPosition] = log.endPosition;
    writeWide(body, GRANT.endIndex, log.endIndex);
    const { memory, layout } = member.edges;
    const to = layout.leadGrant(member.index);
    writer.post(
      memory,
      member.participantOf(candidate),
      to,
      GRANT.words,
      member.incarnation,
      ++this.answers,
    );
    member.notify(candidate);
  }
}
