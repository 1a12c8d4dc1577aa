/**
 * What a client has under way at one entry group: its messages, encoded in a ring, and their calls. Used by client.ts,
 * which posts the ring to the replicas of the group and collects the replies.
 *
 * The ring looks the same at every replica; `mirror` is the client's own copy of it.
 *
 * Invariants: oldestPosition ≤ sentPosition ≤ endPosition ≤ oldestPosition + the ring's size. Between oldest and end lie
 * exactly the messages of `calls`, in their order. A message is not overwritten before all its destinations have
 * replied or deferred their reply.
 */
import {
  distance,
  FRAME_WORDS,
  HEAD_WORDS,
  packBytes,
  ringAt,
  seal,
  type Window,
} from '../../memory/record.js';
import type { Edges } from '../edges.js';
import { CANCEL, MARK, MESSAGE, messageWords, seriesOf } from '../layout.js';

/** A message that was offered and is not yet answered by all its destinations. Reused once it is. */
export interface Call {
  /** The call slot: where replies to the message appear. */
  readonly slot: number;
  /** The entry group. */
  entryGroup: number;
  /** Consecutive for one session and entry group: with these two, the message's name. */
  number: number;
  destinationsLow: number;
  destinationsHigh: number;
  /** The destinations that have not replied yet. Empty if and only if the call is not open. */
  pendingLow: number;
  pendingHigh: number;
  /** Of these, the destinations that have not deferred their reply either. */
  unheardLow: number;
  unheardHigh: number;
  /** Where the message lies in the outbox, and how long it is. */
  position: number;
  words: number;
  isOpen: boolean;
  /** Is its message in the outbox? From then on until all destinations, and those of earlier messages, were heard. */
  isInOutbox: boolean;
  /** Does its caller no longer wait for the replies? If they are deferred, a cancel takes the place of the message. */
  isGivenUp: boolean;
  /** Is its message a cancel? */
  isCancel: boolean;
  /** Is it a mark? */
  isMark: boolean;
}

const NO_PAYLOAD = new Uint8Array(0);

export function newCall(slot: number): Call {
  return {
    slot,
    entryGroup: 0,
    number: 0,
    destinationsLow: 0,
    destinationsHigh: 0,
    pendingLow: 0,
    pendingHigh: 0,
    unheardLow: 0,
    unheardHigh: 0,
    position: 0,
    words: 0,
    isOpen: false,
    isInOutbox: false,
    isGivenUp: false,
    isCancel: false,
    isMark: false,
  };
}

/** First in, first out, allocated once. */
export class CallQueue {
  private readonly places: Call[];
  private first = 0;
  /** At most the capacity. */
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

  takeFirst(): Call {
    const call = this.places[this.first];
    this.first = this.first + 1 < this.places.length ? this.first + 1 : 0;
    this.length--;
    return call;
  }
}

export class Outbox {
  readonly mirror: Window;
  private nextNumber: number;
  oldestPosition: number;
  endPosition: number;
  /** Everything before it has been posted. */
  sentPosition: number;
  /** Has the session been announced to the group? */
  isOpen = false;
  /** How often the client has nudged the group. */
  nudges = 0;
  /** How often the group was notified. Each session counts from another number, so that its first one is a change. */
  notifications: number;
  /** When the last reply came, or the messages were posted again, or the first of them was offered. */
  lastProgressUs = 0;
  /** How often messages were posted again since the last reply. */
  resends = 0;
  /** In ring order, oldest first. Each stays until it and those before it were heard: replied to or deferred. */
  readonly calls: CallQueue;

  constructor(
    { memory, layout }: Edges,
    private readonly client: number,
    private readonly session: number,
  ) {
    const { firstIndex, salt, callsMax } = layout.sizes;
    const { inboxWords } = layout;
    this.mirror = ringAt(memory.scratch(inboxWords), 0, inboxWords, salt);
    this.nextNumber = firstIndex;
    this.oldestPosition = firstIndex | 0;
    this.endPosition = firstIndex | 0;
    this.sentPosition = firstIndex | 0;
    this.notifications = session << 16;
    this.calls = new CallQueue(callsMax);
  }

  /** Is there room for a message with so many bytes of payload? */
  hasRoom(payloadBytes: number): boolean {
    const words = FRAME_WORDS + messageWords(payloadBytes);
    return distance(this.endPosition, this.oldestPosition) + words <= this.mirror.mask + 1;
  }

  /** Encode the message of a call, which says where it goes, at the end of the ring. */
  add(call: Call, payload: Uint8Array, nowUs: number): void {
    call.number = this.nextNumber++;
    call.position = this.endPosition;
    call.pendingLow = call.unheardLow = call.destinationsLow;
    call.pendingHigh = call.unheardHigh = call.destinationsHigh;
    call.words = this.encode(call, payload);
    call.isInOutbox = true;
    this.endPosition = (this.endPosition + call.words) | 0;
    if (this.calls.length === 0) this.lastProgressUs = nowUs;
    this.calls.add(call);
  }

  /** The call waits, and its message is no longer here: a cancel follows it, in the same call slot. */
  addCancel(call: Call, nowUs: number): void {
    call.isCancel = true;
    this.add(call, NO_PAYLOAD, nowUs);
  }

  private encode(call: Call, payload: Uint8Array): number {
    const { mirror, session } = this;
    const { words, mask } = mirror;
    const body = call.position + HEAD_WORDS;
    const bodyWords = messageWords(payload.length);
    // The payload may end before this word.
    words[(body + bodyWords - 1) & mask] = 0;
    words[(body + MESSAGE.client) & mask] = this.client | (call.slot << 16);
    words[(body + MESSAGE.session) & mask] = session;
    words[(body + MESSAGE.number) & mask] = call.number | 0;
    words[(body + MESSAGE.series) & mask] = seriesOf(call.entryGroup, call.number);
    words[(body + MESSAGE.destinationsLow) & mask] = call.destinationsLow;
    words[(body + MESSAGE.destinationsHigh) & mask] = call.destinationsHigh;
    words[(body + MESSAGE.payloadBytes) & mask] = payload.length | flagOf(call);
    packBytes(payload, mirror, body + MESSAGE.payload);
    return seal(mirror, call.position, bodyWords, session, call.number);
  }

  /** From the oldest on, free the places of messages whose destinations were all heard, and give `free` the answered calls. */
  releaseHeard(free: CallQueue): void {
    const { calls } = this;
    while (calls.length > 0) {
      const oldest = calls.at(0);
      if ((oldest.unheardLow | oldest.unheardHigh) !== 0) return;
      calls.takeFirst();
      oldest.isInOutbox = false;
      this.oldestPosition = (this.oldestPosition + oldest.words) | 0;
      if (!oldest.isOpen) free.add(oldest);
    }
  }
}

function flagOf({ isCancel, isMark }: Call): number {
  if (isCancel) return CANCEL;
  return isMark ? MARK : 0;
}
