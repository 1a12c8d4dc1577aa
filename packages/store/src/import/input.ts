/** Bytes that come in pieces, from a file or a connection, as a window that moves over them. */

import type { Crc64 } from '../engine/rdb/crc64.js';

/** There is nothing more to come. */
export class InputEnded extends Error {
  override name = 'InputEnded';

  constructor() {
    super('the input has ended');
  }
}

export class Input {
  /** What is here are the bytes from `at` to `end`. */
  bytes: Buffer = Buffer.alloc(0);
  at = 0;
  end = 0;
  /** If it is not negative, the bytes from here on are kept as well, before `at`. */
  keptFrom = -1;

  /** Where `bytes[0]` is in the whole. */
  #base = 0;
  /** `bytes` is a buffer of our own: what comes next can be added to it. */
  #isOwned = false;
  #sum: Crc64 | undefined;
  /** What is before has been added to the sum. */
  #summedTo = 0;

  /** @param size  of the whole, as far as it is known */
  constructor(
    private readonly chunks: AsyncIterator<Buffer>,
    public size = Infinity,
  ) {}

  /** How many bytes are before `at`. */
  get offset(): number {
    return this.#base + this.at;
  }

  /** How many bytes can follow, from `at` on. */
  get left(): number {
    return this.size - this.offset;
  }

  /** Adds to `sum` what is read from here on. */
  beginSum(sum: Crc64): void {
    this.#sum = sum;
    this.#summedTo = this.at;
  }

  /** What has been read until here is in the sum afterwards, and nothing else. */
  endSum(): void {
    this.#addToSum();
    this.#sum = undefined;
  }

  /** Waits until so many bytes are here. @throws InputEnded */
  async need(count: number): Promise<void> {
    while (this.end - this.at < count) await this.more();
  }

  /** Waits for the next piece. @throws InputEnded */
  async more(): Promise<void> {
    const { done, value: chunk } = await this.chunks.next();
    if (done) throw new InputEnded();
    this.#addToSum();
    const from = this.keptFrom < 0 ? this.at : this.keptFrom;
    const held = this.end - from;
    if (held === 0) {
      this.#moveTo(chunk, from);
      this.#isOwned = false;
      this.end = chunk.length;
      return;
    }
    const needed = held + chunk.length;
    if (!this.#isOwned || this.end + chunk.length > this.bytes.length) {
      // Twice as large: a value that comes in many pieces is not copied for each of them.
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * held));
      this.bytes.copy(larger, 0, from, this.end);
      this.#moveTo(larger, from);
      this.#isOwned = true;
      this.end = held;
    }
    chunk.copy(this.bytes, this.end);
    this.end += chunk.length;
  }

  /** No more is read: the file or connection can be closed. */
  async close(): Promise<void> {
    await this.chunks.return?.();
  }

  /** @param from  becomes the beginning of `bytes` */
  #moveTo(bytes: Buffer, from: number): void {
    this.bytes = bytes;
    this.#base += from;
    this.at -= from;
    this.#summedTo = this.at;
    if (this.keptFrom >= 0) this.keptFrom = 0;
  }

  #addToSum(): void {
    this.#sum?.add(this.bytes.subarray(this.#summedTo, this.at));
    this.#summedTo = this.at;
  }
}
