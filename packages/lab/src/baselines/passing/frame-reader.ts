/**
 * Splits a byte stream into messages. Pieces may begin and end anywhere. The reader collects them in aligned words and decodes
 * every frame in place. Called by `tcp/link.ts`.
 *
 * Invariant: between calls, `words` begins with the `used` bytes of an incomplete frame.
 */
import { decode, FRAME_WORDS_MIN } from './frames.js';
import { Message } from './message.js';

const FIRST_BYTES = 1 << 17;

export class FrameReader {
  private readonly message = new Message();
  private words = new Int32Array(FIRST_BYTES / 4);
  private bytes = new Uint8Array(this.words.buffer);
  private used = 0;

  /** @param receive  called for each message, which is valid during the call */
  constructor(private readonly receive: (message: Message) => void) {}

  push(piece: Uint8Array): void {
    if (this.used + piece.length > this.bytes.length) this.grow(this.used + piece.length);
    this.bytes.set(piece, this.used);
    this.used += piece.length;
    this.handOver();
  }

  private handOver(): void {
    const { words, message } = this;
    const end = this.used >>> 2;
    let at = 0;
    while (at < end) {
      const length = words[at];
      if (length < FRAME_WORDS_MIN) throw new Error(`a frame of ${length} words is too short`);
      if (at + length > end) break;
      decode(message, words, at);
      at += length;
      this.receive(message);
    }
    const taken = at * 4;
    if (taken === 0) return;
    if (taken < this.used) this.bytes.copyWithin(0, taken, this.used);
    this.used -= taken;
  }

  private grow(bytesNeeded: number): void {
    let size = this.bytes.length;
    while (size < bytesNeeded) size *= 2;
    const words = new Int32Array(size / 4);
    words.set(this.words);
    this.words = words;
    this.bytes = new Uint8Array(words.buffer);
  }
}
