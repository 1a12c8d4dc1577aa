/**
 * Slots: single records at fixed places, each overwritten by the next. A slot has one writer. Its reader never clears it,
 * but remembers what it saw last (H9, H10). Requests, grants, chunks of snapshots and the starts of feeds are slots.
 */
import { type Memory, OPEN } from '../../memory/contract.js';
import {
  copyWords,
  epochAt,
  FRAME_WORDS,
  HEAD_WORDS,
  numberAt,
  seal,
  slotAt,
  type Window,
  word,
  wordsOf,
} from '../../memory/record.js';
import { KIND } from '../tags.js';
import { readWide } from '../wide.js';

export class SlotReader {
  private readonly slot: Window;
  /** The record as it was when it was polled: the slot may change at any time. */
  readonly copy: Int32Array;
  private readonly copied: Window;
  /** Epoch and number of the record in `copy`; both 0 if there is none. */
  private seenEpoch = 0;
  private seenNumber = 0;

  constructor(words: Int32Array, at: number, bodyWordsMax: number) {
    this.slot = slotAt(words, at);
    this.copy = new Int32Array(bodyWordsMax + FRAME_WORDS);
    this.copied = slotAt(this.copy, 0);
  }

  /** Take the record, if it is whole and was not taken before. True if `copy` now holds it. */
  poll(): boolean {
    const { slot, copied, copy } = this;
    const epoch = epochAt(slot, 0);
    const number = numberAt(slot, 0);
    if (epoch === this.seenEpoch && number === this.seenNumber) return false;
    const words = word(slot, 0);
    if (words < FRAME_WORDS || words > copy.length) return false;
    copyWords(slot, 0, copied, 0, words);
    if (wordsOf(copied, 0, epoch, number, copy.length) === 0) return false;
    this.seenEpoch = epoch;
    this.seenNumber = number;
    return true;
  }

  /** Does the slot still hold the record that was polled last, with nothing of another? */
  isUnchanged(): boolean {
    return epochAt(this.slot, 0) === this.seenEpoch && numberAt(this.slot, 0) === this.seenNumber;
  }

  /** Treat the record in the slot as not seen. */
  forget(): void {
    this.seenEpoch = 0;
    this.seenNumber = 0;
  }

  get epoch(): number {
    return this.seenEpoch;
  }

  body(field: number): number {
    return this.copy[HEAD_WORDS + field];
  }

  wide(field: number): number {
    return readWide(this.copy, HEAD_WORDS + field);
  }
}

export class SlotWriter {
  private readonly window: Window;
  /** The body to fill in before `post`. */
  readonly body: Int32Array;

  constructor(bodyWordsMax: number) {
    const words = new Int32Array(bodyWordsMax + FRAME_WORDS);
    this.window = slotAt(words, 0);
    this.body = words.subarray(HEAD_WORDS);
  }

  post(
    memory: Memory,
    peer: number,
    to: number,
    bodyWords: number,
    epoch: number,
    number: number,
    tag: number = KIND.none,
  ): void {
    const words = seal(this.window, 0, bodyWords, epoch, number);
    memory.write(peer, to, this.window.words, 0, words, OPEN, tag);
  }
}
