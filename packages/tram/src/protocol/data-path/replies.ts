/**
 * Replies: kept by every member, sent by the leader, and sent again by the next leader or on a client's nudge. Called
 * by delivery.ts and leader.ts.
 *
 * A client names a call slot with each message and reuses it only after all destinations have replied. So only the last
 * reply of each (client, call slot) can ever be asked for again. It is kept as the very record that is written into the
 * client's memory. A leader never waits for a client.
 *
 * A call *waits* if its kept reply has the outcome `deferred`. The client gets this as a notice, and later the reply in the
 * same place. So every snapshot contains the calls that wait, and at most clients × callsMax calls wait (waiting.ts).
 *
 * Under strict order a leader sends a reply only when the gate has passed the entry that produced it (settling.ts); with
 * `durability: 'always'`, only when that entry is recoverable (recoverable.ts). Until then it holds the reply. Here the gate
 * is the lower of the two.
 *
 * Invariant: the kept reply of a slot is never of an older session than the one before it.
 */
import { type Memory, OPEN, type ParticipantId } from '../../memory/contract.js';
import {
  epochAt,
  HEAD_WORDS,
  name,
  numberAt,
  packBytes,
  sealNamed,
  slotAt,
  type Window,
} from '../../memory/record.js';
import { align, wordsFor } from '../../memory/words.js';
import { entryGroupOf, messageId, numberIn, OUTCOME, REPLY } from '../layout.js';
import type { Member } from '../member.js';
import { KIND } from '../tags.js';
import { HeldReplies } from './held-replies.js';

/** The most that the word for a reply's size can hold. */
const BYTES_MAX = 2 ** 31 - 1;

export class Replies {
  /** The last reply of each (client, call slot), each in a slot of `slotWords`. */
  private readonly kept: Window;
  /** For each of them, the index of the entry that produced it. If no reply is ever held, it is not used. */
  private readonly indices: Float64Array;
  private readonly held: HeldReplies;
  /** While this member leads: replies to entries below this index may be sent. */
  private gate = Number.POSITIVE_INFINITY;
  /** Does a leader hold replies, under strict order or with `always`? */
  private readonly holds: boolean;
  private readonly memory: Memory;
  private readonly firstClient: ParticipantId;
  /** Where our replies and our notification word lie at a client. */
  private readonly firstReply: number;
  private readonly notification: number;
  private readonly callsMax: number;
  private readonly slotWords: number;
  private readonly replyBytesMax: number;
  /** How often each client was notified. */
  private readonly notifications: Int32Array;
  /** The clients that were written to and not notified since: as flags, and as a list of `writtenCount`. */
  private readonly isWritten: Uint8Array;
  private readonly written: Int32Array;
  private writtenCount = 0;

  constructor(private readonly member: Member) {
    const { layout } = member;
    const { sizes, replySlotWords } = layout;
    const { memory } = member.edges;
    this.holds = member.edges.order === 'strict' || member.edges.journal?.isAwaited === true;
    this.memory = memory;
    this.firstClient = layout.clientParticipant(0);
    this.firstReply = layout.reply(memory.self, 0);
    this.notification = layout.replyNotification(memory.self);
    this.callsMax = sizes.callsMax;
    this.slotWords = replySlotWords;
    this.replyBytesMax = sizes.replyBytesMax;
    const slots = sizes.clients * sizes.callsMax;
    this.kept = slotAt(new Int32Array(slots * replySlotWords), 0);
    this.indices = new Float64Array(slots);
    this.held = new HeldReplies(slots);
    // Each incarnation counts from another number, so that its first notification is a change.
    this.notifications = new Int32Array(sizes.clients).fill(member.incarnation << 16);
    this.isWritten = new Uint8Array(sizes.clients);
    this.written = new Int32Array(sizes.clients);
  }

  /**
   * Keep a reply, or the fact that there is none to send. Its session must not have ended.
   *
   * @param outcome  one of `OUTCOME`: `ok`, `failed` with what the service threw as reply, or `deferred`
   * @param index  of the entry that produced it
   */
  keep(
    client: number,
    call: number,
    session: number,
    series: number,
    numberLow: number,
    outcome: number,
    reply: Uint8Array | undefined,
    index: number,
  ): void {
    const slot = client * this.callsMax + call;
    const at = slot * this.slotWords;
    this.write(at, session, numberLow, series, outcome, reply);
    if (this.holds) this.indices[slot] = index;
  }

  /** Keep the reply to a call that waits. @param index  of the entry that produced it, not of the call's message */
  answer(client: number, call: number, reply: Uint8Array | undefined, index: number): void {
    const at = this.slot(client, call);
    const series = this.kept.words[at + HEAD_WORDS + REPLY.series];
    this.write(at, epochAt(this.kept, at), numberAt(this.kept, at), series, OUTCOME.ok, reply);
    this.indices[client * this.callsMax + call] = index;
  }

  private write(
    at: number,
    session: number,
    numberLow: number,
    series: number,
    outcome: number,
    reply: Uint8Array | undefined,
  ): void {
    const { kept, replyBytesMax } = this;
    const { words } = kept;
    const body = at + HEAD_WORDS;
    const bytes = reply === undefined ? 0 : reply.length;
    const fits = bytes <= replyBytesMax;
    const packed = fits ? bytes | 0 : 0;
    name(words, at, REPLY.payload + wordsFor(packed), session, numberLow);
    words[body + REPLY.series] = series;
    words[body + REPLY.outcome] = fits ? outcome : OUTCOME.tooLarge;
    words[body + REPLY.bytes] = Math.min(bytes, BYTES_MAX);
    if (packed > 0) packBytes(reply!, kept, body + REPLY.payload);
  }

  /** The id of the message that waits in this slot, if one does. */
  waitingIn(client: number, call: number): string | undefined {
    const at = this.slot(client, call);
    const { words } = this.kept;
    const body = at + HEAD_WORDS;
    if (words[at] === 0 || words[body + REPLY.outcome] !== OUTCOME.deferred) return undefined;
    const series = words[body + REPLY.series];
    const number = numberIn(series, numberAt(this.kept, at));
    return messageId({ session: epochAt(this.kept, at), entryGroup: entryGroupOf(series), number });
  }

  /** Keep nothing in this slot: no client will ask for it. */
  drop(client: number, call: number): void {
    this.kept.words[this.slot(client, call)] = 0;
    this.held.remove(client * this.callsMax + call);
  }

  /** Keep nothing any more. */
  clear(): void {
    this.words.fill(0);
    this.indices.fill(0);
    this.held.clear();
  }

  /** A leader has kept this reply just now: send it, or hold it until the gate has passed its entry. */
  sendOrHold(client: number, call: number): void {
    const slot = client * this.callsMax + call;
    if (this.indices[slot] < this.gate) {
      this.send(client, call);
      return;
    }
    this.held.add(slot);
    this.member.edges.observer.transition('reply held');
  }

  /** The gate has moved: send the replies that were held and are below it. Returns how many. */
  release(gate: number): number {
    const { held, indices, callsMax } = this;
    this.gate = gate;
    let count = 0;
    for (let slot = held.first; slot !== -1 && indices[slot] < gate; slot = held.first) {
      held.remove(slot);
      this.send(Math.floor(slot / callsMax), slot % callsMax);
      count++;
    }
    if (count > 0) this.member.edges.observer.transition('held reply sent');
    return count;
  }

  /** Begin to lead: hold those of the kept replies that are not below the gate. */
  holdFrom(gate: number): void {
    const { held, indices, kept, slotWords } = this;
    this.gate = gate;
    held.clear();
    const slots: number[] = [];
    for (let slot = 0; slot < indices.length; slot++) {
      if (kept.words[slot * slotWords] !== 0 && indices[slot] >= gate) slots.push(slot);
    }
    slots.sort((one, other) => indices[one] - indices[other]);
    for (const slot of slots) held.add(slot);
  }

  /** Write the kept reply into the client's memory. */
  private send(client: number, call: number): void {
    const at = this.slot(client, call);
    // Most members never send the replies that they keep, so a record is sealed only here.
    const words = sealNamed(this.kept, at);
    const to = this.firstReply + call * this.slotWords;
    const peer = this.firstClient + client;
    // The whole of its last cache line: if the next reply begins right after it, one write can carry both.
    this.memory.write(peer, to, this.kept.words, at, align(words), OPEN, KIND.none);
    if (this.isWritten[client] === 0) {
      this.isWritten[client] = 1;
      this.written[this.writtenCount++] = client;
    }
  }

  /** Send all replies that are kept and not held, for a client's session, or for any session if none is given. */
  sendAgain(client: number, session?: number): void {
    let sent = false;
    for (let call = 0; call < this.callsMax; call++) {
      const at = this.slot(client, call);
      if (this.kept.words[at] === 0) continue;
      if (session !== undefined && epochAt(this.kept, at) !== session) continue;
      if (this.indices[client * this.callsMax + call] >= this.gate) continue;
      this.send(client, call);
      sent = true;
    }
    if (sent) this.member.edges.observer.transition('replies sent again');
  }

  /** Notify the clients that replies were written to since the last call. */
  notifyClients(): void {
    const { memory, written } = this;
    while (this.writtenCount > 0) {
      const client = written[--this.writtenCount];
      const peer = this.firstClient + client;
      this.isWritten[client] = 0;
      memory.writeWord(peer, this.notification, ++this.notifications[client], OPEN, KIND.none);
      memory.wake(peer, true);
    }
  }

  /** All kept replies and their indices, for a snapshot; `load` is its inverse. */
  get words(): Int32Array {
    return this.kept.words;
  }

  get indexWords(): Int32Array {
    return new Int32Array(this.indices.buffer);
  }

  load(words: Int32Array, indexWords: Int32Array): void {
    this.words.set(words);
    this.indexWords.set(indexWords);
  }

  private slot(client: number, call: number): number {
    return (client * this.callsMax + call) * this.slotWords;
  }
}
