/** Writes and reads bytes: little-endian numbers, byte strings with their lengths. */

import type { Bytes } from '../resp/reply.js';

/** Up to this length a loop is faster than a call of native code. */
const SHORT = 32;

export class ByteWriter {
  #buffer = Buffer.allocUnsafe(4096);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Begins anew, in the same memory. */
  reset(): this {
    this.#length = 0;
    return this;
  }

  uint8(value: number): this {
    const at = this.#take(1);
    this.#buffer[at] = value;
    return this;
  }

  uint32(value: number): this {
    this.setUint32(this.#take(4), value);
    return this;
  }

  /** Overwrites what `uint32` has written there. */
  setUint32(at: number, value: number): void {
    const buffer = this.#buffer;
    buffer[at] = value;
    buffer[at + 1] = value >>> 8;
    buffer[at + 2] = value >>> 16;
    buffer[at + 3] = value >>> 24;
  }

  float64(value: number): this {
    const at = this.#take(8);
    this.#buffer.writeDoubleLE(value, at);
    return this;
  }

  /** A byte string with its length. */
  bytes(value: Bytes): this {
    const { length } = value;
    const at = this.#take(4 + length);
    this.setUint32(at, length);
    const buffer = this.#buffer;
    if (length > SHORT) buffer.write(value, at + 4, 'latin1');
    else for (let i = 0; i < length; i++) buffer[at + 4 + i] = value.charCodeAt(i);
    return this;
  }

  /** Bytes without their length. @param length  how many, from the first one */
  raw(value: Uint8Array, length = value.length): this {
    const at = this.#take(length);
    if (length > SHORT) this.#buffer.set(value.subarray(0, length), at);
    else for (let i = 0; i < length; i++) this.#buffer[at + i] = value[i];
    return this;
  }

  /** What was written. Valid until the next write. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** What was written, as bytes of its own. */
  copy(): Buffer {
    return Buffer.from(this.written());
  }

  /** @returns where the next `count` bytes go */
  #take(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, at);
      this.#buffer = larger;
    }
    return at;
  }
}

export class ByteReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#buffer.length;
  }

  uint8(): number {
    return this.#buffer[this.#at++];
  }

  uint32(): number {
    const buffer = this.#buffer;
    const at = this.#at;
    this.#at = at + 4;
    return (
      (buffer[at] | (buffer[at + 1] << 8) | (buffer[at + 2] << 16) | (buffer[at + 3] << 24)) >>> 0
    );
  }

  float64(): number {
    this.#at += 8;
    return this.#buffer.readDoubleLE(this.#at - 8);
  }

  /** @param expected  if it is equal to this, no new string is made */
  bytes(expected = ''): Bytes {
    const length = this.uint32();
    const from = this.#at;
    this.#at += length;
    return length === expected.length && this.#has(expected, from)
      ? expected
      : this.#buffer.toString('latin1', from, this.#at);
  }

  #has(text: Bytes, from: number): boolean {
    for (let i = 0; i < text.length; i++) {
      if (this.#buffer[from + i] !== text.charCodeAt(i)) return false;
    }
    return true;
  }

  /** A view, valid as long as what is read from. */
  raw(length: number): Buffer {
    this.#at += length;
    return this.#buffer.subarray(this.#at - length, this.#at);
  }

  skip(length: number): void {
    this.#at += length;
  }
}
