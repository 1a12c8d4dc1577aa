/**
 * Becoming leader (paper §5.4 and §5.5, Algorithms 3 and 4), as named phases:
 *
 *   acquireGrants ── f+1 grants ──▶ recheck ── still f+1 ──▶ adopt ──▶ catchUp ──▶ install ──▶ lead
 *        ▲                             │                       │
 *        └──── a granter changed ──────┴───── the source changed
 *
 * - *acquireGrants*: promise ourselves first, then ask every other member (H7).
 * - *recheck*: after the last grant, read every granter's incarnation and promise again. A grant of an incarnation that
 *   has ended is worth nothing (H24).
 * - *adopt*: copy the whole log with the highest marker and, among equals, the greatest end; never a mix of entries from
 *   several (H20). After copying, its member must still promise us.
 * - *catchUp*: if the adopted log starts after what we have delivered, deliver what is missing from our own log, or fetch
 *   a snapshot.
 * - *install*: write the whole log under our ballot to every member that granted. We lead once it is installed at f+1
 *   members, and then everything adopted is decided.
 *
 * As soon as this member promises another candidate, the attempt is over (H8).
 *
 * The replica calls `begin` to campaign, `step` while it is a candidate, and `installLate` while it leads.
 */

import { assert } from '../assert.js';
import type { Delivering } from '../data-path/delivery.js';
import { type Extent, isFurther, spareRing } from '../data-path/log.js';
import type { Replication } from '../data-path/replication.js';
import type { Member } from '../member.js';
import { KIND, tagOf } from '../tags.js';
import { Adoption } from './adoption.js';
import { makeBallot, NO_BALLOT, roundOf } from './ballot.js';
import type { Answer, Requests } from './grants.js';
import { Peer } from './row.js';
import type { Rows } from './rows.js';
import type { Snapshots } from './snapshots.js';

export type Phase = 'idle' | 'acquireGrants' | 'recheck' | 'adopt' | 'catchUp' | 'install';

/** A member's grant of its log, for our current ballot. At most one for each incarnation of the member. */
interface Grant {
  /** The granter's incarnation. */
  incarnation: number;
  /** What the granter's memory permits, as long as it promises no other candidate. */
  key: number;
  /** The granter's log when it granted. */
  log: Extent;
  /** Have the granter's incarnation and promise been read again, unchanged, after the last grant? */
  confirmed: boolean;
  /**
   * How we lost the member, after writing to it. Whatever it answers later in this incarnation, it is not written to
   * again under this ballot: our log may be its current one by now.
   */
  lost: 'refused' | 'broken' | undefined;
  /** The member's heartbeat as known when we lost it. */
  lostAtHeartbeat: number;
}

function newGrant(incarnation: number, key: number, log: Extent, confirmed: boolean): Grant {
  return { incarnation, key, log, confirmed, lost: undefined, lostAtHeartbeat: 0 };
}

export class Takeover {
  phase: Phase = 'idle';
  /** Ours. Equal to `member.promised` as long as the attempt may succeed, or we lead. */
  ballot = NO_BALLOT;
  /** The highest ballot heard of in refusals, so that the next attempt is above it. */
  private highestSeen = NO_BALLOT;

  /** Per member; our own is there from `begin` on. */
  private readonly grants: (Grant | undefined)[];
  private readonly recheckPeers: Peer[];
  /** Completions of earlier rounds do not count. */
  private recheckRound = 0;
  private recheckedUs = 0;

  private hasLostMember = false;
  /** Has a member promised this very ballot to an earlier incarnation of ours? */
  private ballotIsTaken = false;

  private readonly adoption: Adoption;
  /** The member whose log is adopted, and its grant. */
  private adoptFrom = -1;
  private source!: Grant;

  constructor(
    private readonly member: Member,
    private readonly rows: Rows,
    private readonly requests: Requests,
    private readonly replication: Replication,
    private readonly snapshots: Snapshots,
    private readonly delivering: Delivering,
  ) {
    const { firstIndex } = member.layout.sizes;
    this.grants = new Array<Grant | undefined>(member.replicas).fill(undefined);
    this.recheckPeers = this.grants.map(
      (_, other) => new Peer(member.participantOf(other), firstIndex),
    );
    this.adoption = new Adoption(member);
  }

  /** Start an attempt with a ballot above all that this member knows of. */
  begin(nowUs: number): void {
    const { member } = this;
    const { observer } = member.edges;
    const highestPromise = this.rows.suspicion.highestPromise();
    const above = Math.max(member.promised, this.highestSeen, highestPromise);
    // The round comes first: a later attempt outbids all earlier ones, whichever member made them (H17).
    this.ballot = makeBallot(roundOf(above) + 1, member.index);
    member.promise(this.ballot, member.incarnation);
    this.rows.publish();
    this.grants.fill(undefined);
    this.grants[member.index] = newGrant(member.incarnation, member.key, member.sealLog(), true);
    this.requests.start(this.ballot);
    this.replication.abandon();
    this.hasLostMember = false;
    this.ballotIsTaken = false;
    this.phase = 'acquireGrants';
    observer.transition('campaigned');
    this.step(nowUs);
  }

  /** Go on as far as possible. True when this member leads. */
  step(nowUs: number): boolean {
    const { member } = this;
    // What a member has promised and what it proposes are two things: it promised another candidate (H8).
    if (member.promised !== this.ballot) {
      this.phase = 'idle';
      member.edges.observer.transition('preempted');
      return false;
    }
    this.requests.ask(nowUs, this.hasGranted);
    this.collectAnswers();
    if (this.phase === 'acquireGrants') this.acquireGrants(nowUs);
    if (this.phase === 'recheck') this.recheck(nowUs);
    if (this.phase === 'adopt' && !this.sourceIsCurrent()) this.adoptionFailed();
    if (this.phase === 'catchUp') this.catchUp(nowUs);
    if (this.phase !== 'install') return false;
    if (this.hasLostMember && this.cannotSucceed()) this.fail(this.ballot);
    return this.phase === 'install' && this.replication.countInstalled() >= member.quorum;
  }

  /** Need this member not be asked (again)? */
  private readonly hasGranted = (other: number): boolean => {
    const grant = this.grants[other];
    if (grant === undefined || grant.lost === 'refused') return false;
    return this.rows.peer(other).incarnation <= grant.incarnation;
  };

  private collectAnswers(): void {
    for (;;) {
      const answer = this.requests.takeAnswer();
      if (answer === undefined) return;
      if (!answer.granted) {
        this.fail(answer.promised);
      } else {
        this.onGrant(answer);
      }
    }
  }

  /** A member has promised another candidate, or our writes fail: this ballot can't succeed. */
  private fail(promised: number): void {
    this.highestSeen = Math.max(this.highestSeen, promised);
    this.phase = 'idle';
    this.member.edges.observer.transition('attempt refused');
  }

  private onGrant(answer: Answer): void {
    const { member, incarnation, key, log } = answer;
    const known = this.grants[member];
    if (known !== undefined && known.incarnation === incarnation) return;
    this.grants[member] = newGrant(incarnation, key, log, false);
    if (this.phase === 'install') {
      this.install(member);
    } else if (this.phase === 'recheck') {
      // Every re-check must come after the last grant.
      this.phase = 'acquireGrants';
    }
  }

  private acquireGrants(nowUs: number): void {
    if (this.countGrants(false) < this.member.quorum) return;
    this.phase = 'recheck';
    this.recheckRound++;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (other === this.member.index || grant === undefined) continue;
      // It counts only if its granter's incarnation and promise are the same after the last grant (H24).
      grant.confirmed = false;
    }
    this.postRecheck(nowUs);
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

  private postRecheck(nowUs: number): void {
    const { memory, layout } = this.member.edges;
    this.recheckedUs = nowUs;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (other === this.member.index || grant === undefined || grant.confirmed) continue;
      const { buffer, participant } = this.recheckPeers[other];
      const tag = tagOf(KIND.recheck, this.recheckRound);
      memory.read(participant, layout.row, buffer.words.length, buffer.words, 0, tag);
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
   * Choose the log to go on with, and copy it. A newer ballot wins; among equals, the log that reaches further
   * (H20).
   */
  private adopt(): void {
    const { member, adoption } = this;
    let from = member.index;
    for (let other = 0; other < this.grants.length; other++) {
      const grant = this.grants[other];
      if (grant?.confirmed && isFurther(grant.log, this.grantOf(from).log)) from = other;
    }
    this.phase = 'adopt';
    this.adoptFrom = from;
    this.source = this.grantOf(from);
    if (from !== member.index) {
      adoption.read(from, this.source.log);
      return;
    }
    this.startReplication(adoption.copyOwn(this.source.log));
    member.edges.observer.transition('adopted own log');
  }

  private grantOf(other: number): Grant {
    const grant = this.grants[other];
    assert(grant !== undefined, 'a log is read from and written to members that have granted it');
    return grant;
  }

  /** Is the member whose log we are reading live, and in the incarnation that granted it? */
  private sourceIsCurrent(): boolean {
    const { incarnation } = this.rows.peer(this.adoptFrom);
    const isLive = this.rows.suspicion.isLive(this.adoptFrom);
    return isLive && incarnation <= this.source.incarnation;
  }

  onAdoptRead(attempt: number, ok: boolean, last: boolean): void {
    const { adoption, source } = this;
    if (this.phase !== 'adopt' || !adoption.isCurrent(attempt)) return;
    if (ok && !last) return;
    const log = ok ? adoption.finish(source.log, source.incarnation, this.ballot) : undefined;
    if (log === undefined) {
      this.adoptionFailed();
      return;
    }
    this.startReplication(log);
    this.member.edges.observer.transition('adopted a peer log');
  }

  private adoptionFailed(): void {
    this.grants[this.adoptFrom] = undefined;
    this.adoption.abandon();
    this.phase = 'acquireGrants';
    this.member.edges.observer.transition('adoption failed');
  }

  private startReplication(log: Extent): void {
    const { member, replication, adoption } = this;
    const sealed = this.grantOf(member.index).log;
    const ring = member.log.ring(member.index, spareRing(sealed, member.index));
    assert(
      log.endIndex >= member.nextToDeliver,
      'the adopted log contains everything that this member has delivered',
    );
    replication.start(this.ballot, ring, adoption.copy, log, adoption.baseIndexOf(log));
    this.phase = 'catchUp';
  }

  private catchUp(nowUs: number): void {
    const { member, replication } = this;
    this.deliverDropped();
    while (replication.baseIndex > member.nextToDeliver) {
      member.needs = replication.baseIndex;
      if (!this.snapshots.fetch(nowUs)) return;
    }
    member.needs = 0;
    this.snapshots.abandon();
    this.phase = 'install';
    for (let other = 0; other < this.grants.length; other++) {
      if (other !== this.member.index && this.grants[other] !== undefined) this.install(other);
    }
  }

  /**
   * Deliver the entries that the adopted log has dropped, as far as our own log still has them. Only decided entries are
   * ever dropped. If both logs are of one ballot, they have the same entry at each index: one leader wrote both.
   */
  private deliverDropped(): void {
    const { member, replication } = this;
    const { ballot, writer, ringIndex, endIndex } = this.grantOf(member.index).log;
    if (replication.baseIndex <= member.nextToDeliver || ballot !== this.source.log.ballot) return;
    const ring = member.log.ring(writer, ringIndex);
    this.delivering.deliver(ring, ballot, Math.min(endIndex, replication.baseIndex), false);
  }

  /** Write our log into the ring that `other` named as spare. */
  private install(other: number): void {
    const { incarnation, key, log } = this.grantOf(other);
    this.replication.install(other, incarnation, key, log);
  }

  /** Too few members are left to install at, or one that follows us can't be reached any more. */
  private cannotSucceed(): boolean {
    return this.replication.countPresent() < this.member.quorum || this.needsNewBallot();
  }

  /**
   * Is there a member that still follows us although we lost touch with it, or one that can't follow this ballot? A log
   * is never installed twice in one incarnation under one ballot.
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

  /**
   * A log write to this member failed. If it was refused, the member has promised another candidate, or has restarted
   * and may grant again in its new incarnation. If the connection broke, the member may well still follow us.
   */
  onMemberLost(other: number, isRefused: boolean): void {
    this.hasLostMember = true;
    const grant = this.grantOf(other);
    grant.lost = isRefused ? 'refused' : 'broken';
    grant.lostAtHeartbeat = this.rows.peer(other).heartbeat;
  }

  /** While leading: install the log at members that grant late (H3). Returns at how many. */
  installLate(nowUs: number, isNotified: boolean): number {
    let installed = 0;
    this.requests.ask(nowUs, this.hasGranted);
    while (isNotified) {
      const answer = this.requests.takeAnswer();
      if (answer === undefined) return installed;
      if (!answer.granted) {
        this.highestSeen = Math.max(this.highestSeen, answer.promised);
        if (answer.promised === this.ballot) this.ballotIsTaken = true;
        continue;
      }
      const known = this.grants[answer.member];
      if (known !== undefined && known.incarnation === answer.incarnation) continue;
      const { member, incarnation, key, log } = answer;
      this.grants[member] = newGrant(incarnation, key, log, true);
      this.install(member);
      this.member.edges.observer.transition('late member installed');
      installed++;
    }
    return installed;
  }
}
