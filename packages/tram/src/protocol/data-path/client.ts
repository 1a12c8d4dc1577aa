/**
 * A client (paper Algorithm 1): it writes its message into every replica of the entry group, the
 * lowest group above all destinations, and waits until each destination group has replied.
 *
 * Messages to one entry group are numbered and lie in a ring that looks the same at all its replicas;
 * `mirror` is the client's own copy of it. A call slot names the place where replies to a message
 * appear; it is free again once all destinations have replied, and so is the ring space. On silence
 * the client writes what is unanswered again, same bytes at the same places, and nudges the
 * destinations to reply again. A restarted client takes a new session.
 *
 * Invariant: nothing is overwritten at a replica before all destinations have acknowledged it.
 */
import { type Memory, OPEN } from '../../memory/contract.js';
import {
  FRAME_WORDS,
  HEAD_WORDS,
  packBytes,
  postRange,
  ringAt,
  seal,
  slotAt,
  type Window,
  word,
  wordsOf,
} from '../../memory/record.js';
import { assert } from '../assert.js';
import type { Edges } from '../edges.js';
import { INBOX_CONTROL, MESSAGE, REPLY, TOO_LARGE } from '../layout.js';
import { NO_BALLOT } from '../leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from '../leadership/row.js';
import { contains } from '../overlay.js';
import { KIND, kindOf, numberOf, tagOf } from '../tags.js';

/** A message that was offered and is not yet answered by all its destinations. */
export interface Call {
  readonly slot: number;
  entry: number;
  /** Of this session and entry group: with the session, the message's name. */
  number: number;
  destinationsLow: number;
  destinationsHigh: number;
  /** Destinations that have not replied yet. */
  pendingLow: number;
  pendingHigh: number;
  position: number;
  words: number;
  isOpen: boolean;
}

/** The message was delivered; its reply may have exceeded `replyBytesMax`, or the service failed. */
export type ReplyOutcome = 'ok' | 'tooLarge' | 'failed';

/** Told of replies; `reply` is valid during the call only, and empty if the outcome is not `ok`. */
export interface CallListener {
  replied(call: Call, group: number, reply: Uint8Array, outcome: ReplyOutcome): void;
  answered(call: Call): void;
}

const RESEND_DOUBLINGS_MAX = 4;
const UNKNOWN = -1;
const NO_BYTES = new Uint8Array(0);

export type Offer = 'accepted' | 'backPressured';

/** The client's side of its inboxes at one entry group. */
class Outbox {
  readonly mirror: Window;
  nextNumber: number;
  oldestPosition: number;
  endPosition: number;
  /** Up to here everything was posted; `isOpen` once the session was announced there. */
  sentPosition: number;
  isOpen = false;
  nudges = 0;
  /** How often its bell was rung. Every session counts from elsewhere, so that its first ring is a change. */
  rings: number;
  lastProgressUs = 0;
  /** Since the last reply: ever more patient, so that replies arrive before they are sent again. */
  resends = 0;
  /** Calls in ring order, oldest first; answered ones wait until those before them are. */
  readonly calls: CallQueue;

  constructor({ memory, layout }: Edges, session: number) {
    const { origin, salt } = layout.sizes;
    const { inboxWords } = layout;
    this.mirror = ringAt(memory.scratch(inboxWords), 0, inboxWords, salt);
    this.nextNumber = origin;
    this.oldestPosition = origin | 0;
    this.endPosition = origin | 0;
    this.sentPosition = origin | 0;
    this.rings = session << 16;
    this.calls = new CallQueue(layout.sizes.callsMax);
  }
}

/** First in, first out, allocated once. */
class CallQueue {
  private readonly places: Call[];
  private first = 0;
  length = 0;

  constructor(capacity: number) {
    this.places = new Array<Call>(capacity);
  }

  at(i: number): Call {
    const place = this.first + i;
    const { places } = this;
    return places[place < places.length ? place : place - places.length];
  }

  add(call: Call): void {
    const { places } = this;
    const place = this.first + this.length++;
    places[place < places.length ? place : place - places.length] = call;
  }

  dropFirst(): void {
    this.first = this.first + 1 < this.places.length ? this.first + 1 : 0;
    this.length--;
  }
}

export class Client {
  /** The call that the last accepted offer opened. */
  lastCall!: Call;
  outstanding = 0;
  private readonly outboxes: (Outbox | undefined)[];
  /** Used in turn: replies to messages that follow one another lie side by side, and are written together. */
  private readonly free: CallQueue;
  /** Per group, where messages to it may have entered the tree: there, or above. */
  private readonly entriesAbove: readonly (readonly number[])[];
  /** The sets of groups that there are. */
  private readonly groupsLow: number;
  private readonly groupsHigh: number;
  private readonly memory: Memory;
  private readonly replicas: number;
  /** Where our inbox and its bell lie at a replica. */
  private readonly inboxRing: number;
  private readonly bell: number;
  private readonly doorbells: Int32Array;
  private readonly seenDoorbells: Int32Array;
  /** Per group, the member that leads it as far as we know: it alone need be woken. */
  private readonly leaders: Int8Array;
  private readonly members: Peer[] = [];
  private readonly control = new Int32Array(INBOX_CONTROL.words);
  private readonly replies: Window;
  private readonly replyBytes: Uint8Array;

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
    this.entriesAbove = edges.overlay.parents.map((_, group) => edges.overlay.pathTo(group));
    this.groupsLow = groups >= 32 ? -1 : (1 << groups) - 1;
    this.groupsHigh = groups <= 32 ? 0 : groups === 64 ? -1 : (1 << (groups - 32)) - 1;
    this.memory = memory;
    this.replicas = replicas;
    this.inboxRing = layout.inboxRing(slot);
    this.bell = layout.bell(slot);
    this.doorbells = memory.own.subarray(layout.doorbell(0), layout.doorbell(groups * replicas));
    this.seenDoorbells = new Int32Array(groups * replicas);
    this.leaders = new Int8Array(groups).fill(UNKNOWN);
    for (let replica = 0; replica < groups * replicas; replica++) {
      this.members.push(new Peer(replica, layout.sizes.origin));
    }
    this.replies = slotAt(memory.own, 0);
    this.replyBytes = new Uint8Array(memory.own.buffer, memory.own.byteOffset);
    this.free = new CallQueue(callsMax);
    for (let slotNumber = 0; slotNumber < callsMax; slotNumber++) {
      this.free.add(newCall(slotNumber));
    }
  }

  /**
   * Take a message for all groups in the set. It is written with the next `doWork` (or `flush`); its
   * call is `lastCall`. Back pressure means: nothing was taken, try again after some replies.
   */
  offer(destinationsLow: number, destinationsHigh: number, payload: Uint8Array): Offer {
    this.check(destinationsLow, destinationsHigh, payload);
    const { overlay, layout, observer } = this.edges;
    const entry = overlay.entryGroup(destinationsLow, destinationsHigh);
    const outbox = this.outbox(entry);
    const bodyWords = MESSAGE.payload + ((payload.length + 3) >> 2);
    const used = (outbox.endPosition - outbox.oldestPosition) | 0;
    if (this.free.length === 0 || used + bodyWords + FRAME_WORDS > layout.inboxWords) {
      observer.transition('client back-pressured');
      return 'backPressured';
    }
    const call = this.free.at(0);
    this.free.dropFirst();
    call.entry = entry;
    call.number = outbox.nextNumber++;
    call.destinationsLow = call.pendingLow = destinationsLow;
    call.destinationsHigh = call.pendingHigh = destinationsHigh;
    call.position = outbox.endPosition;
    call.isOpen = true;
    call.words = this.encode(outbox, call, payload, bodyWords);
    outbox.endPosition = (outbox.endPosition + call.words) | 0;
    if (outbox.calls.length === 0) outbox.lastProgressUs = this.nowUs;
    outbox.calls.add(call);
    this.outstanding++;
    this.lastCall = call;
    return 'accepted';
  }

  private check(low: number, high: number, payload: Uint8Array): void {
    const { sizes } = this.edges.layout;
    if ((low | high) === 0) throw new RangeError('a message needs at least one destination group');
    if ((low & ~this.groupsLow) | (high & ~this.groupsHigh)) {
      let group = sizes.groups;
      while (!contains(low, high, group)) group++;
      throw new RangeError(
        `unknown destination group ${group}: there are groups 0 to ${sizes.groups - 1}`,
      );
    }
    if (payload.length > sizes.payloadBytesMax) {
      throw new RangeError(
        `a payload of ${payload.length} bytes exceeds payloadBytesMax (${sizes.payloadBytesMax})`,
      );
    }
  }

  private encode(outbox: Outbox, call: Call, payload: Uint8Array, bodyWords: number): number {
    const { mirror } = outbox;
    const { words, mask } = mirror;
    const body = call.position + HEAD_WORDS;
    words[(body + MESSAGE.client) & mask] = this.slot | (call.slot << 16);
    words[(body + MESSAGE.session) & mask] = this.session;
    words[(body + MESSAGE.number) & mask] = call.number | 0;
    words[(body + MESSAGE.entry) & mask] = call.entry;
    words[(body + MESSAGE.destinationsLow) & mask] = call.destinationsLow;
    words[(body + MESSAGE.destinationsHigh) & mask] = call.destinationsHigh;
    words[(body + MESSAGE.payloadBytes) & mask] = payload.length;
    packBytes(payload, mirror, body + MESSAGE.payload);
    return seal(mirror, call.position, bodyWords, this.session, call.number);
  }

  /** Post what was offered, collect replies, resend on silence. Returns how much was done. */
  doWork(nowUs: number): number {
    const { memory } = this;
    this.nowUs = nowUs;
    while (memory.poll()) {
      // Nothing depends on whether a write arrived: silence does.
      const { tag, outcome } = memory.completion;
      if (kindOf(tag) === KIND.row && outcome === 'ok') this.learnLeader(numberOf(tag));
    }
    let work = this.flush();
    work += this.pollReplies();
    for (let entry = 0; entry < this.outboxes.length; entry++) {
      const outbox = this.outboxes[entry];
      if (outbox === undefined || outbox.calls.length === 0) continue;
      const patienceUs = this.edges.timing.resendAfterUs * (1 << outbox.resends);
      if (nowUs - outbox.lastProgressUs < patienceUs) continue;
      outbox.lastProgressUs = nowUs;
      outbox.resends = Math.min(outbox.resends + 1, RESEND_DOUBLINGS_MAX);
      this.resend(entry, outbox);
      work++;
    }
    return work;
  }

  /** Write new messages into every replica of their entry group: one write each, two at a wrap. */
  flush(): number {
    let work = 0;
    for (let entry = 0; entry < this.outboxes.length; entry++) {
      const outbox = this.outboxes[entry];
      if (outbox === undefined || outbox.sentPosition === outbox.endPosition) continue;
      if (!outbox.isOpen) this.writeControl(entry, outbox);
      outbox.isOpen = true;
      this.post(entry, outbox, outbox.sentPosition);
      outbox.sentPosition = outbox.endPosition;
      work++;
    }
    return work;
  }

  /** Write the messages from `from` on into every replica of a group, to its leader first. */
  private post(group: number, outbox: Outbox, from: number): void {
    const { memory, replicas, inboxRing } = this;
    const { mirror, endPosition } = outbox;
    const leader = this.leaderOf(group);
    for (let i = 0, member = Math.max(0, leader); i < replicas; i++) {
      const peer = group * replicas + member;
      postRange(memory, peer, inboxRing, mirror, from, endPosition, OPEN, KIND.none, KIND.none);
      // Whoever begins to lead looks everywhere, and now and then again: the others need no bell.
      if (member === leader) this.ring(peer, ++outbox.rings);
      member = member + 1 < replicas ? member + 1 : 0;
    }
    if (leader === UNKNOWN) this.ringAll(group, outbox);
  }

  /** As far as we know, and unless it is known to have ended. */
  private leaderOf(group: number): number {
    const leader = this.leaders[group];
    if (leader === UNKNOWN || !this.memory.hasEnded(group * this.replicas + leader)) return leader;
    this.leaders[group] = UNKNOWN;
    return UNKNOWN;
  }

  /** There is something in our inbox at a replica. */
  private ring(replica: number, rings: number): void {
    this.memory.writeWord(replica, this.bell, rings, OPEN, KIND.none);
    this.memory.wake(replica, true);
  }

  /** Ring at every replica of a group, and ask who leads. */
  private ringAll(group: number, outbox: Outbox): void {
    const { memory, replicas } = this;
    const rings = ++outbox.rings;
    for (let member = 0; member < replicas; member++) {
      const peer = group * replicas + member;
      this.ring(peer, rings);
      const { words } = this.members[peer].buffer;
      const { row } = this.edges.layout;
      memory.read(peer, row, ROW_RECORD_WORDS, words, 0, tagOf(KIND.row, peer));
    }
  }

  private learnLeader(replica: number): void {
    const { replicas } = this.edges.layout.sizes;
    const peer = this.members[replica];
    if (!peer.accept() || peer.ledBallot === NO_BALLOT) return;
    const group = Math.floor(replica / replicas);
    const known = this.leaders[group];
    const isLater =
      known === UNKNOWN || peer.ledBallot > this.members[group * replicas + known].ledBallot;
    if (isLater) this.leaders[group] = replica % replicas;
  }

  private writeControl(group: number, outbox: Outbox): void {
    const { layout, memory } = this.edges;
    this.control[INBOX_CONTROL.session] = this.session;
    this.control[INBOX_CONTROL.nudge] = outbox.nudges;
    const to = layout.inboxControl(this.slot);
    for (let member = 0; member < layout.sizes.replicas; member++) {
      const peer = layout.replicaProcess(group, member);
      memory.write(peer, to, this.control, 0, INBOX_CONTROL.words, OPEN, KIND.none);
    }
  }

  /** Write everything unanswered again, and nudge the destinations that owe a reply. */
  private resend(entry: number, outbox: Outbox): void {
    this.edges.observer.transition('client resent');
    let low = 0;
    let high = 0;
    for (let i = 0; i < outbox.calls.length; i++) {
      low |= outbox.calls.at(i).pendingLow;
      high |= outbox.calls.at(i).pendingHigh;
    }
    this.writeControl(entry, outbox);
    this.leaders[entry] = UNKNOWN;
    this.post(entry, outbox, outbox.oldestPosition);
    for (let group = 0; group < this.outboxes.length; group++) {
      if (!contains(low, high, group)) continue;
      const owing = this.outbox(group);
      owing.nudges++;
      owing.isOpen = true;
      this.writeControl(group, owing);
      this.leaders[group] = UNKNOWN;
      this.ringAll(group, owing);
    }
    this.lookEverywhere();
  }

  /** Look at the replies of every replica whose doorbell has changed. */
  private pollReplies(): number {
    const { memory, replicas, doorbells, seenDoorbells } = this;
    let work = 0;
    for (let replica = 0; replica < doorbells.length; replica++) {
      const rings = doorbells[replica];
      if (rings === seenDoorbells[replica]) continue;
      seenDoorbells[replica] = rings;
      memory.readFence();
      this.leaders[Math.floor(replica / replicas)] = replica % replicas;
      work += this.lookAt(replica);
    }
    return work;
  }

  /** A doorbell may be lost with its replica; the reply beside it counts all the same. */
  private lookEverywhere(): void {
    for (let replica = 0; replica < this.doorbells.length; replica++) this.lookAt(replica);
  }

  private lookAt(replica: number): number {
    const group = Math.floor(replica / this.replicas);
    let found = 0;
    for (const entry of this.entriesAbove[group]) {
      const outbox = this.outboxes[entry];
      if (outbox !== undefined) found += this.lookFor(outbox, replica, group);
    }
    return found;
  }

  /** Messages of one outbox are replied to in their order: after one that is not, none is. */
  private lookFor(outbox: Outbox, replica: number, group: number): number {
    const { calls } = outbox;
    let found = 0;
    for (let i = 0; i < calls.length; i++) {
      const call = calls.at(i);
      if (!call.isOpen || !contains(call.pendingLow, call.pendingHigh, group)) continue;
      if (!this.takeReply(outbox, call, replica, group)) break;
      found++;
    }
    this.freeAnswered(outbox);
    return found;
  }

  private takeReply(outbox: Outbox, call: Call, replica: number, group: number): boolean {
    const { layout } = this.edges;
    const at = layout.reply(replica, call.slot);
    if (wordsOf(this.replies, at, this.session, call.number, layout.replySlotWords) === 0)
      return false;
    if (word(this.replies, at + HEAD_WORDS + REPLY.entry) !== call.entry) return false;
    const start = (at + HEAD_WORDS + REPLY.payload) * 4;
    const bytes = word(this.replies, at + HEAD_WORDS + REPLY.bytes);
    if (group < 32) call.pendingLow &= ~(1 << group);
    else call.pendingHigh &= ~(1 << (group - 32));
    outbox.lastProgressUs = this.nowUs;
    outbox.resends = 0;
    const outcome = bytes >= 0 ? 'ok' : bytes === TOO_LARGE ? 'tooLarge' : 'failed';
    const reply = bytes > 0 ? this.replyBytes.subarray(start, start + bytes) : NO_BYTES;
    this.listener.replied(call, group, reply, outcome);
    if ((call.pendingLow | call.pendingHigh) === 0) this.close(call);
    return true;
  }

  private close(call: Call): void {
    assert(call.isOpen, 'a call is answered once');
    call.isOpen = false;
    this.outstanding--;
    this.listener.answered(call);
  }

  /** From the oldest on, answered calls can be used again, and their place in the ring. */
  private freeAnswered(outbox: Outbox): void {
    const { calls } = outbox;
    while (calls.length > 0 && !calls.at(0).isOpen) {
      const oldest = calls.at(0);
      calls.dropFirst();
      outbox.oldestPosition = (outbox.oldestPosition + oldest.words) | 0;
      this.free.add(oldest);
    }
  }

  private outbox(group: number): Outbox {
    let outbox = this.outboxes[group];
    if (outbox === undefined) {
      outbox = new Outbox(this.edges, this.session);
      this.outboxes[group] = outbox;
    }
    return outbox;
  }
}

function newCall(slot: number): Call {
  return {
    slot,
    entry: 0,
    number: 0,
    destinationsLow: 0,
    destinationsHigh: 0,
    pendingLow: 0,
    pendingHigh: 0,
    position: 0,
    words: 0,
    isOpen: false,
  };
}
