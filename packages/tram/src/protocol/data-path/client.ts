/**
 * A client (paper Algorithm 1): it writes its message into every replica of the entry group, the lowest group above all
 * destinations, and waits until each destination group has replied. The host calls `doWork` repeatedly.
 *
 * A call slot names the place where replies to a message appear. It is free again once all destinations have replied,
 * and so is the message's place in the ring (outbox.ts). If no reply comes for a while, the client posts the unanswered
 * messages again, the same bytes to the same places, and nudges the destinations to reply again. A restarted client
 * takes a new session.
 *
 * A destination may defer its reply. It then sends a notice, which frees the place in the ring, and later the reply. Until
 * then the call *waits*. If the caller gives up a call that waits, the client sends a cancel to the same destinations in
 * the same call slot. The replies to the cancel free the slot.
 *
 * Invariant: nothing is overwritten at a replica before all destinations have replied or deferred their reply.
 */
import { type Memory, OPEN } from '../../memory/contract.js';
import {
  copyWords,
  framedWords,
  HEAD_WORDS,
  postRange,
  slotAt,
  type Window,
  wordsOf,
} from '../../memory/record.js';
import { assert } from '../assert.js';
import type { Edges } from '../edges.js';
import { INBOX_CONTROL, OUTCOME, REPLY, seriesOf } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from '../leadership/row.js';
import { contains } from '../overlay.js';
import { KIND, kindOf, numberOf, tagOf } from '../tags.js';
import { type Call, CallQueue, newCall, Outbox } from './outbox.js';

/** @internal */
export type { Call } from './outbox.js';

export type Offer = 'accepted' | 'backPressured';

/** The message was delivered. Its reply may have exceeded `replyBytesMax`, or the service may have failed. */
export type ReplyOutcome = 'ok' | 'tooLarge' | 'failed';

/** @internal Told of replies. */
export interface CallListener {
  /**
   * @param reply  valid during the call only. If the outcome is `failed`: the message of what the service threw, cut to
   *   `replyBytesMax`. If it is `tooLarge`: empty
   * @param bytes  how large the reply is, or was
   */
  replied(call: Call, group: number, reply: Uint8Array, outcome: ReplyOutcome, bytes: number): void;
  /** All destinations have replied. */
  answered(call: Call): void;
  /** Needed only if calls are given up: a call that was given up while it waited is over. Some replies may be missing. */
  cancelled?(call: Call): void;
}

/** The time between two resends doubles at most this often. */
const RESEND_DOUBLINGS_MAX = 4;
/** The time between two nudges of calls that wait doubles at most this often. Calls may wait for long. */
const NUDGE_DOUBLINGS_MAX = 6;
/** No member. */
const UNKNOWN = -1;
const NO_BYTES = new Uint8Array(0);

/** @internal */
export class Client {
  /** The call that the last accepted offer opened. A field, because `offer` must not allocate a result. */
  lastCall!: Call;
  /** How many calls are open. */
  outstanding = 0;
  /** Per group, the messages whose entry group it is; opened when they are first needed. */
  private readonly outboxes: (Outbox | undefined)[];
  /** The groups to which there is something to post, each of them once: the first `unsentCount` elements. */
  private readonly unsent: Int32Array;
  private unsentCount = 0;
  /** No message is to be posted again before this time. */
  private resendsDueUs = Number.NEGATIVE_INFINITY;
  /** Used in turn, so that replies to consecutive messages lie side by side and are written together. */
  private readonly free: CallQueue;
  /** The calls that wait: those with destinations that have deferred their reply. In no particular order. */
  private readonly waiting: Call[] = [];
  /** When the destinations of waiting calls were last nudged, or the first call began to wait; and how many nudges there were since. */
  private nudgedUs = 0;
  private nudgesWhileWaiting = 0;
  private readonly isStrict: boolean;
  /** When replies were last collected in any order. */
  private collectedUs: number;
  /** Per group, the entry groups of messages that may be addressed to it: the group itself and those above it. */
  private readonly entryGroups: readonly (readonly number[])[];
  /** The set of all groups. */
  private readonly groupsLow: number;
  private readonly groupsHigh: number;
  private readonly memory: Memory;
  private readonly replicas: number;
  /** Where our inbox and its notification word lie at a replica. */
  private readonly inboxRing: number;
  private readonly notification: number;
  /** Per replica, its notifications to us, in our own region, and the last ones we took. */
  private readonly notifications: Int32Array;
  private readonly seenNotifications: Int32Array;
  /** Per group, the member that leads it as far as we know, or UNKNOWN: only the leader need be woken. */
  private readonly leaders: Int8Array;
  private readonly members: Peer[] = [];
  private readonly control = new Int32Array(INBOX_CONTROL.words);
  private readonly replies: Window;
  /** The reply that was taken last, and its payload. */
  private readonly reply: Window;
  private readonly replyPayload: Uint8Array;

  constructor(
    private readonly edges: Edges,
    readonly slot: number,
    /** Above every earlier session of this slot. */
    readonly session: number,
    private readonly listener: CallListener,
    private nowUs: number,
  ) {
    const { layout, memory } = edges;
    const { callsMax, groups, replicas } = layout.sizes;
    this.outboxes = new Array<Outbox | undefined>(groups).fill(undefined);
    this.unsent = new Int32Array(groups);
    this.entryGroups = edges.overlay.parents.map((_, group) => edges.overlay.pathTo(group));
    this.groupsLow = groups >= 32 ? -1 : (1 << groups) - 1;
    this.groupsHigh = groups <= 32 ? 0 : groups === 64 ? -1 : (1 << (groups - 32)) - 1;
    this.isStrict = edges.order === 'strict';
    this.collectedUs = nowUs;
    this.memory = memory;
    this.replicas = replicas;
    this.inboxRing = layout.inboxRing(slot);
    this.notification = layout.clientNotification(slot);
    const first = layout.replyNotification(0);
    this.notifications = memory.own.subarray(first, layout.replyNotification(groups * replicas));
    this.seenNotifications = new Int32Array(groups * replicas);
    this.leaders = new Int8Array(groups).fill(UNKNOWN);
    for (let replica = 0; replica < groups * replicas; replica++) {
      this.members.push(new Peer(replica, layout.sizes.firstIndex));
    }
    this.replies = slotAt(memory.own, 0);
    this.reply = slotAt(new Int32Array(layout.replySlotWords), 0);
    const { buffer } = this.reply.words;
    this.replyPayload = new Uint8Array(buffer, (HEAD_WORDS + REPLY.payload) * 4);
    this.free = new CallQueue(callsMax);
    for (let call = 0; call < callsMax; call++) this.free.add(newCall(call));
  }

  /**
   * Take a message for all groups in the set. It is posted by the next `doWork` or `flush`; its call is `lastCall`.
   * Back pressure means that nothing was taken: try again after some replies.
   */
  offer(destinationsLow: number, destinationsHigh: number, payload: Uint8Array): Offer {
    return this.take(destinationsLow, destinationsHigh, payload, false);
  }

  /** Take a mark, for all groups. Like `offer`. */
  offerMark(): Offer {
    return this.take(this.groupsLow, this.groupsHigh, NO_BYTES, true);
  }

  private take(
    destinationsLow: number,
    destinationsHigh: number,
    payload: Uint8Array,
    isMark: boolean,
  ): Offer {
    const { overlay, layout, observer } = this.edges;
    // The caller has validated both: anything else would overwrite memory that is not ours.
    const outside = (destinationsLow & ~this.groupsLow) | (destinationsHigh & ~this.groupsHigh);
    assert(outside === 0 && (destinationsLow | destinationsHigh) !== 0, 'destinations are groups');
    assert(payload.length <= layout.sizes.payloadBytesMax, 'a payload fits');
    const entryGroup = overlay.entryGroup(destinationsLow, destinationsHigh);
    const outbox = this.openOutbox(entryGroup);
    if (this.free.length === 0 || !outbox.hasRoom(payload.length)) {
      observer.transition('client back-pressured');
      return 'backPressured';
    }
    const call = this.free.takeFirst();
    call.entryGroup = entryGroup;
    call.destinationsLow = destinationsLow;
    call.destinationsHigh = destinationsHigh;
    call.isOpen = true;
    call.isGivenUp = false;
    call.isCancel = false;
    call.isMark = isMark;
    this.noteUnsent(entryGroup, outbox);
    outbox.add(call, payload, this.nowUs);
    this.outstanding++;
    this.lastCall = call;
    return 'accepted';
  }

  /** Is called before something is added to an outbox. If `flush` has posted all that is there, it has not noted the group yet. */
  private noteUnsent(group: number, outbox: Outbox): void {
    if (outbox.sentPosition === outbox.endPosition) this.unsent[this.unsentCount++] = group;
  }

  private openOutbox(group: number): Outbox {
    let outbox = this.outboxes[group];
    if (outbox === undefined) {
      outbox = new Outbox(this.edges, this.slot, this.session);
      this.outboxes[group] = outbox;
    }
    return outbox;
  }

  /**
   * The caller no longer waits for the replies to this open call. If its destinations have deferred them, or do so later,
   * it is cancelled. It keeps its slot until it is answered or cancelled.
   */
  giveUp(call: Call): void {
    call.isGivenUp = true;
  }

  /** Give up all calls that wait. */
  giveUpWaiting(): void {
    for (const call of this.waiting) this.giveUp(call);
  }

  /** Post what was offered, collect replies, resend on silence. Returns how much was done. */
  doWork(nowUs: number): number {
    this.nowUs = nowUs;
    this.pollCompletions();
    let work = this.flush();
    work += this.pollReplies();
    // Before anything else is offered: cancels must find room, however much else there is to send.
    if (this.waiting.length > 0) this.cancelGivenUp();
    if (this.isStrict && this.outstanding > 0) work += this.collectOvertaking();
    work += this.resendOverdue();
    if (this.waiting.length > 0) work += this.nudgeWaiting();
    return work;
  }

  /** Offer the cancels of calls that wait and were given up, as far as there is room. */
  private cancelGivenUp(): void {
    const { waiting } = this;
    for (let i = waiting.length - 1; i >= 0; i--) {
      const call = waiting[i];
      const outbox = this.outboxes[call.entryGroup]!;
      if (!call.isGivenUp || call.isInOutbox || !outbox.hasRoom(0)) continue;
      this.stopWaiting(call);
      this.noteUnsent(call.entryGroup, outbox);
      outbox.addCancel(call, this.nowUs);
    }
  }

  /** Of completions, only reads of rows matter. Whether a write arrived shows in the replies. */
  private pollCompletions(): void {
    const { memory } = this;
    while (memory.poll()) {
      const { tag, outcome } = memory.completion;
      if (kindOf(tag) === KIND.row && outcome === 'ok') this.learnLeader(numberOf(tag));
    }
  }

  private learnLeader(replica: number): void {
    const { replicas } = this;
    const peer = this.members[replica];
    if (!peer.accept() || peer.ledBallot === NO_BALLOT) return;
    const group = Math.floor(replica / replicas);
    const known = this.leaders[group];
    const isLater =
      known === UNKNOWN || peer.ledBallot > this.members[group * replicas + known].ledBallot;
    if (isLater) this.leaders[group] = replica % replicas;
  }

  /** Post new messages to every replica of their entry group: one write each, two where the ring wraps. */
  flush(): number {
    const { unsentCount } = this;
    for (let i = 0; i < unsentCount; i++) {
      const group = this.unsent[i];
      const outbox = this.outboxes[group]!;
      if (!outbox.isOpen) this.writeControl(group, outbox);
      outbox.isOpen = true;
      this.post(group, outbox, outbox.sentPosition);
      outbox.sentPosition = outbox.endPosition;
    }
    this.unsentCount = 0;
    return unsentCount;
  }

  /** Announce our session, and how often we have nudged, to every replica of a group. */
  private writeControl(group: number, outbox: Outbox): void {
    const { layout, memory } = this.edges;
    this.control[INBOX_CONTROL.session] = this.session;
    this.control[INBOX_CONTROL.nudge] = outbox.nudges;
    const to = layout.inboxControl(this.slot);
    for (let member = 0; member < layout.sizes.replicas; member++) {
      const peer = layout.replicaParticipant(group, member);
      memory.write(peer, to, this.control, 0, INBOX_CONTROL.words, OPEN, KIND.none);
    }
  }

  /** Post the messages from `start` on to every replica of a group, to its leader first. */
  private post(group: number, outbox: Outbox, start: number): void {
    const { memory, replicas, inboxRing } = this;
    const { mirror, endPosition } = outbox;
    this.forgetEndedLeader(group);
    const leader = this.leaders[group];
    for (let i = 0, member = Math.max(0, leader); i < replicas; i++) {
      const peer = group * replicas + member;
      postRange(memory, peer, inboxRing, mirror, start, endPosition, OPEN, KIND.none, KIND.none);
      // A new leader looks into every inbox, and so does every leader now and then: only the leader is notified.
      if (member === leader) this.notify(peer, ++outbox.notifications);
      member = member + 1 < replicas ? member + 1 : 0;
    }
    if (leader === UNKNOWN) this.notifyAll(group, outbox);
  }

  private forgetEndedLeader(group: number): void {
    const leader = this.leaders[group];
    if (leader === UNKNOWN || !this.memory.hasEnded(group * this.replicas + leader)) return;
    this.leaders[group] = UNKNOWN;
  }

  private notify(replica: number, notifications: number): void {
    this.memory.writeWord(replica, this.notification, notifications, OPEN, KIND.none);
    this.memory.wake(replica, true);
  }

  /** Notify every replica of a group, and ask who leads it. */
  private notifyAll(group: number, outbox: Outbox): void {
    const { memory, replicas } = this;
    const { row } = this.edges.layout;
    const notifications = ++outbox.notifications;
    for (let member = 0; member < replicas; member++) {
      const peer = group * replicas + member;
      this.notify(peer, notifications);
      const { words } = this.members[peer].buffer;
      memory.read(peer, row, ROW_RECORD_WORDS, words, 0, tagOf(KIND.row, peer));
    }
  }

  /** Collect the replies of every replica that has notified us. */
  private pollReplies(): number {
    const { replicas, notifications, seenNotifications } = this;
    let work = 0;
    for (let replica = 0; replica < notifications.length; replica++) {
      if (notifications[replica] === seenNotifications[replica]) continue;
      seenNotifications[replica] = Atomics.load(notifications, replica);
      this.leaders[Math.floor(replica / replicas)] = replica % replicas;
      work += this.collectFrom(replica);
    }
    return work;
  }

  /**
   * Under strict order, a reply may overtake one to an earlier message that was deferred: that one waits until the gate
   * has passed the entry that produced it. So look at all calls now and then.
   */
  private collectOvertaking(): number {
    if (this.nowUs - this.collectedUs < this.edges.timing.resendAfterUs) return 0;
    this.collectedUs = this.nowUs;
    return this.collectAll();
  }

  /** Collect all replies that have landed, whichever replica has notified us, and in whichever order they came. */
  private collectAll(): number {
    let found = 0;
    for (let replica = 0; replica < this.notifications.length; replica++) {
      found += this.collectFrom(replica, true);
    }
    return found;
  }

  private collectFrom(replica: number, inAnyOrder = false): number {
    const group = Math.floor(replica / this.replicas);
    let found = 0;
    for (const entryGroup of this.entryGroups[group]) {
      const outbox = this.outboxes[entryGroup];
      if (outbox !== undefined) found += this.collectFor(outbox, replica, group, inAnyOrder);
    }
    if (this.waiting.length > 0) found += this.collectDeferred(replica, group);
    return found;
  }

  /**
   * A group replies to the messages of one outbox, or defers, in their order: usually, after one without either, none has
   * one.
   */
  private collectFor(outbox: Outbox, replica: number, group: number, inAnyOrder: boolean): number {
    const { calls } = outbox;
    let found = 0;
    for (let i = 0; i < calls.length; i++) {
      const call = calls.at(i);
      if (!contains(call.unheardLow, call.unheardHigh, group)) continue;
      if (this.takeReply(call, replica, group)) found++;
      else if (!inAnyOrder) break;
    }
    if (found > 0) {
      outbox.lastProgressUs = this.nowUs;
      outbox.resends = 0;
    }
    outbox.releaseHeard(this.free);
    return found;
  }

  /** The replies that a group has deferred come in any order. */
  private collectDeferred(replica: number, group: number): number {
    const { waiting, replies } = this;
    let found = 0;
    for (let i = waiting.length - 1; i >= 0; i--) {
      const call = waiting[i];
      if (!contains(call.pendingLow, call.pendingHigh, group)) continue;
      if (contains(call.unheardLow, call.unheardHigh, group)) continue;
      // Usually the notice is still there.
      const at = this.edges.layout.reply(replica, call.slot);
      if (replies.words[at + HEAD_WORDS + REPLY.outcome] === OUTCOME.deferred) continue;
      if (this.takeReply(call, replica, group)) found++;
    }
    return found;
  }

  /** Take a replica's reply to a call, or the notice that it is deferred, if either has landed. */
  private takeReply(call: Call, replica: number, group: number): boolean {
    const { layout } = this.edges;
    const { replies, reply, session } = this;
    const at = layout.reply(replica, call.slot);
    const words = framedWords(replies, at, session, call.number, layout.replySlotWords);
    if (words === 0) return false;
    // The replica may write an older reply that it keeps into the slot. What was copied must be what was sealed.
    copyWords(replies, at, reply, 0, words);
    if (wordsOf(reply, 0, session, call.number, words) !== words) return false;
    const series = seriesOf(call.entryGroup, call.number);
    if (reply.words[HEAD_WORDS + REPLY.series] !== series) return false;
    if (group < 32) call.unheardLow &= ~(1 << group);
    else call.unheardHigh &= ~(1 << (group - 32));
    const outcome = reply.words[HEAD_WORDS + REPLY.outcome];
    if (outcome === OUTCOME.deferred) this.noteDeferred(call);
    else this.noteReply(call, group, outcome, reply.words[HEAD_WORDS + REPLY.bytes]);
    return true;
  }

  private noteReply(call: Call, group: number, code: number, bytes: number): void {
    if (group < 32) call.pendingLow &= ~(1 << group);
    else call.pendingHigh &= ~(1 << (group - 32));
    const outcome = outcomeOf(code);
    const hasPayload = bytes > 0 && outcome !== 'tooLarge';
    const payload = hasPayload ? this.replyPayload.subarray(0, bytes) : NO_BYTES;
    if (!call.isCancel) this.listener.replied(call, group, payload, outcome, bytes);
    if ((call.pendingLow | call.pendingHigh) === 0) this.close(call);
  }

  private noteDeferred(call: Call): void {
    const { waiting } = this;
    if (waiting.length === 0) {
      this.nudgedUs = this.nowUs;
      this.nudgesWhileWaiting = 0;
    }
    if (!waiting.includes(call)) waiting.push(call);
  }

  private stopWaiting(call: Call): void {
    const { waiting } = this;
    const place = waiting.indexOf(call);
    if (place < 0) return;
    // Those behind this place have had their turn in any loop that leads here.
    waiting[place] = waiting[waiting.length - 1];
    waiting.pop();
  }

  private close(call: Call): void {
    assert(call.isOpen, 'a call is answered once');
    call.isOpen = false;
    this.outstanding--;
    if (this.waiting.length > 0) this.stopWaiting(call);
    if (call.isCancel) this.listener.cancelled?.(call);
    else this.listener.answered(call);
    // A call in an outbox is free once its place in the ring is.
    if (!call.isInOutbox) this.free.add(call);
  }

  /** Resend where no reply has come for too long, ever more patiently, so that replies can arrive before that. */
  private resendOverdue(): number {
    const { nowUs } = this;
    if (nowUs < this.resendsDueUs) return 0;
    const { resendAfterUs } = this.edges.timing;
    // A message that is offered later is not due before that, nor is an outbox that makes progress later.
    this.resendsDueUs = nowUs + resendAfterUs;
    let work = 0;
    for (let group = 0; group < this.outboxes.length; group++) {
      const outbox = this.outboxes[group];
      if (outbox === undefined || outbox.calls.length === 0) continue;
      const dueUs = outbox.lastProgressUs + resendAfterUs * (1 << outbox.resends);
      if (nowUs < dueUs) {
        this.resendsDueUs = Math.min(this.resendsDueUs, dueUs);
        continue;
      }
      outbox.lastProgressUs = nowUs;
      outbox.resends = Math.min(outbox.resends + 1, RESEND_DOUBLINGS_MAX);
      this.resend(group, outbox);
      work++;
    }
    return work;
  }

  /** Post all unanswered messages again, and nudge the destinations that owe a reply. */
  private resend(entryGroup: number, outbox: Outbox): void {
    this.edges.observer.transition('client resent');
    let low = 0;
    let high = 0;
    for (let i = 0; i < outbox.calls.length; i++) {
      low |= outbox.calls.at(i).unheardLow;
      high |= outbox.calls.at(i).unheardHigh;
    }
    this.writeControl(entryGroup, outbox);
    this.leaders[entryGroup] = UNKNOWN;
    this.post(entryGroup, outbox, outbox.oldestPosition);
    this.nudgeAll(low, high);
  }

  /** A deferred reply may have been lost: ask for it again, at growing intervals. */
  private nudgeWaiting(): number {
    const patienceUs = this.edges.timing.resendAfterUs * (1 << this.nudgesWhileWaiting);
    if (this.nowUs - this.nudgedUs < patienceUs) return 0;
    this.nudgedUs = this.nowUs;
    this.nudgesWhileWaiting = Math.min(this.nudgesWhileWaiting + 1, NUDGE_DOUBLINGS_MAX);
    this.edges.observer.transition('client nudged');
    let low = 0;
    let high = 0;
    for (const call of this.waiting) {
      low |= call.pendingLow & ~call.unheardLow;
      high |= call.pendingHigh & ~call.unheardHigh;
    }
    this.nudgeAll(low, high);
    return 1;
  }

  private nudgeAll(low: number, high: number): void {
    for (let group = 0; group < this.outboxes.length; group++) {
      if (contains(low, high, group)) this.nudge(group);
    }
    // A notification may be lost with its replica; the reply beside it counts all the same.
    this.collectAll();
  }

  /** Ask a group to send its replies again. */
  private nudge(group: number): void {
    const outbox = this.openOutbox(group);
    outbox.nudges++;
    outbox.isOpen = true;
    this.writeControl(group, outbox);
    this.leaders[group] = UNKNOWN;
    this.notifyAll(group, outbox);
  }
}

function outcomeOf(outcome: number): ReplyOutcome {
  if (outcome === OUTCOME.ok) return 'ok';
  return outcome === OUTCOME.tooLarge ? 'tooLarge' : 'failed';
}
