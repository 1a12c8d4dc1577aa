/**
 * The exchange of rows: publish our own row, and read those of the other members of this group and, while we lead,
 * those of the child groups' members. row.ts says what a row holds, suspicion.ts what follows from it.
 *
 * The replica calls `beginStep` and `read` at the start of each step, `onRead` for each completed read, and `publish`
 * at its end. Parts that promise something publish at once.
 *
 * Invariant: a promise is published before any grant tells of it.
 */

import { distance } from '../../memory/record.js';
import { ROW, ROW_STATE } from '../layout.js';
import type { Member } from '../member.js';
import { KIND, tagOf } from '../tags.js';
import { NO_BALLOT } from './ballot.js';
import { OwnRow, Peer, ROW_RECORD_WORDS } from './row.js';
import { Suspicion } from './suspicion.js';

/** Progress by this share of a ring is published at once, since others may wait for it. */
const NEWSWORTHY_SHARE = 16;

export class Rows {
  readonly suspicion: Suspicion;
  /** The members of this group (our own place is unused), then those of each child. */
  private readonly peers: Peer[] = [];
  private nowUs: number;

  /** Changes with every row that was read, and with whatever else may change what follows from rows. */
  news = 0;
  /** No row is due before. */
  private nextReadUs = Number.NEGATIVE_INFINITY;
  private readsChildren = false;

  private readonly row: OwnRow;
  /** So many words of the log must have been delivered since the last publication to be published at once. */
  private readonly newsworthyWords: number;
  private publishedPosition = 0;
  private heartbeat = 0;
  private lastBeatUs = Number.NEGATIVE_INFINITY;
  /** Does our row say that we are alone? */
  private isAlone = false;
  /** The ballot this member leads, once its log is installed at a quorum; else NO_BALLOT. */
  ledBallot = NO_BALLOT;

  constructor(
    private readonly member: Member,
    nowUs: number,
  ) {
    const { layout, memory } = member.edges;
    this.nowUs = nowUs;
    this.row = new OwnRow(memory.own, layout.row, member.incarnation);
    this.newsworthyWords = Math.min(layout.logWords, layout.feedWords) / NEWSWORTHY_SHARE;
    for (const group of [member.group, ...member.children]) {
      for (let other = 0; other < member.replicas; other++) {
        this.peers.push(new Peer(layout.replicaParticipant(group, other), layout.sizes.firstIndex));
      }
    }
    this.suspicion = new Suspicion(member, this.peers.slice(0, member.replicas), nowUs);
  }

  /** Another member of this group. */
  peer(member: number): Peer {
    return this.peers[member];
  }

  /** A member of a child group, which is named by its place among the children. */
  childPeer(child: number, member: number): Peer {
    return this.peers[(child + 1) * this.member.replicas + member];
  }

  beginStep(nowUs: number): void {
    this.nowUs = nowUs;
    this.suspicion.beginStep(nowUs);
  }

  /** When a heartbeat of ours, or a read of a row, is due. */
  get dueUs(): number {
    return Math.min(this.lastBeatUs + this.member.edges.timing.heartbeatUs, this.nextReadUs);
  }

  /**
   * Post reads of the rows that are due; with `urgent`, of all that are not being read. A read that takes longer than a heartbeat
   * is followed by another one, because it may be lost. If an urgent read then followed each of them, there would be ever more.
   */
  read(urgent: boolean, withChildren: boolean): void {
    const { nowUs } = this;
    const { layout, memory, timing } = this.member.edges;
    if (nowUs < this.nextReadUs && !urgent && withChildren === this.readsChildren) return;
    this.readsChildren = withChildren;
    this.nextReadUs = nowUs + timing.heartbeatUs;
    const count = withChildren ? this.peers.length : this.member.replicas;
    for (let place = 0; place < count; place++) {
      if (place === this.member.index) continue;
      const peer = this.peers[place];
      const dueUs = peer.readPostedUs + timing.heartbeatUs;
      if (nowUs < dueUs && (peer.readsUnderWay > 0 || !urgent)) {
        this.nextReadUs = Math.min(this.nextReadUs, dueUs);
        continue;
      }
      peer.readsUnderWay++;
      peer.readPostedUs = nowUs;
      const tag = tagOf(KIND.row, place);
      memory.read(peer.participant, layout.row, ROW_RECORD_WORDS, peer.buffer.words, 0, tag);
    }
  }

  onRead(place: number, ok: boolean, nowUs: number): void {
    const peer = this.peers[place];
    peer.readsUnderWay = Math.max(0, peer.readsUnderWay - 1);
    this.news++;
    if (!ok || !peer.accept() || place >= this.member.replicas) return;
    this.suspicion.observe(place, nowUs);
    this.member.horizon = Math.max(this.member.horizon, peer.delivered);
    this.member.stable = Math.max(this.member.stable, peer.stable);
  }

  /**
   * Publish this member as it is now, if that differs from what is published. True if it has come so far that another
   * replica may be waiting for that.
   */
  publish(): boolean {
    const { member, row, suspicion } = this;
    const isDue = this.nowUs - this.lastBeatUs >= member.edges.timing.heartbeatUs;
    if (isDue) {
      this.lastBeatUs = this.nowUs;
      this.heartbeat++;
      member.keepNear();
    }
    if (isDue || row.get(ROW.promised) !== member.promised) {
      row.set(ROW.hears, suspicion.hears(member.promised) ? member.promised : NO_BALLOT);
      row.set(ROW.trusts, suspicion.trusted());
      this.isAlone = suspicion.isAlone();
    }
    const { log, promised, promisedMember } = member;
    const ring = log.under(promised, promisedMember) ?? log.current();
    row.set(ROW.heartbeat, this.heartbeat);
    row.set(ROW.state, this.state());
    row.set(ROW.promised, member.promised);
    row.set(ROW.logBallot, ring?.marker ?? NO_BALLOT);
    row.set(ROW.ledBallot, this.ledBallot);
    row.setWide(ROW.holdAt, member.holdAt);
    row.setWide(ROW.backlog, member.backlog.firstIndex);
    row.setWide(ROW.needs, member.needs);
    const { isFurther } = this;
    if (!row.hasChanged && !isDue && !isFurther) return false;
    this.publishedPosition = member.nextPosition;
    row.setWide(ROW.delivered, member.nextToDeliver);
    // What this group has decided, not what its leader has merely taken: that can be lost with it (H26).
    row.setWide(ROW.fromParent, member.delivered.nextFromParent);
    row.setWide(ROW.settledFromParent, member.settledFromParent);
    const { journal } = member.edges;
    if (journal !== undefined) {
      row.setWide(ROW.durable, journal.durable);
      row.set(ROW.heldMark, journal.heldMark);
      row.set(ROW.subtreeMark, member.subtreeMark);
      const othersAwaitIt = this.ledBallot !== NO_BALLOT && member.awaitsMark;
      row.set(ROW.awaitsMark, othersAwaitIt || journal.awaitsMark ? 1 : 0);
    }
    row.setWide(ROW.durableFromParent, member.durableFromParent);
    row.setWide(ROW.stable, member.stable);
    if (!row.hasChanged) return false;
    row.publish();
    return isFurther;
  }

  /** Has it come so far since the last publication that others want to know? That matters when their rings fill up. */
  get isFurther(): boolean {
    return distance(this.member.nextPosition, this.publishedPosition) >= this.newsworthyWords;
  }

  private state(): number {
    if (!this.member.normal) return ROW_STATE.recovering;
    return this.isAlone ? ROW_STATE.alone : ROW_STATE.normal;
  }
}
