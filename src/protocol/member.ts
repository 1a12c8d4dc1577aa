/**
 * What all parts of one replica share: who it is, what it has promised, and how far it has delivered.
 *
 * Invariants: `promised` never goes back and is what the memory permits; a restarted replica permits
 * nobody (RETIRED) until it has learnt what to promise. `nextToDeliver` never goes back.
 */
import { OPEN, RETIRED } from '../memory/contract.js';
import type { Layout } from '../memory/layout.js';
import { assert } from './assert.js';
import { memberOf, NO_BALLOT } from './ballot.js';
import { Counters } from './counters.js';
import type { Edges } from './edges.js';
import { keyOf } from './key.js';
import { type Extent, Log } from './log.js';
import { Replies } from './replies.js';
import { KIND } from './tags.js';

export interface Identity {
  readonly group: number;
  readonly member: number;
  /** Higher than in any earlier life of this member. */
  readonly incarnation: number;
  /** True if there was an earlier life: what it promised is forgotten and must be learnt from others. */
  readonly restarted: boolean;
}

export class Member {
  readonly group: number;
  readonly index: number;
  readonly incarnation: number;
  readonly replicas: number;
  /** f + 1 */
  readonly quorum: number;
  readonly children: readonly number[];
  readonly layout: Layout;

  readonly log: Log;
  readonly replies: Replies;

  /** The highest ballot this member has promised to follow. */
  promised = NO_BALLOT;
  /** The incarnation of the candidate it was promised to. */
  promisedIncarnation = 0;
  /** What this member's memory permits since then. */
  key = OPEN;
  private promises = 0;
  /** False while a restarted member does not yet know what it had promised. */
  normal: boolean;

  /** Paper's STD, and where in the log that entry stands. */
  nextToDeliver: number;
  nextPosition: number;
  /** Counters over the delivered entries and, while leading, over all proposed ones. */
  readonly delivered: Counters;
  readonly proposed: Counters;
  /** How many messages this group has delivered to the application. */
  deliveries = 0;
  /** Index of a snapshot being fetched from us, so that the leader keeps the log from there; 0 if none. */
  holdAt = 0;
  /** The furthest that any member of the group is known to have delivered. */
  horizon: number;
  private readonly mailsSent: Int32Array;
  private readonly mailsSeen: Int32Array;

  constructor(
    identity: Identity,
    readonly edges: Edges,
  ) {
    const { layout, overlay, memory } = edges;
    this.group = identity.group;
    this.index = identity.member;
    this.incarnation = identity.incarnation;
    this.normal = !identity.restarted;
    this.layout = layout;
    this.replicas = layout.sizes.replicas;
    this.quorum = (this.replicas >> 1) + 1;
    this.children = overlay.children(this.group);
    this.log = new Log(memory.own, layout, identity.incarnation);
    this.nextToDeliver = layout.sizes.origin;
    this.nextPosition = layout.sizes.origin | 0;
    this.horizon = layout.sizes.origin;
    // Every life counts from elsewhere, so that its first mail is a change.
    this.mailsSent = Int32Array.of(identity.incarnation << 16);
    this.mailsSeen = new Int32Array(this.replicas);
    this.delivered = this.newCounters();
    this.proposed = this.newCounters();
    this.replies = new Replies(this);
    if (identity.restarted) memory.permit(RETIRED);
  }

  /** A slot was written at another member of the group: let it know. */
  mailTo(member: number): void {
    const { memory, layout } = this.edges;
    this.mailsSent[0]!++;
    const peer = this.processOf(member);
    memory.write(peer, layout.mail(this.index), this.mailsSent, 0, 1, OPEN, KIND.none);
    memory.wake(peer, true);
  }

  /** Has any member written a slot since this was asked last? */
  takeMail(): boolean {
    const { own } = this.edges.memory;
    let hasMail = false;
    for (let member = 0; member < this.replicas; member++) {
      const mails = own[this.layout.mail(member)]!;
      if (mails === this.mailsSeen[member]) continue;
      this.mailsSeen[member] = mails;
      hasMail = true;
    }
    return hasMail;
  }

  newCounters(): Counters {
    return new Counters(this.layout.sizes, this.edges.overlay, this.children);
  }

  processOf(member: number): number {
    return this.layout.replicaProcess(this.group, member);
  }

  /** Give the log to `ballot`'s owner and to nobody else. */
  promise(ballot: number, incarnation: number): void {
    assert(ballot > this.promised, 'a promise is never given to a lower ballot');
    this.promised = ballot;
    this.promisedIncarnation = incarnation;
    this.key = keyOf(this.incarnation, this.promises++);
    this.edges.memory.permit(this.key);
  }

  get promisedMember(): number {
    return memberOf(this.promised);
  }

  /** This member's log and how far it reaches. Only meaningful after a promise. */
  sealLog(): Extent {
    return this.log.extentOf(this.edges.rules.sealedLog(this), this.horizon);
  }
}
