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
import { OPEN } from '../memory/contract.js';
import { INBOX_CONTROL, type Layout, MESSAGE, REPLY, TOO_LARGE } from '../memory/layout.js';
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
} from '../memory/window.js';
import { assert } from './assert.js';
import type { Edges } from './edges.js';
import { contains, GROUPS_MAX } from './overlay.js';
import { KIND } from './tags.js';

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

/** Told of replies; `reply` is valid during the call only. */
export interface CallListener {
  /** Without a reply: it exceeded `replyBytesMax`. The message was delivered all the same. */
  replied(call: Call, group: number, reply: Uint8Array | undefined): void;
  answered(call: Call): void;
}

const RESEND_DOUBLINGS_MAX = 4;

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
  lastProgressUs = 0;
  /** Since the last reply: ever more patient, so that replies arrive before they are sent again. */
  resends = 0;
  /** Calls in ring order, oldest first; answered ones wait until those before them are. */
  readonly calls: Call[] = [];

  constructor(layout: Layout) {
    const { origin } = layout.sizes;
    this.mirror = ringAt(
      new Int32Array(layout.inboxWords),
      0,
      layout.inboxWords,
      layout.sizes.salt,
    );
    this.nextNumber = origin;
    this.oldestPosition = origin | 0;
    this.endPosition = origin | 0;
    this.sentPosition = origin | 0;
  }
}

export class Client {
  /** The call that the last accepted offer opened. */
  lastCall!: Call;
  outstanding = 0;
  private readonly outboxes: (Outbox | undefined)[];
  private readonly free: Call[] = [];
  private readonly open: (Call | undefined)[];
  private readonly doorbells: Int32Array;
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
    this.open = new Array<Call | undefined>(callsMax).fill(undefined);
    this.doorbells = new Int32Array(groups * replicas);
    this.replies = slotAt(memory.own, 0);
    this.replyBytes = new Uint8Array(memory.own.buffer, memory.own.byteOffset);
    for (let slotNumber = callsMax - 1; slotNumber >= 0; slotNumber--)
      this.free.push(newCall(slotNumber));
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
    const call = this.free.pop()!;
    call.entry = entry;
    call.number = outbox.nextNumber++;
    call.destinationsLow = call.pendingLow = destinationsLow;
    call.destinationsHigh = call.pendingHigh = destinationsHigh;
    call.position = outbox.endPosition;
    call.isOpen = true;
    call.words = this.encode(outbox, call, payload, bodyWords);
    outbox.endPosition = (outbox.endPosition + call.words) | 0;
    if (outbox.calls.length === 0) outbox.lastProgressUs = this.nowUs;
    outbox.calls.push(call);
    this.open[call.slot] = call;
    this.outstanding++;
    this.lastCall = call;
    return 'accepted';
  }

  private check(low: number, high: number, payload: Uint8Array): void {
    const { sizes } = this.edges.layout;
    if ((low | high) === 0) throw new RangeError('a message needs at least one destination group');
    for (let group = sizes.groups; group < GROUPS_MAX; group++) {
      if (contains(low, high, group)) {
        throw new RangeError(
          `unknown destination group ${group}: there are groups 0 to ${sizes.groups - 1}`,
        );
      }
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
    const { memory } = this.edges;
    this.nowUs = nowUs;
    while (memory.poll()) {
      // Nothing depends on whether a write arrived: silence does.
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
      this.writeRange(entry, outbox, outbox.sentPosition);
      outbox.sentPosition = outbox.endPosition;
      work++;
    }
    return work;
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

  private writeRange(entry: number, outbox: Outbox, from: number): void {
    const { layout, memory } = this.edges;
    const { mirror, endPosition } = outbox;
    const to = layout.inboxRing(this.slot);
    for (let member = 0; member < layout.sizes.replicas; member++) {
      const peer = layout.replicaProcess(entry, member);
      postRange(memory, peer, to, mirror, from, endPosition, OPEN, KIND.none, KIND.none);
    }
  }

  /** Write everything unanswered again, and nudge the destinations that owe a reply. */
  private resend(entry: number, outbox: Outbox): void {
    this.edges.observer.transition('client resent');
    let low = 0;
    let high = 0;
    for (const call of outbox.calls) {
      low |= call.pendingLow;
      high |= call.pendingHigh;
    }
    this.writeControl(entry, outbox);
    this.writeRange(entry, outbox, outbox.oldestPosition);
    for (let group = 0; group < this.outboxes.length; group++) {
      if (!contains(low, high, group)) continue;
      const owing = this.outbox(group);
      owing.nudges++;
      owing.isOpen = true;
      this.writeControl(group, owing);
    }
    this.lookEverywhere();
  }

  /** Look at the replies of every replica whose doorbell has changed. */
  private pollReplies(): number {
    const { layout, memory } = this.edges;
    let work = 0;
    for (let replica = 0; replica < this.doorbells.length; replica++) {
      const rings = memory.own[layout.doorbell(replica)]!;
      if (rings === this.doorbells[replica]) continue;
      this.doorbells[replica] = rings;
      work += this.lookAt(replica);
    }
    return work;
  }

  /** A doorbell may be lost with its replica; the reply beside it counts all the same. */
  private lookEverywhere(): void {
    for (let replica = 0; replica < this.doorbells.length; replica++) this.lookAt(replica);
  }

  private lookAt(replica: number): number {
    const group = Math.floor(replica / this.edges.layout.sizes.replicas);
    let found = 0;
    for (const call of this.open) {
      if (call === undefined || !contains(call.pendingLow, call.pendingHigh, group)) continue;
      if (this.takeReply(call, replica, group)) found++;
    }
    return found;
  }

  private takeReply(call: Call, replica: number, group: number): boolean {
    const { layout } = this.edges;
    const at = layout.reply(replica, call.slot);
    if (wordsOf(this.replies, at, this.session, call.number, layout.replySlotWords) === 0)
      return false;
    if (word(this.replies, at + HEAD_WORDS + REPLY.entry) !== call.entry) return false;
    const start = (at + HEAD_WORDS + REPLY.payload) * 4;
    const bytes = word(this.replies, at + HEAD_WORDS + REPLY.bytes);
    if (group < 32) call.pendingLow &= ~(1 << group);
    else call.pendingHigh &= ~(1 << (group - 32));
    const outbox = this.outboxes[call.entry]!;
    outbox.lastProgressUs = this.nowUs;
    outbox.resends = 0;
    const reply = bytes === TOO_LARGE ? undefined : this.replyBytes.subarray(start, start + bytes);
    this.listener.replied(call, group, reply);
    if ((call.pendingLow | call.pendingHigh) === 0) this.close(outbox, call);
    return true;
  }

  /** All destinations have replied: free the call and, from the oldest on, the ring. */
  private close(outbox: Outbox, call: Call): void {
    assert(call.isOpen, 'a call is answered once');
    call.isOpen = false;
    this.open[call.slot] = undefined;
    this.outstanding--;
    this.listener.answered(call);
    while (outbox.calls.length > 0 && !outbox.calls[0]!.isOpen) {
      const oldest = outbox.calls.shift()!;
      outbox.oldestPosition = (outbox.oldestPosition + oldest.words) | 0;
      this.free.push(oldest);
    }
  }

  private outbox(group: number): Outbox {
    let outbox = this.outboxes[group];
    if (outbox === undefined) {
      outbox = new Outbox(this.edges.layout);
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
