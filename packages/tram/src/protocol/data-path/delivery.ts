/**
 * Delivering decided entries, in log order, each once (paper steps 2.4 and 2.6). Leaders, followers and recovering
 * members all deliver by `Delivering.deliver`; only a leader also sends the replies.
 *
 * Entries are copied out of the log before they are delivered, a stretch of them at a time, so that nothing can change
 * them meanwhile. A leader delivers entries where they lie in its own log, which nobody else writes. There, only a payload that
 * the service reads is copied.
 *
 * The service may defer a reply. The message then waits (waiting.ts) until the service replies to it, while it delivers a
 * later entry, or until the message is abandoned: by a cancel of its client, or because its session has ended. All of this
 * happens at an entry of the log, so it is the same at every member.
 *
 * With a journal, each stretch is handed over after it was delivered (journaling.ts). If the journal is full, deliveries
 * may have to wait for it.
 *
 * Invariant: `nextToDeliver`, `nextPosition` and the counters of a member advance together, entry by entry.
 */

import {
  copyPart,
  copyWords,
  extend,
  FRAME_WORDS,
  framedPart,
  HEAD_WORDS,
  numberAt,
  placeOf,
  slotAt,
  untilWrap,
  type Window,
  word,
} from '../../memory/record.js';
import { assert, InvariantError } from '../assert.js';
import { type Application, DEFERRED, type Replier } from '../edges.js';
import {
  CANCEL,
  MARK,
  MESSAGE,
  messageId,
  OUTCOME,
  OWN_KIND,
  SOURCE,
  sourceIn,
} from '../layout.js';
import type { Member, Stretch } from '../member.js';
import { contains, highMask, lowMask } from '../overlay.js';
import { CLIENT_MASK, CopiedMessage } from './copied-message.js';
import type { Journaling } from './journaling.js';
import type { LogRing } from './log.js';
import type { Replies } from './replies.js';

/** How much of the log is copied out at a time, unless one entry is larger. */
const STRETCH_WORDS = 2048;

export class Delivering implements Replier {
  /** The copied part of the log. */
  private readonly stretch: Window;
  private readonly message: CopiedMessage;
  private readonly entryWordsMax: number;
  private readonly firstIndex: number;
  /** The set of this group. */
  private readonly groupLow: number;
  private readonly groupHigh: number;
  /** Words of the entry delivered last: the next ones are probably as long. */
  private lastWords: number;
  /** Do we lead, and so send the replies, while we deliver? */
  private leads = false;
  /** Does the entry come from a journal? */
  private isReplaying = false;

  constructor(
    private readonly member: Member,
    private readonly application: Application,
    /** Absent without a journal. */
    readonly journaling: Journaling | undefined,
  ) {
    const { entryWordsMax, logWords, sizes } = member.layout;
    this.firstIndex = sizes.firstIndex;
    this.groupLow = lowMask(member.group);
    this.groupHigh = highMask(member.group);
    const words = Math.min(logWords, Math.max(STRETCH_WORDS, entryWordsMax));
    this.stretch = slotAt(new Int32Array(words), 0, member.layout.logSalt(member.group));
    this.message = new CopiedMessage(member.group, this.stretch.words);
    this.entryWordsMax = entryWordsMax;
    this.lastWords = entryWordsMax;
  }

  /**
   * Deliver from `log`, which holds entries of `ballot`, all below index `decided`. Stops early at an entry that is not
   * there, or that the journal has no room for. Returns how many were delivered.
   */
  deliver(log: LogRing, ballot: number, decided: number, leads: boolean): number {
    const { member } = this;
    const first = member.nextToDeliver;
    this.leads = leads;
    if (leads && this.journaling === undefined) this.deliverInPlace(log.window, ballot, decided);
    while (member.nextToDeliver < decided) {
      const end = this.stretchEnd(decided);
      const words = this.copyOut(log, end - member.nextToDeliver);
      // If we lag, the leader may drop entries while we copy them. Our own log only we ourselves truncate.
      if (!leads && this.mayBeOverwritten(log)) break;
      if (!this.isAdmitted(words)) break;
      if (this.deliverCopied(words, ballot, end) === 0) break;
    }
    return member.nextToDeliver - first;
  }

  /** Deliver entries of our own log that lie side by side in its ring. Those that wrap, or come after one that does, are left. */
  private deliverInPlace(log: Window, ballot: number, decided: number): void {
    const { nextPosition } = this.member;
    const from = placeOf(log, nextPosition);
    this.deliverFrom(log.words, from, from + untilWrap(log, nextPosition), ballot, decided);
  }

  /**
   * Deliver entries of `ballot` that were fetched from a leader's backlog: consecutive, whole and decided. The first one
   * is the next to deliver. Those that the journal has no room for must be fetched again.
   */
  deliverFetched(entries: Int32Array, ballot: number): void {
    const { stretch } = this;
    this.leads = false;
    for (let at = 0; at < entries.length; ) {
      const words = Math.min(stretch.words.length, entries.length - at);
      if (!this.isAdmitted(words)) return;
      copyPart(entries, at, stretch.words, 0, words);
      const end = this.stretchEnd(Number.POSITIVE_INFINITY);
      const delivered = this.deliverCopied(words, ballot, end);
      assert(delivered > 0, 'a fetched backlog consists of the next entries');
      at += delivered;
    }
  }

  /** Deliver the next entries, which come from a journal. No reply is sent. */
  deliverJournaled({ first, words, at, end }: Stretch): void {
    const { member, stretch, entryWordsMax } = this;
    assert(first === member.nextToDeliver, 'entries of a journal follow each other without a gap');
    this.leads = false;
    this.isReplaying = true;
    for (let body = at + 1; body <= end; body += words[body - 1] + 1) {
      const count = words[body - 1];
      const entryWords = count + FRAME_WORDS;
      assert(entryWords <= entryWordsMax, 'an entry of a journal fits into the log');
      stretch.words[0] = entryWords;
      copyPart(words, body, stretch.words, HEAD_WORDS, count);
      this.message.show(stretch.words, HEAD_WORDS);
      const source = sourceIn(entryWords);
      const { client, session } = MESSAGE;
      this.note(stretch.words, source, words[body + client], words[body + session]);
      this.apply();
      member.nextToDeliver++;
      member.nextPosition = (member.nextPosition + entryWords) | 0;
    }
    this.isReplaying = false;
  }

  /** All sessions of all clients end. */
  endAllSessions(): void {
    const { firstLive } = this.member.waiting;
    this.leads = false;
    for (let client = 0; client < firstLive.length; client++) {
      // A slot without a session stays as it is: a group without entries keeps its first state.
      if (firstLive[client] > 0) this.endSessions(client, firstLive[client] + 1);
    }
  }

  /** Has the journal, if there is one, room for the next stretch, or no need of it? */
  private isAdmitted(words: number): boolean {
    return this.journaling === undefined || this.journaling.admits(words);
  }

  private stretchEnd(decided: number): number {
    return this.journaling === undefined ? decided : this.journaling.stretchEnd(decided);
  }

  private mayBeOverwritten(log: LogRing): boolean {
    this.member.edges.memory.readFence();
    return isLeftBehind(this.member, log);
  }

  /** Copy what are probably the next `count` entries, at least one. Returns how many words that is. */
  private copyOut(log: LogRing, count: number): number {
    const { stretch, entryWordsMax } = this;
    const { nextPosition } = this.member;
    const first = Math.min(word(log, nextPosition), entryWordsMax);
    const words = Math.max(first, Math.min(count * this.lastWords, stretch.words.length));
    copyWords(log, nextPosition, stretch, 0, words);
    return words;
  }

  /** Deliver those entries of the stretch below `end` that were copied entirely. Returns their words. */
  private deliverCopied(words: number, ballot: number, end: number): number {
    const { member, stretch, journaling } = this;
    const { nextToDeliver: first, marks } = member;
    const delivered = this.deliverFrom(stretch.words, 0, words, ballot, end);
    if (delivered > 0) journaling?.add(first, stretch.words, delivered);
    if (member.marks !== marks) journaling?.onMark();
    return delivered;
  }

  /**
   * Deliver entries below index `end` that lie side by side in `words`, from `from` on, and end at `to` or before. Returns their
   * words.
   *
   * This loop is where a host spends most of its time. So it keeps in variables what does not change, and delivers nearly
   * all messages itself; `apply` handles whatever is not plain.
   */
  private deliverFrom(
    words: Int32Array,
    from: number,
    to: number,
    ballot: number,
    end: number,
  ): number {
    const { member, message, stretch, entryWordsMax, leads, groupLow, groupHigh } = this;
    const { marks, replies } = member;
    const { firstLive } = member.waiting;
    const { salt } = stretch;
    let index = member.nextToDeliver;
    let at = from;
    while (index < end && at + FRAME_WORDS <= to) {
      const here = words[at];
      if (here > to - at) break;
      // An entry is decided after it is written, so it is whole. Its ends tell whether it is the right one.
      if (framedPart(words, at, salt, ballot, index, entryWordsMax) === 0) break;
      const body = at + HEAD_WORDS;
      const sender = words[body + MESSAGE.client];
      const session = words[body + MESSAGE.session];
      message.show(words, body);
      this.note(words, at + sourceIn(here), sender, session);
      const isForUs =
        (words[body + MESSAGE.destinationsLow] & groupLow) |
        (words[body + MESSAGE.destinationsHigh] & groupHigh);
      const isControl = words[body + MESSAGE.payloadBytes] & (CANCEL | MARK);
      const client = sender & CLIENT_MASK;
      // A journal wants to know of every entry where it goes.
      if (
        isForUs !== 0 &&
        isControl === 0 &&
        session === firstLive[client] &&
        this.journaling === undefined
      ) {
        this.deliverMessage(client, sender >>> 16, session, true, replies, leads, index);
      } else {
        this.apply();
      }
      member.nextToDeliver = ++index;
      member.nextPosition = (member.nextPosition + here) | 0;
      this.lastWords = here;
      at += here;
      // A snapshot may have to be taken right after a mark.
      if (member.marks !== marks) break;
    }
    return at - from;
  }

  /** An entry with this source, which lies at `source`, is about to be delivered. */
  private note(words: Int32Array, source: number, sender: number, session: number): void {
    this.member.delivered.fold(
      words[source + SOURCE.id],
      words[source + SOURCE.number],
      words[source + SOURCE.nextPosition],
      sender,
      session,
      this.firstIndex,
    );
  }

  /** Deliver an entry that is not plain. */
  private apply(): void {
    const { member, message } = this;
    const isForUs = contains(message.destinationsLow, message.destinationsHigh, message.group);
    const kind = isForUs ? 0 : message.ownKind;
    if (kind !== 0) {
      this.applyOwn(kind);
      return;
    }
    if (this.journaling !== undefined) this.noteSent();
    const { client, session, isControl } = message;
    if (isControl && message.markNumber > 0) {
      this.noteMark(message.markNumber, message.numberLow);
      return;
    }
    if (session > member.waiting.firstLive[client]) this.endSessions(client, session);
    if (!isForUs) member.relayed++;
    // Messages of a session that has ended may still be on their way down the tree.
    const isLive = !member.waiting.hasEnded(client, session);
    if (isControl) {
      if (isForUs && isLive) this.control();
    } else if (isForUs) {
      const { replies, nextToDeliver } = member;
      const { leads } = this;
      this.deliverMessage(client, message.call, session, isLive, replies, leads, nextToDeliver);
    } else {
      member.edges.observer.relayed(message);
    }
  }

  private noteMark(number: number, complete: number): void {
    const { member } = this;
    assert(number > member.marks, 'marks come in the order of their numbers');
    member.marks = number;
    member.completeMark = Math.max(member.completeMark, complete);
    member.edges.observer.transition('mark delivered');
  }

  /** Note to which children this entry goes: stability depends on that (recoverable.ts). */
  private noteSent(): void {
    const { children, sentTo, nextToDeliver, edges } = this.member;
    const { destinationsLow, destinationsHigh } = this.message;
    for (let place = 0; place < sentTo.length; place++) {
      if (edges.overlay.reaches(children[place], destinationsLow, destinationsHigh))
        sentTo[place] = nextToDeliver;
    }
  }

  /** A mark or a cancel, of a session that has not ended. */
  private control(): void {
    const { replies, nextToDeliver: index } = this.member;
    const { client, call, session, series, numberLow, isMark } = this.message;
    if (!isMark) this.cancel();
    replies.keep(client, call, session, series, numberLow, OUTCOME.ok, undefined, index);
    if (this.leads) replies.sendOrHold(client, call);
  }

  private deliverMessage(
    client: number,
    call: number,
    session: number,
    isLive: boolean,
    replies: Replies,
    leads: boolean,
    index: number,
  ): void {
    const { message } = this;
    if (this.isReplaying) this.abandonReplaced();
    let reply: Uint8Array | undefined;
    let outcome: number = OUTCOME.ok;
    try {
      const result = this.application.deliver(message, this);
      if (result === DEFERRED) outcome = OUTCOME.deferred;
      else reply = result;
    } catch (error) {
      reply = this.failure(error);
      outcome = OUTCOME.failed;
    }
    this.member.deliveries++;
    if (isLive) {
      const { series, numberLow } = message;
      replies.keep(client, call, session, series, numberLow, outcome, reply, index);
      if (leads) replies.sendOrHold(client, call);
    }
    if (outcome === OUTCOME.deferred) this.noteDeferred(isLive);
  }

  /**
   * In what a recovery has put together, this message may follow one in its call slot that still waits: the end of that
   * one is lost (with `everySecond`), and this one has come from the parent again. Its client has seen the end.
   */
  private abandonReplaced(): void {
    const { member, message } = this;
    const id = member.replies.waitingIn(message.client, message.call);
    if (id === undefined) return;
    member.waiting.remove(id);
    this.abandon(id);
  }

  /** This message waits, unless its session has ended. */
  private noteDeferred(isLive: boolean): void {
    const { member, message } = this;
    const id = messageId(message);
    member.edges.observer.transition('reply deferred');
    if (isLive) member.waiting.add(id, message.client, message.call);
    else this.abandon(id);
  }

  /** For the service: reply to a message that waits. */
  reply(id: string, reply: Uint8Array | undefined): boolean {
    const { waiting, replies, nextToDeliver: index } = this.member;
    const place = waiting.remove(id);
    if (place < 0) return false;
    const client = waiting.clientAt(place);
    const call = waiting.callAt(place);
    replies.answer(client, call, reply, index);
    if (this.leads) replies.sendOrHold(client, call);
    return true;
  }

  /** The client has given up the message before this one in its call slot. If that still waits, it is abandoned. */
  private cancel(): void {
    const { member, message } = this;
    const id = member.replies.waitingIn(message.client, message.call);
    if (id === undefined) return;
    member.edges.observer.transition('call cancelled');
    member.waiting.remove(id);
    this.abandon(id);
  }

  /** All sessions of a client slot before `firstLive` have ended. Nothing waits for them when the service is told. */
  private endSessions(client: number, firstLive: number): void {
    const { waiting, replies, edges } = this.member;
    for (const id of waiting.end(client, firstLive, replies)) {
      edges.observer.transition('session ended');
      this.abandon(id);
    }
  }

  private abandon(id: string): void {
    try {
      this.application.abandoned?.(id, this);
    } catch (error) {
      this.tellFailure(error);
    }
  }

  /** What the leader proposed itself. The counters have noted it already. */
  private applyOwn(kind: number): void {
    if (kind === OWN_KIND.sessionEnded) {
      const { client, session } = this.message;
      if (!this.member.waiting.hasEnded(client, session)) this.endSessions(client, session + 1);
      return;
    }
    try {
      this.application.tick(this.member.delivered.orderedUs, this);
    } catch (error) {
      this.tellFailure(error);
    }
  }

  /** A service fails at every member or at none, so all members go on. */
  private tellFailure(error: unknown): void {
    if (error instanceof InvariantError) throw error;
    const { observer } = this.member.edges;
    observer.transition('service failed');
    observer.failed(error);
  }

  /**
   * All members agree that the reply is a failure. Returns the message of the error, which is the same at every member, as
   * far as a reply has room for it.
   */
  private failure(error: unknown): Uint8Array {
    this.tellFailure(error);
    const bytes = new Uint8Array(this.member.layout.sizes.replyBytesMax);
    // Ends with a whole character.
    const { written } = new TextEncoder().encodeInto(messageOf(error), bytes);
    return bytes.subarray(0, written);
  }
}

function messageOf(error: unknown): string {
  try {
    // The message of an error need not be text.
    return String(error instanceof Error ? error.message || error.name : error);
  } catch {
    // Whatever was thrown can't be converted to text.
    return '';
  }
}

/** Has the leader dropped entries that this member has not delivered? */
export function isLeftBehind(member: Member, log: LogRing): boolean {
  return missingBelow(member, log) > 0;
}

/**
 * The index of the log's first entry, if this member has yet to deliver an earlier one or lacks the state before it;
 * otherwise 0. If there is no entry yet, none was dropped. (Positions can't tell, since they wrap.)
 */
export function missingBelow(member: Member, log: LogRing | undefined): number {
  const missingState = member.hasState ? 0 : member.layout.sizes.firstIndex;
  if (log === undefined) return missingState;
  for (;;) {
    const { base } = log;
    const first = extend(member.near, numberAt(log, base));
    const isBehind = first > member.nextToDeliver && log.entryWords(base, log.marker, first) > 0;
    // The base may have moved on, and its entry may have been overwritten, while we looked.
    member.edges.memory.readFence();
    if (log.base === base) return isBehind ? first : missingState;
  }
}

/** How far a follower may deliver: the decided index that the leader has published. */
export function decidedIndex(member: Member, log: LogRing): number {
  // Entries are delivered without a look at their checks: they were written before this index and the marker.
  return extend(member.nextToDeliver, log.decided);
}
