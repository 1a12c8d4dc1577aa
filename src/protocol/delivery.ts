/**
 * Delivering decided entries, in log order, each once (paper steps 2.4 and 2.6). The leader and the
 * followers do exactly the same here; only the leader also sends the replies.
 */
import { ENTRY, MESSAGE } from '../memory/layout.js';
import { copyWords, extend, HEAD_WORDS, numberAt, slotAt, type Window } from '../memory/window.js';
import type { Application, Delivery } from './edges.js';
import type { LogRing } from './log.js';
import type { Member } from './member.js';
import { contains } from './overlay.js';

const AT = HEAD_WORDS + ENTRY.message;

/** One entry, copied out of the log so that nothing can change it while it is delivered. */
class CopiedEntry implements Delivery {
  client = 0;
  call = 0;
  session = 0;
  number = 0;
  entry = 0;
  destinationsLow = 0;
  destinationsHigh = 0;
  readonly window: Window;
  private readonly bytes: Uint8Array;

  constructor(
    readonly group: number,
    wordsMax: number,
  ) {
    this.window = slotAt(new Int32Array(wordsMax), 0);
    this.bytes = new Uint8Array(this.window.words.buffer);
  }

  get payload(): Uint8Array {
    const start = (AT + MESSAGE.payload) * 4;
    return this.bytes.subarray(start, start + this.window.words[AT + MESSAGE.payloadBytes]!);
  }

  load(log: LogRing, position: number, entryWords: number): void {
    copyWords(log, position, this.window, 0, entryWords);
    const { words } = this.window;
    this.client = words[AT + MESSAGE.client]! & 0xffff;
    this.call = words[AT + MESSAGE.client]! >>> 16;
    this.session = words[AT + MESSAGE.session]!;
    this.number = words[AT + MESSAGE.number]!;
    this.entry = words[AT + MESSAGE.entry]!;
    this.destinationsLow = words[AT + MESSAGE.destinationsLow]!;
    this.destinationsHigh = words[AT + MESSAGE.destinationsHigh]!;
  }
}

export class Delivering {
  private readonly message: CopiedEntry;

  constructor(
    private readonly member: Member,
    private readonly application: Application,
  ) {
    this.message = new CopiedEntry(member.group, member.layout.entryWordsMax);
  }

  /**
   * Deliver from `log`, which holds entries of `ballot`, everything below index `decided`. Stops
   * early at an entry that is not there; returns how many were delivered.
   */
  deliver(log: LogRing, ballot: number, decided: number, sendsReplies: boolean): number {
    const { member } = this;
    let count = 0;
    while (member.nextToDeliver < decided) {
      const position = member.nextPosition;
      const words = log.entryWords(position, ballot, member.nextToDeliver);
      if (words === 0) break;
      this.message.load(log, position, words);
      // Whoever thinks us dead may drop this entry while we copy it.
      if (isLeftBehind(member, log)) break;
      this.apply(sendsReplies);
      member.nextToDeliver++;
      member.nextPosition = (position + words) | 0;
      count++;
    }
    return count;
  }

  private apply(sendsReplies: boolean): void {
    const { member, message } = this;
    const { observer } = member.edges;
    member.delivered.note(message.window, 0, member.layout.sizes.origin);
    if (!contains(message.destinationsLow, message.destinationsHigh, member.group)) {
      observer.relayed(message.session, message.entry, message.number);
      return;
    }
    const reply = this.application.deliver(message);
    member.deliveries++;
    const { client, call, session, entry, number } = message;
    const isKept = member.replies.keep(client, call, session, entry, number, reply);
    if (isKept && sendsReplies) member.replies.send(client, call);
  }
}

/**
 * Has the leader dropped entries that this member has not delivered? The entry at the base tells; where
 * there is none yet, nothing was dropped. (Positions wrap and can't tell.)
 */
export function isLeftBehind(member: Member, log: LogRing): boolean {
  for (;;) {
    const { base } = log;
    const first = extend(member.horizon, numberAt(log, base));
    const isBehind = first > member.nextToDeliver && log.entryWords(base, log.marker, first) > 0;
    // The base may move on, and its entry be overwritten, while we look.
    if (log.base === base) return isBehind;
  }
}

/** How far a follower may deliver: what the leader says is decided. */
export function decidedIndex(member: Member, log: LogRing): number {
  return extend(member.nextToDeliver, log.decided);
}
