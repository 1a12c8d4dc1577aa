/**
 * Suspicion: who is alive, who is heard, whom to trust as leader, and who may campaign. It implements the paper's
 * leader oracle (§2.1), which only has to be right in the end. So safety does not depend on anything here, only progress
 * does. Everything is derived from the rows that rows.ts has read.
 *
 * The rules:
 *
 * - A member is *live* while its heartbeats come within our patience. Patience starts at `suspectAfterUs`, doubles
 *   whenever a suspicion turns out to be wrong, up to sixteenfold, and shrinks again with heartbeats that are on time.
 *   Time in which we did not run ourselves does not count. A member whose end the platform has noticed is not live.
 * - A member *can lead* if it is live, does not recover, does not lack the state of its group (member.ts), has not been
 *   alone for longer than `suspectAfterUs`, and is not given up. It is *alone* if it hears from fewer than f+1 members: it could not lead, and would only keep others from
 *   leading. The owner of a ballot is *given up* if we have not heard it for `suspectAfterUs`, however patient we are, and
 *   f members that we hear trust us instead. Otherwise they would wait for us, and we for the owner.
 * - A ballot is *pursued* while its owner can lead and has promised no other.
 * - A ballot is *followed* if f+1 members, its owner included, say that they hear from its owner. If we then do not hear
 *   from the owner, the connection between it and us is broken, and a campaign of ours would only make the two of us take
 *   turns.
 * - We *trust* the owner of the highest promise that is pursued or followed, else the first member that can lead.
 * - A member *campaigns* when it trusts itself (follower.ts).
 *
 * Once no member crashes, pauses or is suspected any more, and all reach each other, all members read the same rows and
 * trust the same leader.
 */

import type { Member } from '../member.js';
import { memberOf, NO_BALLOT } from './ballot.js';
import type { Peer } from './row.js';

const NEVER = Number.POSITIVE_INFINITY;
const PATIENCE_GROWTH_MAX = 16;
const PATIENCE_DECAY = 64;

/** When one member's heartbeats came. */
class HeartbeatMonitor {
  private beatsSeen = 0;
  private lastBeatUs: number;
  /** Since when the member has said that it is alone, or `NEVER`. */
  private aloneSinceUs = NEVER;
  /** How long the member may be silent. suspectAfterUs ≤ patienceUs ≤ 16 · suspectAfterUs. */
  patienceUs: number;

  constructor(
    private readonly peer: Peer,
    private readonly suspectAfterUs: number,
    nowUs: number,
  ) {
    this.patienceUs = suspectAfterUs;
    this.lastBeatUs = nowUs;
  }

  /** The peer's row was read and accepted. */
  observe(nowUs: number): void {
    const { peer } = this;
    if (peer.beats !== this.beatsSeen) this.beat(nowUs);
    this.beatsSeen = peer.beats;
    if (!peer.isAlone) this.aloneSinceUs = NEVER;
    else if (this.aloneSinceUs === NEVER) this.aloneSinceUs = nowUs;
  }

  private beat(nowUs: number): void {
    const { suspectAfterUs } = this;
    const excess = this.patienceUs - suspectAfterUs;
    if (this.isLive(nowUs)) this.patienceUs -= Math.floor(excess / PATIENCE_DECAY);
    else this.patienceUs = Math.min(this.patienceUs * 2, suspectAfterUs * PATIENCE_GROWTH_MAX);
    this.lastBeatUs = nowUs;
  }

  /** So much of the time does not count. */
  excuse(us: number, nowUs: number): void {
    this.lastBeatUs = Math.min(this.lastBeatUs + us, nowUs);
    if (this.aloneSinceUs !== NEVER) this.aloneSinceUs = Math.min(this.aloneSinceUs + us, nowUs);
  }

  isLive(nowUs: number): boolean {
    return nowUs - this.lastBeatUs <= this.patienceUs;
  }

  /** The same without the patience that we alone have learnt. */
  isBeating(nowUs: number): boolean {
    return nowUs - this.lastBeatUs <= this.suspectAfterUs;
  }

  /** Has it said for long enough that it hears from too few? */
  isAlone(nowUs: number): boolean {
    return nowUs - this.aloneSinceUs > this.suspectAfterUs;
  }
}

export class Suspicion {
  /** One for each member of this group; our own is unused. */
  private readonly monitors: HeartbeatMonitor[];

  constructor(
    private readonly member: Member,
    /** The members of this group; our own place is unused. */
    private readonly peers: readonly Peer[],
    /** The time of the current step. */
    private nowUs: number,
  ) {
    const { suspectAfterUs } = member.edges.timing;
    this.monitors = peers.map((peer) => new HeartbeatMonitor(peer, suspectAfterUs, nowUs));
  }

  /** A step begins. While we did not run we could not have seen a heartbeat: that time does not count. */
  beginStep(nowUs: number): void {
    const missedUs = nowUs - this.nowUs - this.member.edges.timing.restUs;
    this.nowUs = nowUs;
    if (missedUs <= 0) return;
    for (const monitor of this.monitors) monitor.excuse(missedUs, nowUs);
  }

  /** The row of this member was read and accepted. */
  observe(member: number, nowUs: number): void {
    this.monitors[member].observe(nowUs);
  }

  /** How long this member may be silent before it is suspected. */
  patienceUs(member: number): number {
    return this.monitors[member].patienceUs;
  }

  isLive(member: number): boolean {
    if (member === this.member.index) return true;
    const { memory } = this.member.edges;
    return (
      this.monitors[member].isLive(this.nowUs) &&
      !memory.hasEnded(this.member.participantOf(member))
    );
  }

  /** Is it live, and not recovering? */
  private takesPart(member: number): boolean {
    if (member === this.member.index) return this.member.normal;
    return this.isLive(member) && this.peers[member].normal;
  }

  private canLead(member: number): boolean {
    if (!this.takesPart(member)) return false;
    if (member === this.member.index)
      return this.member.hasState && this.countHeard(true) >= this.member.quorum;
    if (this.peers[member].delivered < this.member.layout.sizes.firstIndex) return false;
    return !this.monitors[member].isAlone(this.nowUs) && !this.isGivenUp(member);
  }

  /** Has it pursued a ballot, have we not heard it for a while, and do f members that we hear trust us instead? */
  private isGivenUp(owner: number): boolean {
    const { member, peers, monitors, nowUs } = this;
    if (memberOf(peers[owner].promised) !== owner || monitors[owner].isBeating(nowUs)) return false;
    let count = 1;
    for (let other = 0; other < member.replicas; other++) {
      if (other === owner || other === member.index) continue;
      const { normal, trusts } = peers[other];
      if (normal && trusts === member.index && monitors[other].isBeating(nowUs)) count++;
    }
    return count >= member.quorum;
  }

  /** Do we hear from too few members to lead them? This is what our row tells others. */
  isAlone(): boolean {
    return this.countHeard(false) < this.member.quorum;
  }

  /**
   * How many members, ourselves included, we hear from that could follow us. A member that recovers can't, unless it
   * has promised us already. Only heartbeats count: one that the platform believes ended may believe the same of us.
   */
  private countHeard(isPatient: boolean): number {
    const { member, nowUs } = this;
    let count = 1;
    for (let other = 0; other < member.replicas; other++) {
      if (other === member.index) continue;
      const peer = this.peers[other];
      const monitor = this.monitors[other];
      const isHeard = isPatient ? monitor.isLive(nowUs) : monitor.isBeating(nowUs);
      if (isHeard && (peer.normal || peer.promised === member.promised)) count++;
    }
    return count;
  }

  private promisedBy(member: number): number {
    return member === this.member.index ? this.member.promised : this.peers[member].promised;
  }

  /** The highest ballot that a live member, not recovering, has promised. */
  highestPromise(): number {
    let highest = NO_BALLOT;
    for (let member = 0; member < this.member.replicas; member++) {
      if (this.takesPart(member)) highest = Math.max(highest, this.promisedBy(member));
    }
    return highest;
  }

  isPursued(ballot: number): boolean {
    const owner = memberOf(ballot);
    return ballot !== NO_BALLOT && this.canLead(owner) && this.promisedBy(owner) === ballot;
  }

  isFollowed(ballot: number): boolean {
    const { member } = this;
    const owner = memberOf(ballot);
    if (ballot === NO_BALLOT || owner === member.index) return false;
    let count = 1;
    for (let other = 0; other < member.replicas; other++) {
      if (other === owner || other === member.index) continue;
      if (this.takesPart(other) && this.peers[other].hears === ballot) count++;
    }
    return count >= member.quorum;
  }

  /** What we tell others for `isFollowed`: only what we see ourselves, and without the patience that is ours alone. */
  hears(ballot: number): boolean {
    const owner = memberOf(ballot);
    if (owner === this.member.index || !this.isPursued(ballot)) return false;
    return this.monitors[owner].isBeating(this.nowUs);
  }

  /** The member to trust as leader, or -1 if no member can lead. */
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

  /** Is the ballot pursued, as far as we or enough others can tell? */
  private isTaken(ballot: number): boolean {
    if (this.isPursued(ballot)) return true;
    const { member } = this;
    // If the platform knows that its owner has ended, do not wait until others suspect it.
    const hasEnded = member.edges.memory.hasEnded(member.participantOf(memberOf(ballot)));
    return !hasEnded && this.isFollowed(ballot);
  }
}
