/**
 * The message of a log entry that delivery.ts has copied out of the log, as the application sees it. There is one for all
 * messages of a member, since delivering must not allocate.
 */

import { HEAD_WORDS } from '../../memory/record.js';
import type { Delivery } from '../edges.js';
import {
  CANCEL,
  entryGroupOf,
  MARK,
  MESSAGE,
  markNumberIn,
  numberIn,
  OWN,
  SOURCE,
  sourceIn,
} from '../layout.js';

/** In `MESSAGE.client`: the client slot. */
export const CLIENT_MASK = 0xffff;

/** Views are kept of payloads whose messages start before this word. */
const VIEWS = 2048;

export class CopiedMessage implements Delivery {
  private readonly bytes: Uint8Array;
  /** Views of payloads, by where their messages start: messages of the same size lie at the same places again and again. */
  private readonly views: (Uint8Array | undefined)[];
  /** Where the message starts in `words`. */
  private at = 0;

  constructor(
    readonly group: number,
    private readonly words: Int32Array,
  ) {
    this.bytes = new Uint8Array(words.buffer);
    this.views = new Array<undefined>(VIEWS).fill(undefined);
  }

  /** Show the message that starts at `at`. */
  show(at: number): void {
    this.at = at;
  }

  get client(): number {
    return this.words[this.at + MESSAGE.client] & CLIENT_MASK;
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

  /** Is it a cancel or a mark, which the service does not get? */
  get isControl(): boolean {
    return (this.words[this.at + MESSAGE.payloadBytes] & (CANCEL | MARK)) !== 0;
  }

  get isMark(): boolean {
    return (this.words[this.at + MESSAGE.payloadBytes] & MARK) !== 0;
  }

  /** The number of a mark; 0 if it has none, or is no mark. */
  get markNumber(): number {
    return markNumberIn(this.words, this.at);
  }

  /** The kind of an own entry; 0 if this is a message. */
  get ownKind(): number {
    const { words, at } = this;
    const source = at - HEAD_WORDS + sourceIn(words[at - HEAD_WORDS]);
    return words[source + SOURCE.id] === OWN ? words[source + SOURCE.number] : 0;
  }

  get payload(): Uint8Array {
    const { at, views } = this;
    const bytes = this.words[at + MESSAGE.payloadBytes];
    const known = at < views.length ? views[at] : undefined;
    if (known !== undefined && known.length === bytes) return known;
    const start = (at + MESSAGE.payload) * 4;
    const view = this.bytes.subarray(start, start + bytes);
    if (at < views.length) views[at] = view;
    return view;
  }
}
