/**
 * Delivering decided entries, in log order, each once (paper steps 2.4 and 2.6). The leader and the
 * followers do exactly the same here; only the leader also sends the replies.
 */
import { FAILED, MESSAGE } from '../memory/layout.js';
import {
  extend,
  FRAME_WORDS,
  framedWords,
  HEAD_WORDS,
  numberAt,
  slotAt,
  type Window,
} from '../memory/window.js';
import { InvariantError } from './assert.js';
import type { Application, Delivery } from './edges.js';
import type { LogRing } from './log.js';
import type { Member } from './member.js';
import { contains } from './overlay.js';
import type { Reply } from './replies.js';

/** How much of the log is copied out at a time, unless one entry is larger. */
const STRETCH_WORDS = 2048;
/** A loop for a few words, the engine's own copy for many. */
const LOOP_WORDS_MAX = 64;

/** The message of the entry at `at` of a private copy, as the application sees it. */
class CopiedMessage implements Delivery {
  client = 0;
  call = 0;
  session = 0;
  number = 0;
  entry = 0;
  destinationsLow = 0;
  destinationsHigh = 0;
  private payloadAt = 0;
  private payloadBytes = 0;
  private readonly bytes: Uint8Array;

  constructor(
    readonly group: number,
    private readonly words: Int32Array,
  ) {
    this.bytes = new Uint8Array(words.buffer);
  }

  get payload(): Uint8Array {
    return this.bytes.subarray(this.payloadAt, this.payloadAt + this.payloadBytes);
  }

  at(position: number): void {
    const { words } = this;
    const message = position + HEAD_WORDS;
    const names = words[message + MESSAGE.client]!;
    this.client = names & 0xffff;
    this.call = names >>> 16;
    this.session = words[message + MESSAGE.session]!;
    this.number = words[message + MESSAGE.number]!;
    this.entry = words[message + MESSAGE.entry]!;
    this.destinationsLow = words[message + MESSAGE.destinationsLow]!;
    this.destinationsHigh = words[message + MESSAGE.destinationsHigh]!;
    this.payloadAt = (message + MESSAGE.payload) * 4;
    this.payloadBytes = words[message + MESSAGE.payloadBytes]!;
  }
}

export class Delivering {
  /** Part of the log, copied out so that nothing can change it while it is delivered. */
  private readonly stretch: Window;
  private readonly message: CopiedMessage;
  private readonly entryWordsMax: number;
  /** Words of the last entry: the next ones are probably as long. */
  private lastWords: number;

  constructor(
    private readonly member: Member,
    private readonly application: Application,
  ) {
    const { entryWordsMax, logWords } = member.layout;
    const words = Math.min(logWords, Math.max(STRETCH_WORDS, entryWordsMax));
    this.stretch = slotAt(new Int32Array(words), 0);
    this.message = new CopiedMessage(member.group, this.stretch.words);
    this.entryWordsMax = entryWordsMax;
    this.lastWords = entryWordsMax;
  }

  /**
   * Deliver from `log`, which holds entries of `ballot`, everything below index `decided`. Stops
   * early at an entry that is not there; returns how many were delivered.
   */
  deliver(log: LogRing, ballot: number, decided: number, sendsReplies: boolean): number {
    const { member } = this;
    const first = member.nextToDeliver;
    while (member.nextToDeliver < decided) {
      const words = this.copyOut(log, ballot, decided - member.nextToDeliver);
      // Whoever thinks us dead may drop entries while we copy them.
      member.edges.memory.readFence();
      if (words === 0 || isLeftBehind(member, log)) break;
      if (this.deliverCopied(words, ballot, decided, sendsReplies) === 0) break;
    }
    return member.nextToDeliver - first;
  }

  /** Copy what is probably the next `count` entries, one at least; returns how many words that is. */
  private copyOut(log: LogRing, ballot: number, count: number): number {
    const { member, stretch } = this;
    const position = member.nextPosition;
    const first = log.decidedEntryWords(position, ballot, member.nextToDeliver);
    if (first === 0) return 0;
    const wanted = Math.min(count * this.lastWords, stretch.words.length);
    const words = Math.max(first, wanted);
    const place = log.at + (position & log.mask);
    const untilWrap = Math.min(words, log.at + log.mask + 1 - place);
    copyPart(log.words, place, stretch.words, 0, untilWrap);
    copyPart(log.words, log.at, stretch.words, untilWrap, words - untilWrap);
    return words;
  }

  /** Deliver those entries of the stretch that were copied entirely. */
  private deliverCopied(
    words: number,
    ballot: number,
    decided: number,
    sendsReplies: boolean,
  ): number {
    const { member, stretch, entryWordsMax } = this;
    let at = 0;
    while (member.nextToDeliver < decided && at + FRAME_WORDS <= words) {
      const here = stretch.words[at]!;
      if (here > words - at) break;
      const index = member.nextToDeliver;
      if (framedWords(stretch, at, ballot, index, entryWordsMax) === 0) break;
      this.message.at(at);
      member.delivered.note(stretch, at, member.layout.sizes.origin);
      this.apply(sendsReplies);
      member.nextToDeliver++;
      member.nextPosition = (member.nextPosition + here) | 0;
      this.lastWords = here;
      at += here;
    }
    return at;
  }

  private apply(sendsReplies: boolean): void {
    const { member, message } = this;
    const { client, call, session, entry, number } = message;
    if (!contains(message.destinationsLow, message.destinationsHigh, member.group)) {
      member.edges.observer.relayed(session, entry, number);
      return;
    }
    const reply = this.serve();
    member.deliveries++;
    const isKept = member.replies.keep(client, call, session, entry, number, reply);
    if (isKept && sendsReplies) member.replies.send(client, call);
  }

  /** A service fails at every member or at none: to carry on is to agree. */
  private serve(): Reply {
    try {
      return this.application.deliver(this.message);
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      const { observer } = this.member.edges;
      observer.transition('service failed');
      observer.failed(error);
      return FAILED;
    }
  }
}

function copyPart(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  count: number,
): void {
  if (count > LOOP_WORDS_MAX) to.set(from.subarray(fromAt, fromAt + count), toAt);
  else for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i]!;
}

/**
 * Has the leader dropped entries that this member has not delivered? The entry at the base tells; where
 * there is none yet, nothing was dropped. (Positions wrap and can't tell.)
 */
export function isLeftBehind(member: Member, log: LogRing): boolean {
  for (;;) {
    const { base } = log;
    const first = extend(member.near, numberAt(log, base));
    const isBehind = first > member.nextToDeliver && log.entryWords(base, log.marker, first) > 0;
    // The base may move on, and its entry be overwritten, while we look.
    member.edges.memory.readFence();
    if (log.base === base) return isBehind;
  }
}

/** How far a follower may deliver: what the leader says is decided. */
export function decidedIndex(member: Member, log: LogRing): number {
  const { decided } = log;
  // The entries, which are not hashed any more, were written before marker and index.
  member.edges.memory.readFence();
  return extend(member.nextToDeliver, decided);
}
