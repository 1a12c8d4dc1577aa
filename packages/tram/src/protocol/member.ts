/**
 * What all parts of one replica share: its identity, what it has promised, and how far it has delivered.
 *
 * Invariants: `promised` never goes back, not even across incarnations while the region lasts. The memory permits the
 * key that was made for that promise, or no write at all. A member that has lost its region permits no write (RETIRED)
 * until it has learnt what to promise. `nextToDeliver` never goes back, once the member has begun.
 *
 * With a journal, a group's state may be older than its log: it is what a recovery has found. A member that begins without
 * it *lacks the state*: its `nextToDeliver` is below the log's first index. It grants and holds entries as others do, and
 * fetches a snapshot, but it neither campaigns nor serves snapshots before it has one.
 */
import { OPEN, RETIRED } from '../memory/contract.js';
import { assert } from './assert.js';
import { Backlog } from './data-path/backlog.js';
import { Counters } from './data-path/counters.js';
import { type Extent, Log } from './data-path/log.js';
import { Replies } from './data-path/replies.js';
import { Waiting } from './data-path/waiting.js';
import type { Edges } from './edges.js';
import type { Layout } from './layout.js';
import { memberOf, NO_BALLOT } from './leadership/ballot.js';
import { Kept } from './leadership/kept.js';
import { keyAfter } from './leadership/key.js';
import { KIND } from './tags.js';

/**
 * What is left of earlier incarnations. `none`: there was none. `lost`: the region is gone, and what was promised must be
 * learnt from others. `kept`: the region, with promises and logs.
 */
export type Past = 'none' | 'lost' | 'kept';

export interface Identity {
  readonly group: number;
  readonly member: number;
  /** Higher than any earlier incarnation of this member. */
  readonly incarnation: number;
  /** If its region is empty: the first key that it makes, later than any key of an earlier incarnation. */
  readonly firstKey: number;
  readonly past: Past;
  /** With kept memory: the snapshot that an earlier incarnation left when it stopped (`Replica.leave`). */
  readonly left?: Int32Array | undefined;
}

/** What a member with a journal begins from (`Replica.begin`); the entries that follow are given to it stretch by stretch. */
export interface Start {
  /** A snapshot in words. Absent: the state in which the service starts. */
  readonly snapshot?: Int32Array | undefined;
  /** Are the entries of earlier eras, so that this group's log begins after them? All members must begin with the same ones. */
  readonly opensEra: boolean;
}

/**
 * Decided entries of one group, without a gap, as they lie side by side in a journal: each has the size of its body in words first,
 * and then its body, which is the entry without its frame.
 */
export interface Stretch {
  /** The index of the first one, and how many there are. */
  readonly first: number;
  readonly count: number;
  /** Where they begin and end in `words`. */
  readonly words: Int32Array;
  readonly at: number;
  readonly end: number;
}

/** The next index to deliver of a member that lacks the state of its group: below any index of a log. */
const NO_STATE = 0;

/** A backlog grows by so much at a time, which is also the most that a member fetches in one go. */
const BACKLOG_PIECE_WORDS = 65_536;

/** No incarnation: they start at 1. */
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
  readonly waiting: Waiting;

  /** The highest ballot this member has promised to follow. Never goes back. */
  promised = NO_BALLOT;
  /** The incarnation of the candidate it was promised to; NOBODY if an earlier incarnation of ours promised it. */
  promisedIncarnation = NOBODY;
  /** The key that this member's memory permits since then. */
  key = OPEN;
  private readonly kept: Kept;
  /** The first key since the region was last empty. */
  private readonly firstKey: number;
  /** False while a member that lost its region recovers. */
  normal: boolean;

  /** The next index to deliver (paper's STD), and where in the log that entry lies. Never goes back. */
  nextToDeliver: number;
  nextPosition: number;
  /** Counters over the delivered entries, those below `nextToDeliver`. */
  readonly delivered: Counters;
  /** Below this index of the parent's log, all that goes to this group is settled, as far as this member has led. */
  settledFromParent: number;
  /** Below this index of the parent's log, all that goes to this group is durable in it, as far as this member has led. */
  durableFromParent: number;
  /** With a journal: per child, the index of the last delivered entry that goes there. */
  readonly sentTo: Float64Array;
  /** With a journal: entries below this index are stable, as far as this member has been told. */
  stable: number;
  /** With a journal: the last numbered mark that was delivered, and the last one that is complete, as the marks say. */
  marks = 0;
  completeMark = 0;
  /** With a journal: a mark that f+1 members of each group of this subtree hold, as far as this member has led. */
  subtreeMark = 0;
  /** With a journal: does one of another member of the group, or below, wait for marks, as far as this member leads? */
  awaitsMark = false;
  /** How many messages this group has delivered to the application, and how many it has ordered for groups below it only. */
  deliveries = 0;
  relayed = 0;
  /** Index of a snapshot being fetched from us, so that the leader keeps the entries from there; 0 if none. */
  holdAt = 0;
  /**
   * The first index of the log that we had, followed or adopted last, if we have yet to deliver earlier entries; otherwise
   * 0. Another member must have delivered those.
   */
  needs = 0;
  /** What members that lag may fetch from us while we lead. */
  readonly backlog: Backlog;
  /** The furthest that any member of the group is known to have delivered. */
  horizon: number;
  private notificationsSent: number;
  /** Per member, its notifications to us, in our own region, and the last ones we took. */
  private readonly notifications: Int32Array;
  private readonly seenNotifications: Int32Array;

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
    this.firstKey = this.past === 'kept' ? this.kept.firstKey : identity.firstKey;
    this.normal = this.past !== 'lost';
    this.layout = layout;
    this.replicas = layout.sizes.replicas;
    this.quorum = (this.replicas >> 1) + 1;
    this.children = overlay.children(this.group);
    this.log = new Log(memory, layout, this.group, this.firstKey);
    const { logWords, entryWordsMax } = layout;
    this.backlog = new Backlog(Math.max(Math.min(logWords, BACKLOG_PIECE_WORDS), entryWordsMax));
    this.nextToDeliver = edges.journal === undefined ? layout.sizes.firstIndex : NO_STATE;
    this.nextPosition = layout.sizes.firstIndex | 0;
    this.horizon = Math.max(layout.sizes.firstIndex, this.kept.near);
    // Each incarnation counts from another number, so that its first notification is a change.
    this.notificationsSent = identity.incarnation << 16;
    this.notifications = memory.own.subarray(
      layout.memberNotification(0),
      layout.memberNotification(this.replicas),
    );
    this.seenNotifications = new Int32Array(this.replicas);
    this.delivered = this.newCounters();
    this.settledFromParent = layout.sizes.firstIndex;
    this.durableFromParent = layout.sizes.firstIndex;
    this.sentTo = new Float64Array(this.children.length).fill(layout.sizes.firstIndex - 1);
    this.stable = layout.sizes.firstIndex;
    this.replies = new Replies(this);
    this.waiting = new Waiting(layout.sizes);
    if (this.past === 'kept') this.resume();
    else this.startAfresh();
  }

  /** What there is to resume with. If no write was ever permitted, there was no promise. */
  private pastOf(claimed: Past): Past {
    const { memory } = this.edges;
    if (claimed !== 'kept') return claimed;
    const permitted = memory.permitted();
    if (permitted === OPEN && !this.kept.isMember) return 'none';
    // One that was killed while it recovered, or while its region was being emptied, was no member (H31).
    return this.kept.isMember && permitted !== RETIRED ? 'kept' : 'lost';
  }

  /** Begin with an empty region, or with one whose contents no longer count. */
  private startAfresh(): void {
    if (this.past === 'lost') this.edges.memory.permit(RETIRED);
    this.kept.begin(this.firstKey);
    if (this.past === 'none') this.kept.becomeMember();
  }

  /**
   * Go on with the promise and the logs as they are, under a key that no other member knows: the leader must ask again,
   * and with a higher ballot, since no log is installed twice under one ballot.
   */
  private resume(): void {
    // What an earlier incarnation promised still binds this one (H29).
    this.promised = this.kept.promised;
    this.key = this.nextKey();
    this.edges.memory.permit(this.key);
  }

  /** It has learnt what to promise, and has every entry that it helped to decide: it is a member like any other. */
  recovered(): void {
    this.normal = true;
    this.kept.becomeMember();
  }

  /** Does it have the state that the group's log continues? */
  get hasState(): boolean {
    return this.nextToDeliver >= this.layout.sizes.firstIndex;
  }

  /** The state that it has is the one before the log's first entry. */
  beginLog(): void {
    this.nextToDeliver = this.layout.sizes.firstIndex;
    this.nextPosition = this.layout.sizes.firstIndex | 0;
  }

  /** A new era begins with the state that it has: no session, no reply, and nothing of an earlier log is left. */
  rebase(): void {
    const { firstIndex } = this.layout.sizes;
    this.replies.clear();
    this.delivered.rebase(firstIndex);
    this.sentTo.fill(firstIndex - 1);
    this.stable = firstIndex;
    this.marks = 0;
    this.completeMark = 0;
    this.beginLog();
  }

  /** Notify another member of the group that we have written one of its slots. */
  notify(member: number): void {
    const { memory, layout } = this.edges;
    const peer = this.participantOf(member);
    memory.writeWord(
      peer,
      layout.memberNotification(this.index),
      ++this.notificationsSent,
      OPEN,
      KIND.none,
    );
    memory.wake(peer, true);
  }

  /** Take all notifications. True if any member has written a slot since. The slots are to be read after this. */
  takeNotifications(): boolean {
    const { notifications, seenNotifications } = this;
    let isNotified = false;
    for (let member = 0; member < seenNotifications.length; member++) {
      if (notifications[member] === seenNotifications[member]) continue;
      seenNotifications[member] = Atomics.load(notifications, member);
      isNotified = true;
    }
    return isNotified;
  }

  /** Are there notifications to take? */
  get isNotified(): boolean {
    const { notifications, seenNotifications } = this;
    for (let member = 0; member < seenNotifications.length; member++)
      if (notifications[member] !== seenNotifications[member]) return true;
    return false;
  }

  newCounters(): Counters {
    return new Counters(this.layout.sizes);
  }

  participantOf(member: number): number {
    return this.layout.replicaParticipant(this.group, member);
  }

  /** Permit `ballot`'s owner, and no other member, to write the log. */
  promise(ballot: number, incarnation: number): void {
    assert(ballot > this.promised, 'a member promises only higher ballots than before');
    this.promised = ballot;
    this.promisedIncarnation = incarnation;
    this.key = this.nextKey();
    this.kept.promised = ballot;
    this.edges.memory.permit(this.key);
  }

  /** A key that was never made before, not even by an incarnation that ended while making it. */
  private nextKey(): number {
    return keyAfter(this.firstKey, this.kept.keys++);
  }

  /** Has this incarnation made the promise? Then it was also this one that granted the log of that ballot. */
  get hasPromisedAnew(): boolean {
    return this.promisedIncarnation !== NOBODY;
  }

  get promisedMember(): number {
    return memberOf(this.promised);
  }

  /**
   * This member's log and how far it reaches: everything that lies in its memory after the promise, whether or not this
   * member has noticed it yet (H23).
   */
  sealLog(): Extent {
    return this.log.extentOf(this.log.current(), this.near);
  }

  /** An index within 2³¹ of those in the log. */
  get near(): number {
    return Math.max(this.horizon, this.nextToDeliver);
  }

  /** Keep, for a later incarnation, roughly which indices are in the log: a log has only their low words. */
  keepNear(): void {
    this.kept.near = this.near;
  }
}
