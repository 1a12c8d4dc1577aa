/**
 * Published rows: what each replica tells all others, by having them read it.
 *
 * A replica publishes its own row and reads those of its group's members and, to know how far the
 * children have come, of the child groups' members. From them it derives who is alive and whom to
 * trust as leader (paper §2.1's oracle, which only has to be right in the end).
 */

import {
  distance,
  epochAt,
  FRAME_WORDS,
  HEAD_WORDS,
  numberAt,
  seal,
  slotAt,
  type Window,
  wordsOf,
} from '../../memory/record.js';
import { ROW, ROW_STATE } from '../layout.js';
import type { Member } from '../member.js';
import { KIND, tagOf } from '../tags.js';
import { readWide, writeWide } from '../wide.js';
import { memberOf, NO_BALLOT } from './ballot.js';

export const ROW_RECORD_WORDS = ROW.words + FRAME_WORDS;
const NEVER = Number.POSITIVE_INFINITY;
const PATIENCE_GROWTH_MAX = 16;
const NEWSWORTHY_SHARE = 16;
const PATIENCE_DECAY = 64;

/** What is known of another replica. */
export class Peer {
  /** False until its row has been read once by this life of ours. */
  seen = false;
  incarnation = 0;
  normal = true;
  promised = NO_BALLOT;
  logBallot = NO_BALLOT;
  ledBallot = NO_BALLOT;
  delivered: number;
  fromParent: number;
  holdAt = 0;
  hears = NO_BALLOT;

  heartbeat = 0;
  lastBeatUs: number;
  /** Since when it says that it is alone, or `NEVER`. */
  private aloneSinceUs = NEVER;
  /** How long it may be silent. Grows whenever silence turns out to have been mere slowness. */
  patienceUs: number;
  reading = false;
  readPostedUs = Number.NEGATIVE_INFINITY;
  readonly buffer: Window;

  constructor(
    readonly process: number,
    origin: number,
    private readonly suspectAfterUs: number,
    nowUs: number,
  ) {
    this.delivered = origin;
    this.fromParent = origin;
    this.patienceUs = suspectAfterUs;
    this.lastBeatUs = nowUs;
    this.buffer = slotAt(new Int32Array(ROW_RECORD_WORDS), 0);
  }

  isLive(nowUs: number): boolean {
    return nowUs - this.lastBeatUs <= this.patienceUs;
  }

  /** Has it said for so long that it hears from too few? */
  isAlone(nowUs: number): boolean {
    return nowUs - this.aloneSinceUs > this.suspectAfterUs;
  }

  /** The same without patience: it may be slow. */
  isBeating(nowUs: number): boolean {
    return nowUs - this.lastBeatUs <= this.suspectAfterUs;
  }

  /** So much of the time does not count. */
  excuse(us: number, nowUs: number): void {
    this.lastBeatUs = Math.min(this.lastBeatUs + us, nowUs);
    if (this.aloneSinceUs !== NEVER) this.aloneSinceUs = Math.min(this.aloneSinceUs + us, nowUs);
  }

  private beat(nowUs: number): void {
    const { suspectAfterUs } = this;
    const excess = this.patienceUs - suspectAfterUs;
    if (this.isLive(nowUs)) this.patienceUs -= Math.floor(excess / PATIENCE_DECAY);
    else this.patienceUs = Math.min(this.patienceUs * 2, suspectAfterUs * PATIENCE_GROWTH_MAX);
    this.lastBeatUs = nowUs;
  }

  /** Take over the row that was read into `buffer`; false if it was torn. */
  accept(nowUs: number): boolean {
    const { words } = this.buffer;
    const incarnation = epochAt(this.buffer, 0);
    if (wordsOf(this.buffer, 0, incarnation, numberAt(this.buffer, 0), ROW_RECORD_WORDS) === 0) {
      return false;
    }
    if (incarnation < this.incarnation) return false;
    const heartbeat = words[HEAD_WORDS + ROW.heartbeat];
    if (incarnation !== this.incarnation || heartbeat !== this.heartbeat) this.beat(nowUs);
    const isSameLife = incarnation === this.incarnation;
    this.seen = true;
    this.incarnation = incarnation;
    this.heartbeat = heartbeat;
    const state = words[HEAD_WORDS + ROW.state];
    this.normal = state !== ROW_STATE.recovering;
    if (state !== ROW_STATE.alone) this.aloneSinceUs = NEVER;
    else if (this.aloneSinceUs === NEVER) this.aloneSinceUs = nowUs;
    // In one life promises never go back: a lower one was read before we heard of the higher.
    const promised = words[HEAD_WORDS + ROW.promised];
    this.promised = isSameLife ? Math.max(this.promised, promised) : promised;
    this.logBallot = words[HEAD_WORDS + ROW.logBallot];
    this.ledBallot = words[HEAD_WORDS + ROW.ledBallot];
    this.delivered = readWide(words, HEAD_WORDS + ROW.delivered);
    this.fromParent = readWide(words, HEAD_WORDS + ROW.fromParent);
    this.holdAt = readWide(words, HEAD_WORDS + ROW.holdAt);
    this.hears = words[HEAD_WORDS + ROW.hears];
    return true;
  }
}

export class Rows {
  /** The members of this group (our own place is unused), then those of each child. */
  private readonly peers: Peer[] = [];
  private nowUs: number;

  private readonly row: Window;
  /** So much of a log must have been delivered before it is worth telling. */
  private readonly newsworthyWords: number;
  private readonly published = new Int32Array(ROW.words);
  /** Counts the rows that were read, and what else could change what follows from them. */
  news = 0;
  /** No row is due before. */
  private nextReadUs = Number.NEGATIVE_INFINITY;
  private readsChildren = false;
  private hasChanged = true;
  private publishedPosition = 0;
  private publications = 0;
  private heartbeat = 0;
  private lastBeatUs = Number.NEGATIVE_INFINITY;
  /** Does it hear from too few to lead them? */
  private isAlone = false;
  /** The ballot this member leads, once its marker stands at a quorum. */
  ledBallot = NO_BALLOT;

  constructor(
    private readonly member: Member,
    nowUs: number,
  ) {
    const { layout, memory, timing } = member.edges;
    const { origin } = layout.sizes;
    this.nowUs = nowUs;
    this.row = slotAt(memory.own, layout.row);
    this.newsworthyWords = Math.min(layout.logWords, layout.feedWords) / NEWSWORTHY_SHARE;
    for (const group of [member.group, ...member.children]) {
      for (let other = 0; other < member.replicas; other++) {
        const process = layout.replicaProcess(group, other);
        this.peers.push(new Peer(process, origin, timing.suspectAfterUs, nowUs));
      }
    }
  }

  /** Another member of this group. */
  peer(member: number): Peer {
    return this.peers[member];
  }

  childPeer(child: number, member: number): Peer {
    return this.peers[(child + 1) * this.member.replicas + member];
  }

  isLive(member: number): boolean {
    if (member === this.member.index) return true;
    const { memory } = this.member.edges;
    return this.peer(member).isLive(this.nowUs) && !memory.hasEnded(this.member.processOf(member));
  }

  private takesPart(member: number): boolean {
    if (member === this.member.index) return this.member.normal;
    return this.isLive(member) && this.peer(member).normal;
  }

  /** Could it lead? Who hears from too few can't, and would only keep others from it. */
  private canLead(member: number): boolean {
    if (!this.takesPart(member)) return false;
    if (member === this.member.index) return this.hearsQuorum(true);
    return !this.peer(member).isAlone(this.nowUs);
  }

  /**
   * Do we hear from enough members who could follow us? Whoever recovers can't, unless it has promised us already.
   * Heartbeats alone count: who is believed to have ended may be wrong about us too.
   */
  private hearsQuorum(isPatient: boolean): boolean {
    const { member, nowUs } = this;
    let count = 1;
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      const peer = this.peer(other);
      const isHeard = isPatient ? peer.isLive(nowUs) : peer.isBeating(nowUs);
      if (isHeard && (peer.normal || peer.promised === member.promised)) count++;
    }
    return count >= member.quorum;
  }

  promisedBy(member: number): number {
    return member === this.member.index ? this.member.promised : this.peer(member).promised;
  }

  /** The highest ballot that a live member, not recovering, has promised. */
  highestPromise(): number {
    let highest = NO_BALLOT;
    for (let member = 0; member < this.member.replicas; member++) {
      if (this.takesPart(member)) highest = Math.max(highest, this.promisedBy(member));
    }
    return highest;
  }

  /** Is the owner of `ballot` alive, still after it, and able to lead? */
  isPursued(ballot: number): boolean {
    const owner = memberOf(ballot);
    return ballot !== NO_BALLOT && this.canLead(owner) && this.promisedBy(owner) === ballot;
  }

  /**
   * Do enough others hear from the owner of `ballot` for it to lead, although we do not? Then the connection between
   * it and us is broken, and if we stood we would only take turns with it.
   */
  isFollowed(ballot: number): boolean {
    const { member } = this;
    const owner = memberOf(ballot);
    if (ballot === NO_BALLOT || owner === member.index) return false;
    let count = 1;
    for (let other = 0; other < member.replicas; other++) {
      if (other === owner || other === member.index) continue;
      if (this.takesPart(other) && this.peer(other).hears === ballot) count++;
    }
    return count >= member.quorum;
  }

  /** What we tell others for `isFollowed`: only what we see ourselves, and without the patience that is ours alone. */
  private hears(ballot: number): boolean {
    const owner = memberOf(ballot);
    if (owner === this.member.index || !this.isPursued(ballot)) return false;
    return this.peer(owner).isBeating(this.nowUs);
  }

  /**
   * Whom to trust as leader: the owner of the highest promise that is pursued, as we see it or others say; else the
   * first that could lead. Once nobody crashes, pauses or is suspected any more, and all reach each other, all members
   * see the same rows and so trust the same one.
   */
  trusted(): number {
    const { replicas } = this.member;
    let highest = NO_BALLOT;
    let first = -1;
    for (let member = 0; member < replicas; member++) {
      if (!this.takesPart(member)) continue;
      if (first === -1 && this.canLead(member)) first = member;
      const promised = this.promisedBy(member);
      if (promised > highest && this.isTaken(promised)) highest = promised;
    }
    return highest === NO_BALLOT ? first : memberOf(highest);
  }

  private isTaken(ballot: number): boolean {
    if (this.isPursued(ballot)) return true;
    const { member } = this;
    // If its owner has ended, why wait until others notice?
    const hasEnded = member.edges.memory.hasEnded(member.processOf(memberOf(ballot)));
    return !hasEnded && this.isFollowed(ballot);
  }

  /** A step begins. While we did not run we could not have seen a heartbeat: that time does not count. */
  wake(nowUs: number): void {
    const missedUs = nowUs - this.nowUs - this.member.edges.timing.restUs;
    this.nowUs = nowUs;
    if (missedUs <= 0) return;
    for (const peer of this.peers) peer.excuse(missedUs, nowUs);
  }

  /** A member asked to lead: it has promised itself that ballot, whatever its row said last. */
  heardRequest(member: number, ballot: number, incarnation: number): void {
    const peer = this.peer(member);
    if (incarnation >= peer.incarnation) peer.promised = Math.max(peer.promised, ballot);
  }

  /** Read the rows that are due; with `urgent`, all that are not being read. */
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
      if (nowUs < dueUs && (peer.reading || !urgent)) {
        this.nextReadUs = Math.min(this.nextReadUs, dueUs);
        continue;
      }
      peer.reading = true;
      peer.readPostedUs = nowUs;
      const tag = tagOf(KIND.row, place);
      memory.read(peer.process, layout.row, ROW_RECORD_WORDS, peer.buffer.words, 0, tag);
    }
  }

  onRead(place: number, ok: boolean, nowUs: number): void {
    const peer = this.peers[place];
    peer.reading = false;
    this.news++;
    if (!ok || !peer.accept(nowUs) || place >= this.member.replicas) return;
    this.member.horizon = Math.max(this.member.horizon, peer.delivered);
  }

  /**
   * Make the world see this member as it is now. Must precede any grant that tells of it. True if it has
   * come so far that somebody may be waiting for that.
   */
  publish(): boolean {
    const { member, row, published } = this;
    const { timing } = member.edges;
    const isDue = this.nowUs - this.lastBeatUs >= timing.heartbeatUs;
    if (isDue) {
      this.lastBeatUs = this.nowUs;
      this.heartbeat++;
      member.keepNear();
    }
    if (isDue || this.published[ROW.promised] !== member.promised) {
      this.set(ROW.hears, this.hears(member.promised) ? member.promised : NO_BALLOT);
      this.isAlone = !this.hearsQuorum(false);
    }
    const standing = member.log.under(member.promised, member.promisedMember) !== undefined;
    this.set(ROW.heartbeat, this.heartbeat);
    this.set(ROW.state, this.state());
    this.set(ROW.promised, member.promised);
    this.set(ROW.logBallot, standing ? member.promised : NO_BALLOT);
    this.set(ROW.ledBallot, this.ledBallot);
    this.setWide(ROW.holdAt, member.holdAt);
    // How far it has come matters to others only when their rings fill up.
    const isFurther = distance(member.nextPosition, this.publishedPosition) >= this.newsworthyWords;
    if (!this.hasChanged && !isDue && !isFurther) return false;
    this.publishedPosition = member.nextPosition;
    this.setWide(ROW.delivered, member.nextToDeliver);
    // What this group has decided, not what its leader has merely taken: that can be lost with it (H26).
    this.setWide(ROW.fromParent, member.delivered.nextFromParent);
    if (!this.hasChanged) return false;
    this.hasChanged = false;
    row.words.set(published, row.at + HEAD_WORDS);
    seal(row, 0, ROW.words, member.incarnation, ++this.publications);
    return isFurther;
  }

  private state(): number {
    if (!this.member.normal) return ROW_STATE.recovering;
    return this.isAlone ? ROW_STATE.alone : ROW_STATE.normal;
  }

  private set(field: number, value: number): void {
    if (this.published[field] === value) return;
    this.published[field] = value;
    this.hasChanged = true;
  }

  private setWide(field: number, value: number): void {
    if (readWide(this.published, field) === value) return;
    writeWide(this.published, field, value);
    this.hasChanged = true;
  }
}
