/**
 * A client of RamCast: it writes each message once into every replica of every destination, and waits until the leader of each
 * destination has replied.
 *
 * For each group the messages are in a ring with the same contents at all replicas; `mirror` is the client's copy of it. A call
 * identifies the slot for replies and is free again once all destinations have replied. Ring space is free once all replicas of
 * the group have delivered the messages there, which they report from time to time. A slot outlives its client: the next client
 * continues where the last one has stopped after all its messages were answered.
 */
import { NO_TAG, OPEN } from 'tram-multicast/internal/memory/contract.js';
import {
  copyWords,
  HEAD_WORDS,
  packBytes,
  postRange,
  slotAt,
  type Window,
  word,
  wordsOf,
} from 'tram-multicast/internal/memory/record.js';
import { contains } from 'tram-multicast/internal/protocol/overlay.js';
import { assert, drain, type Edges, Todo } from './edges.js';
import { KEPT, KEPT_GROUP, MESSAGE, messageWords, REPLY, TOO_LARGE } from './layout.js';
import { NONE, Outbox } from './outbox.js';
import { REPLY_EPOCH } from './replies.js';

/** A message in flight. */
export interface Call {
  readonly slot: number;
  sequence: number;
  /** Destinations that have not replied yet. */
  pendingLow: number;
  pendingHigh: number;
}

/** Receives replies. `reply` is valid during the call, and undefined if it was too large. */
export interface CallListener {
  replied(call: Call, group: number, reply: Uint8Array | undefined): void;
  answered(call: Call): void;
}

export type Offer = 'accepted' | 'backPressured';

const NO_BYTES = new Uint8Array(0);

export class Client {
  /** The call that the last accepted offer opened. */
  lastCall!: Call;
  outstanding = 0;
  private readonly outboxes: Outbox[] = [];
  /** Groups with unsent messages. */
  private readonly news: Todo;
  private readonly calls: Call[] = [];
  private readonly free: Call[] = [];
  private readonly replied: Int32Array;
  private readonly replies: Window;
  private readonly replyBytes: Uint8Array;
  private readonly draft: Window;
  private readonly word = new Int32Array(1);
  private sequence: number;

  constructor(
    private readonly edges: Edges,
    /** The number of this client. */
    readonly client: number,
    private readonly listener: CallListener,
  ) {
    const { layout, memory } = edges;
    const { own } = memory;
    const { groups, callsMax, firstIndex } = layout.sizes;
    // Before any peer writes: all counts start at the same value.
    if (firstIndex !== 0) own.fill(firstIndex, 0, layout.reply(0, 0));
    this.news = new Todo(groups);
    this.sequence = own[layout.kept + KEPT.sequence];
    for (let group = 0; group < groups; group++) {
      const kept = layout.keptOf(group);
      const mirror = memory.scratch(layout.inboxWords);
      const end = own[kept + KEPT_GROUP.end];
      this.outboxes.push(new Outbox(mirror, end, own[kept + KEPT_GROUP.written], callsMax));
      this.learnFreed(group);
    }
    this.replied = Int32Array.from({ length: groups }, (_, group) => own[layout.replied(group)]);
    this.replies = slotAt(own, 0);
    this.draft = slotAt(new Int32Array(layout.messageWordsMax), 0);
    this.replyBytes = new Uint8Array(own.buffer, own.byteOffset, own.byteLength);
    for (let slot = 0; slot < callsMax; slot++) {
      this.calls.push({ slot, sequence: 0, pendingLow: 0, pendingHigh: 0 });
    }
    this.free.push(...this.calls.toReversed());
  }

  /**
   * Takes a message for all groups in the set. The next `doWork` or `flush` writes it; its call is `lastCall`. Under back
   * pressure the message is not taken, and the caller tries again later.
   */
  offer(low: number, high: number, payload: Uint8Array): Offer {
    const words = messageWords(payload.length);
    assert(words <= this.edges.layout.messageWordsMax, 'a payload is not larger than the maximum');
    if (this.free.length === 0 || !this.hasRoom(low, high, words)) return 'backPressured';
    const call = this.free.pop()!;
    call.sequence = this.sequence;
    call.pendingLow = low;
    call.pendingHigh = high;
    this.sequence = (this.sequence + 1) | 0;
    this.write(call, payload, words);
    for (let rest = low; rest !== 0; rest &= rest - 1) {
      this.put(31 - Math.clz32(rest & -rest), call.slot, words);
    }
    for (let rest = high; rest !== 0; rest &= rest - 1) {
      this.put(63 - Math.clz32(rest & -rest), call.slot, words);
    }
    this.outstanding++;
    this.lastCall = call;
    return 'accepted';
  }

  private hasRoom(low: number, high: number, words: number): boolean {
    for (let group = 0; group < this.outboxes.length; group++) {
      if (contains(low, high, group) && !this.fits(group, words)) return false;
    }
    return true;
  }

  private fits(group: number, words: number): boolean {
    const { inboxWords } = this.edges.layout;
    const outbox = this.outboxes[group];
    if (((outbox.end - outbox.freed) | 0) + words <= inboxWords) return true;
    this.learnFreed(group);
    return ((outbox.end - outbox.freed) | 0) + words <= inboxWords;
  }

  private learnFreed(group: number): void {
    const { layout, memory } = this.edges;
    const outbox = this.outboxes[group];
    let used = 0;
    for (let member = 0; member < layout.sizes.replicas; member++) {
      const freed = memory.own[layout.freed(layout.replicaParticipant(group, member))];
      used = Math.max(used, (outbox.end - freed) | 0);
    }
    outbox.freed = (outbox.end - used) | 0;
  }

  /** Encodes the message as every replica stores it. */
  private write(call: Call, payload: Uint8Array, count: number): void {
    const { draft } = this;
    const { words } = draft;
    words[MESSAGE.words] = count;
    words[MESSAGE.slot] = this.client * this.calls.length + call.slot;
    words[MESSAGE.sequence] = call.sequence;
    words[MESSAGE.destinationsLow] = call.pendingLow;
    words[MESSAGE.destinationsHigh] = call.pendingHigh;
    words[MESSAGE.payloadBytes] = payload.length;
    packBytes(payload, draft, MESSAGE.payload);
  }

  private put(group: number, call: number, count: number): void {
    const outbox = this.outboxes[group];
    copyWords(this.draft, 0, outbox.mirror, outbox.end, count);
    outbox.end = (outbox.end + count) | 0;
    outbox.written = (outbox.written + 1) | 0;
    outbox.add(call);
    this.news.add(group);
  }

  /** Posts offered messages and collects replies. @returns the amount of work */
  doWork(): number {
    drain(this.edges.memory);
    return this.flush() + this.pollReplies();
  }

  /**
   * Writes new messages into every replica of their destinations: one write each, two at a wrap, then their count. Leaders get
   * the count first, because followers wait for their leader.
   */
  flush(): number {
    const { news } = this;
    const { count } = news;
    if (count === 0) return 0;
    const { layout, memory } = this.edges;
    for (let i = 0; i < count; i++) this.send(news.at(i));
    for (let i = 0; i < count; i++) this.tellFollowers(news.at(i));
    news.clear();
    memory.own[layout.kept + KEPT.sequence] = this.sequence;
    return count;
  }

  private send(group: number): void {
    const { layout, memory } = this.edges;
    const outbox = this.outboxes[group];
    const { mirror, sent, end } = outbox;
    const to = layout.inbox(this.client);
    const leader = layout.leaderParticipant(group);
    for (let peer = leader + layout.sizes.replicas - 1; peer >= leader; peer--) {
      postRange(memory, peer, to, mirror, sent, end, OPEN, NO_TAG, NO_TAG);
    }
    this.word[0] = outbox.written;
    memory.write(leader, layout.written(this.client), this.word, 0, 1, OPEN, NO_TAG);
    memory.wake(leader, true);
    outbox.sent = outbox.end;
    this.keep(group, outbox);
  }

  private tellFollowers(group: number): void {
    const { layout, memory } = this.edges;
    this.word[0] = this.outboxes[group].written;
    const to = layout.written(this.client);
    const leader = layout.leaderParticipant(group);
    for (let peer = leader + 1; peer < leader + layout.sizes.replicas; peer++) {
      memory.write(peer, to, this.word, 0, 1, OPEN, NO_TAG);
    }
  }

  private keep(group: number, { end, written }: Outbox): void {
    const { layout, memory } = this.edges;
    const at = layout.keptOf(group);
    memory.own[at + KEPT_GROUP.end] = end;
    memory.own[at + KEPT_GROUP.written] = written;
  }

  private pollReplies(): number {
    const { replied } = this;
    const { layout, memory } = this.edges;
    const { own } = memory;
    const at = layout.replied(0);
    let found = 0;
    for (let group = 0; group < replied.length; group++) {
      const count = own[at + group];
      if (count === replied[group]) continue;
      // The replies were written before the count.
      memory.readFence();
      const expected = (count - replied[group]) | 0;
      replied[group] = count;
      this.collect(group, expected);
      found += expected;
    }
    return found;
  }

  /** Most replies arrive in the order of the calls. */
  private collect(group: number, expected: number): void {
    const outbox = this.outboxes[group];
    let left = expected;
    for (let slot = outbox.oldest; slot !== NONE && left > 0; ) {
      const next = outbox.next(slot);
      const call = this.calls[slot];
      if (this.hasReply(call, group)) {
        outbox.drop(slot);
        this.takeReply(call, group);
        left--;
      }
      slot = next;
    }
    assert(left === 0, 'a group replies only to messages that it was sent');
  }

  private hasReply({ slot, sequence }: Call, group: number): boolean {
    const { layout } = this.edges;
    const at = layout.reply(group, slot);
    return wordsOf(this.replies, at, REPLY_EPOCH, sequence, layout.replySlotWords) > 0;
  }

  private takeReply(call: Call, group: number): void {
    const at = this.edges.layout.reply(group, call.slot) + HEAD_WORDS;
    const bytes = word(this.replies, at + REPLY.bytes);
    const start = (at + REPLY.payload) * 4;
    let reply: Uint8Array | undefined = NO_BYTES;
    if (bytes > 0) reply = this.replyBytes.subarray(start, start + bytes);
    else if (bytes === TOO_LARGE) reply = undefined;
    if (group < 32) call.pendingLow &= ~(1 << group);
    else call.pendingHigh &= ~(1 << (group - 32));
    this.listener.replied(call, group, reply);
    if ((call.pendingLow | call.pendingHigh) !== 0) return;
    this.outstanding--;
    this.free.push(call);
    this.listener.answered(call);
  }
}
