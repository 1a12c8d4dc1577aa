/**
 * The message of a log entry, as the application sees it. There is one for all messages of a member, since delivering must not
 * allocate.
 *
 * delivery.ts has copied the entry out of the log, or shows it where it lies in the log. Then it is copied as soon as the
 * application reads its payload: an application gets no views of memory that others can write to.
 */

import { copyPart, HEAD_WORDS } from '../../memory/record.js';
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
  /** Where the message lies: in private memory, or in the log. */
  private words: Int32Array;
  /** Where it starts there. */
  private at = 0;

  constructor(
    readonly group: number,
    /** Private memory, with room for an entry. */
    private readonly copied: Int32Array,
  ) {
    this.words = copied;
    this.bytes = new Uint8Array(copied.buffer);
    this.views = new Array<undefined>(VIEWS).fill(undefined);
  }

  /** Show the message that starts at `at`. Its entry does not wrap there. */
  show(words: Int32Array, at: number): void {
    this.words = words;
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
    const { views, copied } = this;
    if (this.words !== copied) this.copyOut();
    const { at } = this;
    const bytes = copied[at + MESSAGE.payloadBytes];
    const known = at < views.length ? views[at] : undefined;
    if (known !== undefined && known.length === bytes) return known;
    const start = (at + MESSAGE.payload) * 4;
    const view = this.bytes.subarray(start, start + bytes);
    if (at < views.length) views[at] = view;
    return view;
  }

  private copyOut(): void {
    const { words, at, copied } = this;
    copyPart(words, at - HEAD_WORDS, copied, 0, words[at - HEAD_WORDS]);
    this.words = copied;
    this.at = HEAD_WORDS;
  }
}
