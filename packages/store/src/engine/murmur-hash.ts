/** MurmurHash2 of 64 bits (its variant A), in halves of 32 bits: HyperLogLogs of Redis are made with it. */

import type { Bytes } from '../resp/reply.js';

const FACTOR_HIGH = 0xc6a4a793;
const FACTOR_LOW = 0x5bd1e995;

/** Two halves, to be used again: nothing is allocated for a hash. */
export class Hash64 {
  high = 0;
  low = 0;

  /** @param seed  of 32 bits */
  digest(bytes: Bytes, seed: number): this {
    const { length } = bytes;
    this.#assign(0, length);
    this.#multiply();
    this.low ^= seed;
    const whole = length - (length % 8);
    for (let i = 0; i < whole; i += 8) this.#mix(word(bytes, i + 4, 4), word(bytes, i, 4));
    if (whole < length) {
      this.high ^= word(bytes, whole + 4, length - whole - 4);
      this.low ^= word(bytes, whole, Math.min(4, length - whole));
      this.#multiply();
    }
    this.#fold();
    this.#multiply();
    this.#fold();
    return this;
  }

  #mix(high: number, low: number): void {
    const beforeHigh = this.high;
    const beforeLow = this.low;
    this.#assign(high, low);
    this.#multiply();
    this.#fold();
    this.#multiply();
    this.high ^= beforeHigh;
    this.low ^= beforeLow;
    this.#multiply();
  }

  #assign(high: number, low: number): void {
    this.high = high | 0;
    this.low = low | 0;
  }

  /** Times the factor, modulo 2^64. */
  #multiply(): void {
    const { high, low } = this;
    this.high =
      (Math.imul(high, FACTOR_LOW) + Math.imul(low, FACTOR_HIGH) + upperHalf(low, FACTOR_LOW)) | 0;
    this.low = Math.imul(low, FACTOR_LOW);
  }

  /** Exclusive or with itself, shifted by 47 to the right. */
  #fold(): void {
    this.low ^= this.high >>> 15;
  }
}

/** The first byte is the lowest. @param count  how many bytes: 4 at most, none if it is not positive */
function word(bytes: Bytes, from: number, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) value |= bytes.charCodeAt(from + i) << (8 * i);
  return value;
}

/** The upper 32 bits of the product of two numbers of 32 bits. */
function upperHalf(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const other = aLow * bHigh + (middle & 0xffff);
  return aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(other / 0x10000);
}
