/**
 * One replica: leader, follower, candidate or recovering. The host calls `doWork(nowUs)` repeatedly. Each call does a
 * bounded amount of work, never waits, and returns how much work it did.
 *
 * Most steps of leaders and followers are *quick*: there are no notifications, no news in rows, and no other sign that
 * anything but messages is to be dealt with. A quick step of a leader is its data path, without telling the members what is
 * decided and without truncation; one of a follower delivers. What it leaves out is done in the next *full* step, soon
 * (`Timing.quickUs`), or as soon as there is any such sign.
 *
 * Invariant: a replica leads or campaigns only with the ballot that it has promised itself. When it promises another, it
 * becomes a follower in the next step.
 */
import { OPEN, type Outcome } from '../memory/contract.js';
import { assert } from './assert.js';
import { Delivering, decidedIndex, missingBelow } from './data-path/delivery.js';
import { Journaling } from './data-path/journaling.js';
import { Leader } from './data-path/leader.js';
import { OrderedClock } from './data-path/ordered-clock.js';
import { Replication } from './data-path/replication.js';
import type { Application, Edges } from './edges.js';
import { describeBallot, NO_BALLOT } from './leadership/ballot.js';
import { Follower, NEEDS_MORE } from './leadership/follower.js';
import { Grants, Requests } from './leadership/grants.js';
import { JournalSnapshots } from './leadership/journal-snapshots.js';
import { Recovery } from './leadership/recovery.js';
import { Replay } from './leadership/replay.js';
import { Rows } from './leadership/rows.js';
import { indexOf, takeSnapshot } from './leadership/snapshot.js';
import { Snapshots } from './leadership/snapshots.js';
import type { Suspicion } from './leadership/suspicion.js';
import { Takeover } from './leadership/takeover.js';
import { type Identity, Member, type Start } from './member.js';
import { KIND, kindOf, numberOf } from './tags.js';

/** No count of news. */
const UNSEEN = -1;
/** However seldom a leader runs, so many steps between two full ones may be quick, if they find messages. */
const QUICK_STEPS = 3;

export type Role = 'recovering' | 'follower' | 'candidate' | 'leader';

/**
 * Does the log of a member that resumes make the snapshot that it left needless? It does if it still has its beginning,
 * and is decided up to where the snapshot was taken. Then the member delivers it again, which needs no `restore`: the
 * service may have changed, or keep its state in variables without a snapshot of them.
 */
function hasAllOf(left: Int32Array, member: Member): boolean {
  const log = member.log.current();
  if (log === undefined || missingBelow(member, log) > 0) return false;
  return decidedIndex(member, log) >= indexOf(left);
}

export class Replica {
  role: Role;
  /** Its parts may be looked at from outside; only the replica acts on them. */
  readonly member: Member;
  readonly rows: Rows;
  readonly suspicion: Suspicion;
  readonly replication: Replication;
  readonly takeover: Takeover;
  readonly leader: Leader;
  /** Absent if the service wants no ticks. */
  readonly clock: OrderedClock | undefined;
  private readonly grants: Grants;
  private readonly follower: Follower;
  /** Absent without a journal. */
  private readonly journaling: Journaling | undefined;
  private readonly snapshots: Snapshots;
  private readonly delivering: Delivering;
  /** Absent without a journal. */
  private readonly journalSnapshots: JournalSnapshots | undefined;
  /** Present while the role is `recovering`. */
  private recovery: Recovery | undefined;
  /** `rows.news` when a leader, or a follower, looked at the rows last. */
  private seenNews = UNSEEN;
  /** Until then, steps may be quick. */
  private fullDueUs = Number.NEGATIVE_INFINITY;
  /** So many more quick steps, and a full one that is due is put off no longer. */
  private quickStepsLeft = 0;

  constructor(
    identity: Identity,
    edges: Edges,
    private readonly application: Application,
    nowUs: number,
  ) {
    const member = new Member(identity, edges);
    const rows = new Rows(member, nowUs);
    const { journal } = edges;
    this.journalSnapshots = journal && new JournalSnapshots(member, rows, journal, application);
    this.journaling = journal && new Journaling(member, rows, journal, this.journalSnapshots!);
    const delivering = new Delivering(member, application, this.journaling);
    this.member = member;
    this.rows = rows;
    this.suspicion = rows.suspicion;
    this.grants = new Grants(member, rows);
    this.delivering = delivering;
    this.snapshots = new Snapshots(member, rows, delivering, application, this.journalSnapshots);
    this.replication = new Replication(member);
    const requests = new Requests(member);
    this.takeover = new Takeover(
      member,
      rows,
      requests,
      this.replication,
      this.snapshots,
      delivering,
    );
    const { tickEveryUs } = application;
    this.clock = tickEveryUs === undefined ? undefined : new OrderedClock(member, tickEveryUs);
    this.leader = new Leader(member, rows, this.replication, delivering, this.clock);
    this.follower = new Follower(member, rows.suspicion, delivering, this.snapshots);
    // A restarted member takes no part before it knows what it had promised (H21).
    const recovers = member.past === 'lost';
    if (recovers)
      this.recovery = new Recovery(member, rows, this.grants, this.snapshots, delivering);
    this.role = recovers ? 'recovering' : 'follower';
    if (member.past === 'kept') {
      edges.observer.transition('resumed');
      const { left } = identity;
      if (left !== undefined && !hasAllOf(left, member)) this.snapshots.resumeFrom(left);
      const log = member.log.current();
      if (log !== undefined) member.needs = missingBelow(member, log);
      // It does not know yet which members are alive.
      this.follower.backOff(nowUs);
    }
    rows.publish();
  }

  /**
   * Before the first step: begin from what the journal has. The caller gives the entries to the replay, and ends it. That may take
   * long, and observers may look at this replica meanwhile. A member with a journal that does not begin from it lacks the state
   * of its group, and fetches it.
   * @throws if the service can't restore the snapshot
   */
  begin(start: Start): Replay {
    return new Replay(start, this.member, this.rows, this.delivering, this.application);
  }

  /** The state of this member in words, for example to open an era with it. @throws if the service does */
  takeSnapshot(): Int32Array {
    assert(this.member.hasState, 'a member that lacks the state has no snapshot');
    return takeSnapshot(this.member, this.application);
  }

  doWork(nowUs: number): number {
    let work = 0;
    const isDue = nowUs >= this.fullDueUs;
    if (!isDue || this.mayPutOff(nowUs)) {
      work = this.pollCompletions(nowUs);
      const done = this.canBeQuick() ? this.quickStep(nowUs) : NEEDS_MORE;
      if (done !== NEEDS_MORE && (done > 0 || !isDue)) {
        this.quickStepsLeft--;
        return work + done;
      }
    }
    work += this.fullStep(nowUs);
    this.fullDueUs = this.nextFullUs(nowUs);
    this.quickStepsLeft = this.fullDueUs > nowUs ? QUICK_STEPS : 0;
    return work;
  }

  /**
   * May a leader that finds messages leave a full step for later although it is due? Where a host has many replicas, each of them
   * runs so seldom that it would take full steps only.
   */
  private mayPutOff(nowUs: number): boolean {
    return this.role === 'leader' && this.quickStepsLeft > 0 && nowUs < this.rows.dueUs;
  }

  /** With a journal, there is more to do in each step. */
  private nextFullUs(nowUs: number): number {
    const { quickUs } = this.member.edges.timing;
    if (quickUs === 0 || this.journaling !== undefined) return Number.NEGATIVE_INFINITY;
    if (this.role === 'leader') return Math.min(nowUs + quickUs, this.rows.dueUs);
    return this.role === 'follower' ? this.rows.dueUs : Number.NEGATIVE_INFINITY;
  }

  /** Is there no sign that this step has anything to do but to order or to deliver messages? */
  private canBeQuick(): boolean {
    if (this.rows.news !== this.seenNews || this.member.isNotified) return false;
    if (this.snapshots.isServing) return false;
    return this.role === 'leader' ? this.leader.canBeQuick() : this.follower.canBeQuick();
  }

  private quickStep(nowUs: number): number {
    const work = this.role === 'leader' ? this.leadQuickly(nowUs) : this.follower.deliverQuickly();
    if (work === NEEDS_MORE) return NEEDS_MORE;
    if (this.role === 'follower') this.clock?.follow();
    if (this.rows.isFurther && this.rows.publish()) this.wakeLeader();
    return work;
  }

  private leadQuickly(nowUs: number): number {
    const work = this.leader.order(nowUs, true);
    this.pollCompletions(nowUs);
    return work + this.leader.advance(true);
  }

  private fullStep(nowUs: number): number {
    this.rows.beginStep(nowUs);
    const leads = this.role === 'leader';
    this.rows.read(leads && this.leader.isPressed(), leads);
    let work = this.pollCompletions(nowUs);
    if (this.journalSnapshots !== undefined) work += this.journalSnapshots.step(nowUs);
    if (this.recovery !== undefined) {
      this.recover(this.recovery, nowUs);
    } else {
      const isNotified = this.member.takeNotifications();
      if (isNotified) work += this.grants.answerRequests();
      work += this.snapshots.serve(nowUs, isNotified);
      if (this.role === 'leader') work += this.leadOn(nowUs, isNotified);
      else if (this.role === 'candidate') work += this.takeOver(nowUs);
      else work += this.follow(nowUs);
    }
    if (this.journaling !== undefined) work += this.journaling.tell();
    if (this.rows.publish()) this.wakeLeader();
    return work;
  }

  /**
   * Between two steps: the state of this member, for a later incarnation that resumes with its memory (`Identity.left`).
   * Undefined if it has none. Other members may go on writing to the memory after that.
   * @throws if the service does
   */
  leave(): Int32Array | undefined {
    return this.snapshots.leave();
  }

  private recover(recovery: Recovery, nowUs: number): void {
    recovery.step(nowUs);
    if (!this.member.normal) return;
    this.recovery = undefined;
    this.role = 'follower';
  }

  /**
   * When it has to run even if no write has arrived: at once if messages have found no room and there is some now; for a tick; or
   * for what a quick step has left out. Heartbeats do not count.
   */
  get dueUs(): number {
    if (this.role !== 'leader') return Number.POSITIVE_INFINITY;
    if (this.leader.hasMadeRoom) return Number.NEGATIVE_INFINITY;
    const { tickDueUs } = this.leader;
    const owes = this.replication.owesDecided || this.leader.forwarding.owes;
    return owes ? Math.min(this.fullDueUs, tickDueUs) : tickDueUs;
  }

  /** Our progress may make room: at our leader, if its log is full, or at the parent's leader, if its feed is. */
  private wakeLeader(): void {
    const { member } = this;
    if (this.role === 'leader') this.leader.wakeParent();
    else member.edges.memory.wake(member.participantOf(member.promisedMember), true);
  }

  /** Campaign now, whichever member is trusted: by request of the host, or because it is our turn. */
  campaign(nowUs: number): void {
    if (this.role === 'recovering' || !this.member.hasState) return;
    this.rows.ledBallot = NO_BALLOT;
    this.role = 'candidate';
    this.fullDueUs = Number.NEGATIVE_INFINITY;
    this.takeover.begin(nowUs);
  }

  private follow(nowUs: number): number {
    const work = this.follower.followLog(nowUs);
    this.clock?.follow();
    this.seenNews = this.rows.news;
    if (this.follower.shouldCampaign(nowUs)) this.campaign(nowUs);
    return work;
  }

  private takeOver(nowUs: number): number {
    let work = 0;
    let isLeader = this.takeover.step(nowUs);
    // Where memory is shared, what a step has posted is complete already: go on at once.
    for (let done = this.pollCompletions(nowUs); done > 0 && !isLeader; ) {
      work += done;
      isLeader = this.takeover.step(nowUs);
      done = this.pollCompletions(nowUs);
    }
    if (isLeader) {
      this.role = 'leader';
      this.seenNews = UNSEEN;
      this.rows.ledBallot = this.replication.ballot;
      this.leader.lead();
      this.member.edges.observer.transition('led');
      this.member.edges.observer.led(this.replication.ballot);
      return 1;
    }
    if (this.takeover.phase === 'idle') this.becomeFollower(nowUs);
    return work;
  }

  private leadOn(nowUs: number, isNotified: boolean): number {
    const { observer } = this.member.edges;
    // A member that has promised another candidate leads no longer, and counts nothing any more (H12).
    if (this.member.promised !== this.replication.ballot) {
      observer.transition('stepped down');
      this.becomeFollower(nowUs);
      return 1;
    }
    const hasNews = this.rows.news !== this.seenNews;
    this.seenNews = this.rows.news;
    if (hasNews) this.leader.pollAllClients();
    if ((isNotified || hasNews) && this.mustOutbid()) {
      observer.transition('outbid a higher promise');
      this.campaign(nowUs);
      return 1;
    }
    let work = this.takeover.installLate(nowUs, isNotified);
    work += this.leader.order(nowUs, false);
    // Where memory is shared, the writes have completed already.
    this.pollCompletions(nowUs);
    return work + this.leader.finish(nowUs);
  }

  private becomeFollower(nowUs: number): void {
    this.rows.ledBallot = NO_BALLOT;
    this.role = 'follower';
    this.snapshots.abandon();
    this.member.backlog.clear();
    this.follower.backOff(nowUs);
  }

  /**
   * A live member has promised a higher ballot than ours that no member pursues, or our connection to a member broke
   * although it still follows us: only a higher ballot of ours brings the member back (H13). Its row tells its promise,
   * whether we write to it or not (H28).
   */
  private mustOutbid(): boolean {
    const { suspicion, replication } = this;
    const highest = suspicion.highestPromise();
    if (highest > replication.ballot)
      return !suspicion.isPursued(highest) && !suspicion.isFollowed(highest);
    return this.takeover.needsNewBallot();
  }

  private pollCompletions(nowUs: number): number {
    const { memory } = this.member.edges;
    let count = 0;
    while (memory.poll()) {
      const { peer, tag, guard, outcome } = memory.completion;
      const ok = outcome === 'ok';
      const value = numberOf(tag);
      const other = peer - this.member.participantOf(0);
      const kind = kindOf(tag);
      // Rows are read all the time. That does not count as work.
      if (kind !== KIND.row) count++;
      switch (kind) {
        case KIND.row:
          this.rows.onRead(value, ok, nowUs);
          break;
        case KIND.none:
          // Of the other writes, only those into a log matter, and only if they failed.
          if (guard === OPEN) break;
          if (!ok && this.replication.onFailed(other, guard)) this.onMemberLost(other, outcome);
          break;
        case KIND.entries:
        case KIND.marker:
          if (!this.replication.onWritten(other, kind, value, guard, ok))
            this.onMemberLost(other, outcome);
          break;
        case KIND.feed:
          if (!ok) this.leader.onFeedWriteFailed(value, peer);
          break;
        case KIND.recheck:
          this.takeover.onRechecked(other, value, ok);
          break;
        case KIND.adopt:
        case KIND.adoptLast:
          this.takeover.onAdoptRead(value, ok, kind === KIND.adoptLast);
          break;
      }
    }
    return count;
  }

  private onMemberLost(other: number, outcome: Outcome): void {
    const isRefused = outcome === 'refused';
    this.member.edges.observer.transition(isRefused ? 'write refused' : 'write lost');
    this.rows.news++;
    this.takeover.onMemberLost(other, isRefused);
  }

  describe(): string {
    const { member, replication } = this;
    const end =
      this.role === 'leader' ? ` end=${replication.endIndex} decided=${replication.decided}` : '';
    const phase = this.role === 'candidate' ? `/${this.takeover.phase}` : '';
    return `${member.group}/${member.index} ${this.role}${phase} promised=${describeBallot(member.promised)} delivered=${member.nextToDeliver}${end}`;
  }
}
