/**
 * Delivering decided entries, in log order, each once (paper steps 2.4 and 2.6). Leaders, followers and recovering
 * members all deliver by `Delivering.deliver`; only a leader also sends the replies.
 *
 * Entries are copied out of the log before they are delivered, a stretch of them at a time, so that nothing can change
 * them meanwhile.
 *
 * Invariant: `nextToDeliver`, `nextPosition` and the counters of a member advance together, entry by entry.
 */

import {
  copyPart,
  copyWords,
  extend,
  FRAME_WORDS,
  framedWords,
  HEAD_WORDS,
  numberAt,
  slotAt,
  type Window,
  word,
} from '../../memory/record.js';
import { assert, InvariantError } from '../assert.js';
import type { Application, Delivery } from '../edges.js';
import {
  entryGroupOf,
  MESSAGE,
  numberIn,
  OUTCOME,
  OWN,
  OWN_KIND,
  SOURCE,
  sourceIn,
} from '../layout.js';
import type { Member } from '../member.js';
import { contains } from '../overlay.js';
import type { LogRing } from './log.js';

/** How much of the log is copied out at a time, unless one entry is larger. */
const STRETCH_WORDS = 2048;

/** The message of one entry of the stretch, as the application sees it. One for all: this path must not allocate. */
class CopiedMessage implements Delivery {
  private readonly bytes: Uint8Array;
  /** Where the message starts in `words`. */
  private at = 0;

  constructor(
    readonly group: number,
    private readonly words: Int32Array,
  ) {
    this.bytes = new Uint8Array(words.buffer);
  }

  /** Show the message of the entry at `entryAt`. */
  show(entryAt: number): void {
    this.at = entryAt + HEAD_WORDS;
  }

  get client(): number {
    return this.words[this.at + MESSAGE.client] & 0xffff;
  }

  get call(): number {
    return this.words[this.at + MESSAGE.client] >>> 16;
  }

  get session(): number {
    return this.words[this.at + MESSAGE.session];
  }

  get numberLow(): number {
    return this.words[this.at + MESSAGE.number];
  }

  get series(): number {
    return this.words[this.at + MESSAGE.series];
  }

  get number(): number {
    return numberIn(this.series, this.numberLow);
  }

  get entryGroup(): number {
    return entryGroupOf(this.series);
  }

  get destinationsLow(): number {
    return this.words[this.at + MESSAGE.destinationsLow];
  }

  get destinationsHigh(): number {
    return this.words[this.at + MESSAGE.destinationsHigh];
  }

  /** The kind of an own entry; 0 if this is a message. */
  get ownKind(): number {
    const { words, at } = this;
    const source = at - HEAD_WORDS + sourceIn(words[at - HEAD_WORDS]);
    return words[source + SOURCE.id] === OWN ? words[source + SOURCE.number] : 0;
  }

  get payload(): Uint8Array {
    const start = (this.at + MESSAGE.payload) * 4;
    return this.bytes.subarray(start, start + this.words[this.at + MESSAGE.payloadBytes]);
  }
}

export class Delivering {
  /** The copied part of the log. */
  private readonly stretch: Window;
  private readonly message: CopiedMessage;
  private readonly entryWordsMax: number;
  private readonly firstIndex: number;
  /** Words of the entry delivered last: the next ones are probably as long. */
  private lastWords: number;

  constructor(
    private readonly member: Member,
    private readonly application: Application,
  ) {
    const { entryWordsMax, logWords, sizes } = member.layout;
    this.firstIndex = sizes.firstIndex;
    const words = Math.min(logWords, Math.max(STRETCH_WORDS, entryWordsMax));
    this.stretch = slotAt(new Int32Array(words), 0, member.layout.logSalt(member.group));
    this.message = new CopiedMessage(member.group, this.stretch.words);
    this.entryWordsMax = entryWordsMax;
    this.lastWords = entryWordsMax;
  }

  /**
   * Deliver from `log`, which holds entries of `ballot`, all below index `decided`. Stops early at an entry that is not
   * there. Returns how many were delivered.
   */
  deliver(log: LogRing, ballot: number, decided: number, leads: boolean): number {
    const { member } = this;
    const first = member.nextToDeliver;
    while (member.nextToDeliver < decided) {
      const words = this.copyOut(log, decided - member.nextToDeliver);
      // If we lag, the leader may drop entries while we copy them. Our own log only we ourselves truncate.
      if (!leads && this.mayBeOverwritten(log)) break;
      if (this.deliverCopied(words, ballot, decided, leads) === 0) break;
    }
    return member.nextToDeliver - first;
  }

  /**
   * Deliver entries of `ballot` that were fetched from a leader's backlog: consecutive, whole and decided. The first one
   * is the next to deliver.
   */
  deliverFetched(entries: Int32Array, ballot: number): void {
    const { stretch } = this;
    for (let at = 0; at < entries.length; ) {
      const words = Math.min(stretch.words.length, entries.length - at);
      copyPart(entries, at, stretch.words, 0, words);
      const delivered = this.deliverCopied(words, ballot, Number.POSITIVE_INFINITY, false);
      assert(delivered > 0, 'a fetched backlog consists of the next entries');
      at += delivered;
    }
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

  /** Deliver those entries of the stretch that were copied entirely. Returns their words. */
  private deliverCopied(words: number, ballot: number, decided: number, leads: boolean): number {
    const { member, stretch, entryWordsMax, firstIndex } = this;
    const { delivered } = member;
    let index = member.nextToDeliver;
    let at = 0;
    while (index < decided && at + FRAME_WORDS <= words) {
      const here = stretch.words[at];
      if (here > words - at) break;
      // An entry is decided after it is written, so it is whole. Its ends tell whether it is the right one.
      if (framedWords(stretch, at, ballot, index, entryWordsMax) === 0) break;
      this.message.show(at);
      delivered.note(stretch, at, firstIndex);
      this.apply(index, leads);
      member.nextToDeliver = ++index;
      member.nextPosition = (member.nextPosition + here) | 0;
      this.lastWords = here;
      at += here;
    }
    return at;
  }

  private apply(index: number, leads: boolean): void {
    const { member, message } = this;
    const { client, call, session, series, numberLow } = message;
    if (!contains(message.destinationsLow, message.destinationsHigh, message.group)) {
      const kind = message.ownKind;
      if (kind === 0) member.edges.observer.relayed(message);
      else this.applyOwn(kind);
      return;
    }
    let reply: Uint8Array | undefined;
    let outcome: number = OUTCOME.ok;
    try {
      reply = this.application.deliver(message);
    } catch (error) {
      reply = this.failure(error);
      outcome = OUTCOME.failed;
    }
    member.deliveries++;
    const { replies } = member;
    const isKept = replies.keep(client, call, session, series, numberLow, outcome, reply, index);
    if (isKept && leads) replies.sendOrHold(client, call);
  }

  /** What the leader proposed itself. The counters have noted it already. */
  private applyOwn(kind: number): void {
    if (kind !== OWN_KIND.tick) return;
    try {
      this.application.tick(this.member.delivered.orderedUs);
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
    const { layout } = this.member;
    const bytes = new Uint8Array(layout.sizes.replyBytesMax);
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
 * The index of the log's first entry, if this member has yet to deliver an earlier one; otherwise 0. If there is no entry
 * yet, none was dropped. (Positions can't tell, since they wrap.)
 */
export function missingBelow(member: Member, log: LogRing): number {
  for (;;) {
    const { base } = log;
    const first = extend(member.near, numberAt(log, base));
    const isBehind = first > member.nextToDeliver && log.entryWords(base, log.marker, first) > 0;
    // The base may have moved on, and its entry may have been overwritten, while we looked.
    member.edges.memory.readFence();
    if (log.base === base) return isBehind ? first : 0;
  }
}

/** How far a follower may deliver: the decided index that the leader has published. */
export function decidedIndex(member: Member, log: LogRing): number {
  // Entries are delivered without a look at their checks: they were written before this index and the marker.
  return extend(member.nextToDeliver, log.decided);
}
