/**
 * Becoming leader (paper §5.4 and §5.5, Algorithms 3 and 4), as named phases:
 *
 *   acquireGrants ── f+1 grants ──▶ recheck ── still f+1 ──▶ adopt ──▶ catchUp ──▶ install ──▶ lead
 *        ▲                             │                       │
 *        └──── a granter changed ──────┴───── the source changed
 *
 * - *acquireGrants*: promise ourselves first, then ask everybody (H7).
 * - *recheck*: after the last grant, read every granter's incarnation and promise again; a grant of
 *   a life that has ended is worth nothing (H24).
 * - *adopt*: the whole log with the highest marker and, among equals, the greatest end; never a mix of
 *   entries from several (H20). After copying, its member must still promise us.
 * - *catchUp*: if the adopted log starts after what we have delivered, fetch a snapshot first.
 * - *install*: write the whole log under our ballot to everyone who granted. We lead once our marker
 *   stands at f+1, and then everything adopted is decided.
 *
 * Whenever this member promises somebody else, the attempt is over (H8).
 */

import { copyWords, distance, extend, numberAt, readRange } from '../../memory/record.js';
import { assert } from '../assert.js';
import { type Extent, isFurther, LogRing, spareRing } from '../data-path/log.js';
import type { Replication } from '../data-path/replication.js';
import { LOG_CONTROL } from '../layout.js';
import type { Member } from '../member.js';
import { KIND, tagOf } from '../tags.js';
import { makeBallot, NO_BALLOT, roundOf } from './ballot.js';
import type { Answer, Requests } from './grants.js';
import { Peer } from './row.js';
import type { Rows } from './rows.js';
import type { Snapshots } from './snapshots.js';

export type Phase = 'idle' | 'acquireGrants' | 'recheck' | 'adopt' | 'catchUp' | 'install';

interface Grant {
  incarnation: number;
  key: number;
  log: Extent;
  confirmed: boolean;
  /**
   * How we lost the member again, after writing to it. Whatever it answers later in this life, it is
   * not written to again under this ballot: our log there may be its current one by now.
   */
  lost: 'refused' | 'broken' | undefined;
  /** The member's heartbeat as known then. */
  lostAtHeartbeat: number;
}

function newGrant(incarnation: number, key: number, log: Extent, confirmed: boolean): Grant {
  return { incarnation, key, log, confirmed, lost: undefined, lostAtHeartbeat: 0 };
}

export class Takeover {
  phase: Phase = 'idle';
  ballot = NO_BALLOT;
  /** Highest ballot heard of, so that the next attempt is above it. */
  private highestSeen = NO_BALLOT;

  private readonly grants: (Grant | undefined)[];
  private readonly recheckPeers: Peer[];
  private recheckRound = 0;
  private recheckedUs = 0;

  private memberLost = false;
  /** A member promised this very ballot to an earlier life of ours. */
  private ballotIsTaken = false;

  private adoptAttempt = 0;
  private adoptFrom = -1;
  /** The grant that names the log being read. */
  private source!: Grant;
  private readonly adopted: LogRing;
  private readonly adoptedBase = new Int32Array(1);
  private readonly adoptedRow: Peer;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly requests: Requests,
    private readonly replication: Replication,
    private readonly snapshots: Snapshots,
  ) {
    const { layout } = member;
    this.grants = new Array<Grant | undefined>(member.replicas).fill(undefined);
    this.recheckPeers = this.grants.map((_, other) => this.newPeer(other));
    this.adoptedRow = this.newPeer(member.index);
    // A private copy of another member's ring: same shape, other memory.
    this.adopted = new LogRing(
      new Int32Array(layout.logRing(0, 0) + layout.logWords),
      layout,
      member.group,
      0,
      0,
    );
  }

  private newPeer(other: number): Peer {
    return new Peer(this.member.processOf(other), this.member.layout.sizes.origin);
  }

  /** Start an attempt with a ballot above all that this member knows of. */
  begin(nowUs: number): void {
    const { member } = this;
    const { observer } = member.edges;
    const above = Math.max(member.promised, this.highestSeen, this.rows.suspicion.highestPromise());
    // The round comes first: a later attempt outbids all earlier ones, whoever made them (H17).
    this.ballot = makeBallot(roundOf(above) + 1, member.index);
    member.promise(this.ballot, member.incarnation);
    this.rows.publish();
    this.grants.fill(undefined);
    this.grants[member.index] = newGrant(member.incarnation, member.key, member.sealLog(), true);
    this.requests.start(this.ballot);
    this.replication.abandon();
    this.memberLost = false;
    this.ballotIsTaken = false;
    this.phase = 'acquireGrants';
    observer.transition('stood');
    this.step(nowUs);
  }

  /** A member has promised somebody else, or our writes fail: this ballot will not do. */
  private refused(promised: number): void {
    this.highestSeen = Math.max(this.highestSeen, promised);
    this.phase = 'idle';
    this.member.edges.observer.transition('attempt refused');
  }

  /** Need this member not be asked (again)? */
  private readonly hasGranted = (other: number): boolean => {
    const grant = this.grants[other];
    if (grant === undefined || grant.lost === 'refused') return false;
    return this.rows.peer(other).incarnation <= grant.incarnation;
  };

  /** Go on as far as possible. True when this member leads. */
  step(nowUs: number): boolean {
    const { member } = this;
    // What a member has promised and what it proposes are two things: it promised somebody else (H8).
    if (member.promised !== this.ballot) {
      this.phase = 'idle';
      member.edges.observer.transition('preempted');
      return false;
    }
    this.requests.ask(nowUs, this.hasGranted);
    this.collectAnswers();
    if (this.phase === 'acquireGrants') this.acquireGrants(nowUs);
    if (this.phase === 'recheck') this.recheck(nowUs);
    if (this.phase === 'adopt' && !this.sourceStands()) this.adoptionFailed();
    if (this.phase === 'catchUp') this.catchUp(nowUs);
    if (this.phase !== 'install') return false;
    if (this.memberLost && this.cannotSucceed()) this.refused(this.ballot);
    return this.phase === 'install' && this.replication.countInstalled() >= member.quorum;
  }

  /** Too few members are left to install at, or one that follows us can't be reached any more. */
  private cannotSucceed(): boolean {
    return this.replication.countPresent() < this.member.quorum || this.needsNewBallot();
  }

  private collectAnswers(): void {
    for (;;) {
      const answer = this.requests.nextAnswer();
      if (answer === undefined) return;
      if (!answer.granted) {
        this.refused(answer.promised);
      } else {
        this.onGrant(answer);
      }
    }
  }

  private onGrant(answer: Answer): void {
    const { member, incarnation, key, log } = answer;
    const known = this.grants[member];
    if (known !== undefined && known.incarnation === incarnation) return;
    this.grants[member] = newGrant(incarnation, key, log, false);
    if (this.phase === 'install') {
      this.bringUp(member);
    } else if (this.phase === 'recheck') {
      // Every re-check must come after the last grant.
      this.phase = 'acquireGrants';
    }
  }

  private grantOf(other: number): Grant {
    const grant = this.grants[other];
    assert(grant !== undefined, 'a log is read from and written to members that have granted it');
    return grant;
  }

  private countGrants(confirmedOnly: boolean): number {
    // The candidate has promised itself, and that counts (H7).
    let count = 1;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (other === this.member.index || grant === undefined) continue;
      if (grant.confirmed || !confirmedOnly) count++;
    }
    return count;
  }

  private acquireGrants(nowUs: number): void {
    if (this.countGrants(false) < this.member.quorum) return;
    this.phase = 'recheck';
    this.recheckRound++;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (other === this.member.index || grant === undefined) continue;
      // It counts only if its granter's life and promise are the same after the last grant (H24).
      grant.confirmed = false;
    }
    this.postRecheck(nowUs);
  }

  private postRecheck(nowUs: number): void {
    const { memory, layout } = this.member.edges;
    this.recheckedUs = nowUs;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (other === this.member.index || grant === undefined || grant.confirmed) continue;
      const { buffer, process } = this.recheckPeers[other];
      const tag = tagOf(KIND.recheck, this.recheckRound);
      memory.read(process, layout.row, buffer.words.length, buffer.words, 0, tag);
    }
  }

  onRechecked(other: number, round: number, ok: boolean): void {
    const grant = this.grants[other];
    if (this.phase !== 'recheck' || round !== this.recheckRound || grant === undefined) return;
    const peer = this.recheckPeers[other];
    if (ok && peer.accept()) {
      if (peer.incarnation === grant.incarnation && peer.promised === this.ballot) {
        grant.confirmed = true;
        return;
      }
      this.member.edges.observer.transition('grant dropped on re-check');
      this.grants[other] = undefined;
    }
  }

  private recheck(nowUs: number): void {
    const { member } = this;
    if (this.countGrants(true) >= member.quorum) {
      this.adopt();
    } else if (this.countGrants(false) < member.quorum) {
      this.phase = 'acquireGrants';
    } else if (nowUs - this.recheckedUs >= member.edges.timing.askAgainUs) {
      this.postRecheck(nowUs);
    }
  }

  /**
   * Choose the log to go on with, and copy it if it lies elsewhere. A newer ballot wins; among equals, the
   * log that reaches further (H20).
   */
  private adopt(): void {
    const { member } = this;
    let from = member.index;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (grant?.confirmed && isFurther(grant.log, this.grantOf(from).log)) from = other;
    }
    this.phase = 'adopt';
    this.adoptFrom = from;
    this.adoptAttempt++;
    this.source = this.grantOf(from);
    if (from === member.index) this.adoptOwn(this.source.log);
    else this.readLog(from, this.source.log);
  }

  /** Is the member whose log we are reading alive, in the life that granted it? */
  private sourceStands(): boolean {
    const { incarnation } = this.rows.peer(this.adoptFrom);
    return this.rows.suspicion.isLive(this.adoptFrom) && incarnation <= this.source.incarnation;
  }

  private adoptOwn(sealed: Extent): void {
    const ring = this.member.log.ring(sealed.writer, sealed.ringIndex);
    const count = distance(sealed.endPosition, sealed.basePosition);
    copyWords(ring, sealed.basePosition, this.adopted, sealed.basePosition, count);
    this.member.edges.memory.readFence();
    const log = this.trimmed(sealed, ring.base);
    assert(log !== undefined, 'what was sealed still stands, or was dropped from its start');
    this.startReplication(log);
    this.member.edges.observer.transition('adopted own log');
  }

  /** Read a peer's entries, then its base, then its row: in this order, so that the row is the newest. */
  private readLog(from: number, log: Extent): void {
    const { memory, layout } = this.member.edges;
    const peer = this.member.processOf(from);
    const tag = tagOf(KIND.adopt, this.adoptAttempt);
    const { basePosition, endPosition } = log;
    const ring = layout.logRing(log.writer, log.ringIndex);
    readRange(memory, peer, ring, this.adopted, basePosition, endPosition, tag);
    const control = layout.logControl(log.writer, log.ringIndex);
    memory.read(peer, control + LOG_CONTROL.base, 1, this.adoptedBase, 0, tag);
    const { buffer } = this.adoptedRow;
    const last = tagOf(KIND.adoptLast, this.adoptAttempt);
    memory.read(peer, layout.row, buffer.words.length, buffer.words, 0, last);
  }

  onAdoptRead(attempt: number, ok: boolean, last: boolean): void {
    if (this.phase !== 'adopt' || attempt !== this.adoptAttempt) return;
    const { incarnation, log: sealed } = this.source;
    if (ok && !last) return;
    this.adoptedRow.incarnation = 0;
    if (
      ok &&
      this.adoptedRow.accept() &&
      this.adoptedRow.incarnation === incarnation &&
      this.adoptedRow.promised === this.ballot
    ) {
      const log = this.trimmed(sealed, this.adoptedBase[0]);
      if (log !== undefined) {
        this.startReplication(log);
        this.member.edges.observer.transition('adopted a peer log');
        return;
      }
    }
    this.adoptionFailed();
  }

  /**
   * The copy of a sealed log from its base as it was after copying: a deposed leader's late writes may
   * have dropped entries since the seal. It could only drop what f+1 members have delivered and all
   * children have decided, so starting later is right.
   */
  private trimmed(sealed: Extent, basePosition: number): Extent | undefined {
    const log = { ...sealed };
    if (log.basePosition === log.endPosition) return log;
    if (distance(basePosition, log.basePosition) > 0) {
      log.basePosition = basePosition;
      this.member.edges.observer.transition('adopted log started later');
    }
    let index = extend(log.endIndex, numberAt(this.adopted, log.basePosition));
    let position = log.basePosition;
    while (index < log.endIndex) {
      const words = this.adopted.entryWords(position, log.ballot, index);
      if (words === 0) return undefined;
      position = (position + words) | 0;
      index++;
    }
    return position === log.endPosition ? log : undefined;
  }

  private adoptionFailed(): void {
    this.grants[this.adoptFrom] = undefined;
    this.adoptAttempt++;
    this.phase = 'acquireGrants';
    this.member.edges.observer.transition('adoption failed');
  }

  private startReplication(log: Extent): void {
    const { member, replication } = this;
    const sealed = this.grantOf(member.index).log;
    const ring = member.log.ring(member.index, spareRing(sealed, member.index));
    const isEmpty = log.basePosition === log.endPosition;
    const baseIndex = isEmpty
      ? log.endIndex
      : extend(log.endIndex, numberAt(this.adopted, log.basePosition));
    assert(
      log.endIndex >= member.nextToDeliver,
      'the adopted log contains everything that this member has delivered',
    );
    replication.start(this.ballot, ring, this.adopted, log, baseIndex);
    this.phase = 'catchUp';
  }

  private catchUp(nowUs: number): void {
    if (this.replication.baseIndex > this.member.nextToDeliver) {
      this.snapshots.fetch(nowUs);
      return;
    }
    this.snapshots.abandon();
    this.phase = 'install';
    for (let other = 0; other < this.grants.length; other++) {
      if (other !== this.member.index && this.grants[other] !== undefined) this.bringUp(other);
    }
  }

  /** Write our log into the ring that `other` named as spare. */
  private bringUp(other: number): void {
    const { incarnation, key, log } = this.grantOf(other);
    this.replication.install(other, incarnation, key, log);
  }

  /**
   * A log write to this member failed. If it was refused, the member has promised somebody else, or has
   * restarted and may grant again in its new life; if the connection broke, it may well still follow us.
   */
  onMemberLost(other: number, isRefused: boolean): void {
    this.memberLost = true;
    const grant = this.grantOf(other);
    grant.lost = isRefused ? 'refused' : 'broken';
    grant.lostAtHeartbeat = this.rows.peer(other).heartbeat;
  }

  /**
   * Is there a member that still follows us although we lost touch with it, or one that can't follow
   * this ballot? A log is never installed twice in one life under one ballot.
   */
  needsNewBallot(): boolean {
    if (this.ballotIsTaken) return true;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (grant?.lost !== 'broken') continue;
      const { incarnation, promised, heartbeat } = this.rows.peer(other);
      const isNews = heartbeat !== grant.lostAtHeartbeat;
      if (isNews && incarnation === grant.incarnation && promised === this.ballot) return true;
    }
    return false;
  }

  /** While leading: members that grant late get the log as well (H3). Returns how many. */
  admitLate(nowUs: number, hasMail: boolean): number {
    let admitted = 0;
    this.requests.ask(nowUs, this.hasGranted);
    while (hasMail) {
      const answer = this.requests.nextAnswer();
      if (answer === undefined) return admitted;
      if (!answer.granted) {
        this.highestSeen = Math.max(this.highestSeen, answer.promised);
        if (answer.promised === this.ballot) this.ballotIsTaken = true;
        continue;
      }
      const known = this.grants[answer.member];
      if (known !== undefined && known.incarnation === answer.incarnation) continue;
      const { member, incarnation, key, log } = answer;
      this.grants[member] = newGrant(incarnation, key, log, true);
      this.bringUp(answer.member);
      this.member.edges.observer.transition('late member brought up');
      admitted++;
    }
    return admitted;
  }
}
