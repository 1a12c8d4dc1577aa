/**
 * Slots: single records at fixed places, each overwritten by the next. Never cleared by the reader,
 * who remembers what it saw last instead (H9, H10).
 */
import { type Memory, OPEN } from '../memory/contract.js';
import {
  FRAME_WORDS,
  HEAD_WORDS,
  UNWRAPPED,
  type Window,
  epochAt,
  numberAt,
  seal,
  wordsOf,
} from '../memory/window.js';
import { KIND } from './tags.js';

export class SlotReader {
  private readonly window: Window;
  private readonly wordsMax: number;
  private seenEpoch = 0;
  private seenNumber = 0;

  constructor(
    private readonly words: Int32Array,
    readonly at: number,
    bodyWordsMax: number,
  ) {
    this.window = { words, at, mask: UNWRAPPED };
    this.wordsMax = bodyWordsMax + FRAME_WORDS;
  }

  /** True once for every record that stands here whole. */
  poll(): boolean {
    const epoch = epochAt(this.window, 0);
    const number = numberAt(this.window, 0);
    if (epoch === this.seenEpoch && number === this.seenNumber) return false;
    if (wordsOf(this.window, 0, epoch, number, this.wordsMax) === 0) return false;
    this.seenEpoch = epoch;
    this.seenNumber = number;
    return true;
  }

  /** Take the record that stands here as not seen. */
  forget(): void {
    this.seenEpoch = 0;
    this.seenNumber = 0;
  }

  get epoch(): number {
    return this.seenEpoch;
  }

  body(field: number): number {
    return this.words[this.at + HEAD_WORDS + field]!;
  }

  /** Offset of the body in the region. */
  get bodyAt(): number {
    return this.at + HEAD_WORDS;
  }
}

export class SlotWriter {
  private readonly window: Window;
  /** The body to fill in before `post`. */
  readonly body: Int32Array;

  constructor(bodyWordsMax: number) {
    const words = new Int32Array(bodyWordsMax + FRAME_WORDS);
    this.window = { words, at: 0, mask: UNWRAPPED };
    this.body = words.subarray(HEAD_WORDS);
  }

  post(memory: Memory, peer: number, to: number, bodyWords: number, epoch: number, number: number): void {
    const words = seal(this.window, 0, bodyWords, epoch, number);
    memory.write(peer, to, this.window.words, 0, words, OPEN, KIND.none);
  }
}
