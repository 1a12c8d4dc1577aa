/**
 * What all parts of one replica share: who it is, what it has promised, and how far it has delivered.
 *
 * Invariants: `promised` never goes back, not even from life to life while the region lasts; the memory
 * permits the key that was made for it, or nobody. A member that has lost its region permits nobody
 * (RETIRED) until it has learnt what to promise. `nextToDeliver` never goes back.
 */
import { OPEN, RETIRED } from '../memory/contract.js';
import { assert } from './assert.js';
import { Counters } from './data-path/counters.js';
import { type Extent, Log } from './data-path/log.js';
import { Replies } from './data-path/replies.js';
import type { Edges } from './edges.js';
import type { Layout } from './layout.js';
import { memberOf, NO_BALLOT } from './leadership/ballot.js';
import { Kept } from './leadership/kept.js';
import { keyOf } from './leadership/key.js';
import { KIND } from './tags.js';

/**
 * What is left of earlier lives: nothing, as there was none; nothing, as their region is gone and what was
 * promised must be learnt from others; or the region, with promises and logs.
 */
export type Past = 'none' | 'lost' | 'kept';

export interface Identity {
  readonly group: number;
  readonly member: number;
  /** Higher than in any earlier life of this member. */
  readonly incarnation: number;
  readonly past: Past;
}

/** No life's: incarnations start at 1. */
const NOBODY = 0;

export class Member {
  readonly group: number;
  readonly index: number;
  readonly incarnation: number;
  readonly replicas: number;
  /** f + 1 */
  readonly quorum: number;
  readonly children: readonly number[];
  readonly layout: Layout;
  readonly past: Past;

  readonly log: Log;
  readonly replies: Replies;

  /** The highest ballot this member has promised to follow. */
  promised = NO_BALLOT;
  /** The incarnation of the candidate it was promised to, in this life. */
  promisedIncarnation = NOBODY;
  /** What this member's memory permits since then. */
  key = OPEN;
  private readonly kept: Kept;
  /** The life in which the region was last empty. */
  private readonly life: number;
  /** False while a member that lost its region does not yet know what it had promised. */
  normal: boolean;

  /** Paper's STD, and where in the log that entry stands. */
  nextToDeliver: number;
  nextPosition: number;
  /** Counters over the delivered entries. */
  readonly delivered: Counters;
  /** How many messages this group has delivered to the application. */
  deliveries = 0;
  /** Index of a snapshot being fetched from us, so that the leader keeps the log from there; 0 if none. */
  holdAt = 0;
  /** The furthest that any member of the group is known to have delivered. */
  horizon: number;
  private mailsSent: number;
  private readonly mails: Int32Array;
  private readonly mailsSeen: Int32Array;

  constructor(
    identity: Identity,
    readonly edges: Edges,
  ) {
    const { layout, overlay, memory } = edges;
    this.group = identity.group;
    this.index = identity.member;
    this.incarnation = identity.incarnation;
    this.kept = new Kept(memory.own, layout.kept);
    this.past = this.pastOf(identity.past);
    this.life = this.past === 'kept' ? this.kept.life : identity.incarnation;
    this.normal = this.past !== 'lost';
    this.layout = layout;
    this.replicas = layout.sizes.replicas;
    this.quorum = (this.replicas >> 1) + 1;
    this.children = overlay.children(this.group);
    this.log = new Log(memory, layout, this.group, this.life);
    this.nextToDeliver = layout.sizes.origin;
    this.nextPosition = layout.sizes.origin | 0;
    this.horizon = Math.max(layout.sizes.origin, this.kept.near);
    // Every life counts from elsewhere, so that its first mail is a change.
    this.mailsSent = identity.incarnation << 16;
    this.mails = memory.own.subarray(layout.mail(0), layout.mail(this.replicas));
    this.mailsSeen = new Int32Array(this.replicas);
    this.delivered = this.newCounters();
    this.replies = new Replies(this);
    if (this.past === 'kept') this.resume();
    else this.startAfresh();
  }

  /** What there is to resume with. Where nobody was ever permitted anything there was no promise. */
  private pastOf(claimed: Past): Past {
    const { memory } = this.edges;
    if (claimed !== 'kept') return claimed;
    const permitted = memory.permitted();
    if (permitted === OPEN && !this.kept.isMember) return 'none';
    // A life that was killed while it recovered, or while its region was being emptied, was no member (H31).
    return this.kept.isMember && permitted !== RETIRED ? 'kept' : 'lost';
  }

  /** Begin with an empty region, or one in which nothing counts any more. */
  private startAfresh(): void {
    if (this.past === 'lost') this.edges.memory.permit(RETIRED);
    this.kept.begin(this.life);
    if (this.past === 'none') this.kept.becomeMember();
  }

  /**
   * Go on with promise and logs as they are, under a key that nobody knows: whoever leads must ask again,
   * and with a higher ballot, since no log is installed twice under one.
   */
  private resume(): void {
    // What an earlier life promised still binds this one (H29).
    this.promised = this.kept.promised;
    this.key = this.nextKey();
    this.edges.memory.permit(this.key);
  }

  /** It has learnt what it had promised, and has whatever it helped to decide: a member like any other. */
  recovered(): void {
    this.normal = true;
    this.kept.becomeMember();
  }

  /** A slot was written at another member of the group: let it know. */
  mailTo(member: number): void {
    const { memory, layout } = this.edges;
    const peer = this.processOf(member);
    memory.writeWord(peer, layout.mail(this.index), ++this.mailsSent, OPEN, KIND.none);
    memory.wake(peer, true);
  }

  /** Has any member written a slot since this was asked last? */
  takeMail(): boolean {
    const { mails, mailsSeen } = this;
    let hasMail = false;
    for (let member = 0; member < mailsSeen.length; member++) {
      if (mails[member] === mailsSeen[member]) continue;
      mailsSeen[member] = mails[member];
      hasMail = true;
    }
    if (hasMail) this.edges.memory.readFence();
    return hasMail;
  }

  newCounters(): Counters {
    return new Counters(this.layout.sizes);
  }

  processOf(member: number): number {
    return this.layout.replicaProcess(this.group, member);
  }

  /** Give the log to `ballot`'s owner and to nobody else. */
  promise(ballot: number, incarnation: number): void {
    assert(ballot > this.promised, 'a promise is never given to a lower ballot');
    this.promised = ballot;
    this.promisedIncarnation = incarnation;
    this.key = this.nextKey();
    this.kept.promised = ballot;
    this.edges.memory.permit(this.key);
  }

  /** One that was never made before in this region, not even by a life that ended just then. */
  private nextKey(): number {
    return keyOf(this.life, this.kept.keys++);
  }

  get promisedMember(): number {
    return memberOf(this.promised);
  }

  /**
   * This member's log and how far it reaches: what stands in its memory after the promise, whether or not
   * this member has noticed it yet (H23).
   */
  sealLog(): Extent {
    return this.log.extentOf(this.log.current(), this.near);
  }

  /** An index not far from those in the log. */
  get near(): number {
    return Math.max(this.horizon, this.nextToDeliver);
  }

  /** Keep what a later life could not find out by itself. */
  keepNear(): void {
    this.kept.near = this.near;
  }
}
