/**
 * HyperLogLogs as Redis keeps them in strings, so that both can read what the other has written.
 *
 * There are 2^14 registers. An element selects one by 14 bits of its hash, and the register keeps the greatest count of zeros that was
 * seen at the beginning of the other bits, plus one.
 *
 * | bytes | what |
 * |---|---|
 * | 4 | `HYLL` |
 * | 1 | 0: dense, 1: sparse |
 * | 3 | zero |
 * | 8 | the estimate; the highest bit of the last byte says that it is not valid |
 * | … | registers: dense, 6 bits each, from low bits to high ones; or sparse |
 *
 * Sparse registers are runs: `00nnnnnn` is n + 1 zeros, `01nnnnnn nnnnnnnn` is n + 1 zeros, `1vvvvvnn` is n + 1 times the value v + 1.
 */

import type { Bytes } from '../resp/reply.js';
import { Hash64 } from './murmur-hash.js';
import { ownBuffer } from './own-buffer.js';

export const REGISTERS = 1 << 14;
/** How many bits of a hash do not select the register. */
const HASH_BITS = 50;
const SEED = 0xadc83b19;
const HEADER_BYTES = 16;
const DENSE_BYTES = HEADER_BYTES + (REGISTERS * 6) / 8;
const DENSE = 0;
const SPARSE = 1;

/** Beyond this, or with greater values, registers are kept dense. */
const SPARSE_BYTES_MAX = 3_000;
const SPARSE_VALUE_MAX = 32;
const SHORT_ZEROS_MAX = 64;
const SAME_VALUES_MAX = 4;
/** So many runs from the changed one on are joined if they have the same value. */
const JOINED_RUNS = 5;

const hash = new Hash64();

/** A string that has the form of a HyperLogLog has wrong runs. */
export class CorruptedError extends Error {}

export class HyperLogLog {
  /** @param bytes  owns its memory; to be changed in place */
  constructor(public bytes: Buffer) {}

  static create(): HyperLogLog {
    const bytes = ownBuffer(HEADER_BYTES + 2);
    bytes.write('HYLL', 'latin1');
    bytes[4] = SPARSE;
    writeZeros(bytes, HEADER_BYTES, REGISTERS);
    return new HyperLogLog(bytes);
  }

  /** Whether a string has the form of one. */
  static is(bytes: Buffer): boolean {
    if (bytes.length < HEADER_BYTES || bytes.toString('latin1', 0, 4) !== 'HYLL') return false;
    return bytes[4] === SPARSE || (bytes[4] === DENSE && bytes.length === DENSE_BYTES);
  }

  get isDense(): boolean {
    return this.bytes[4] === DENSE;
  }

  /** @returns whether a register has changed */
  add(element: Bytes): boolean {
    const { high, low } = hash.digest(element, SEED);
    return this.raise(low & (REGISTERS - 1), zerosOf(high, low >>> 14) + 1);
  }

  /** The estimate that Redis has stored. @returns undefined if it does not hold any more */
  get storedEstimate(): bigint | undefined {
    return this.bytes[15] & 0x80 ? undefined : this.bytes.readBigUInt64LE(8);
  }

  /** The stored estimate does not hold any more. */
  invalidate(): void {
    this.bytes[15] |= 0x80;
  }

  /** Raises a register to this value. @returns whether it was lower */
  raise(index: number, value: number): boolean {
    return this.isDense ? this.#raiseDense(index, value) : this.#raiseSparse(index, value);
  }

  /** Raises registers to those of this one. */
  raiseAll(registers: Uint8Array): void {
    const { bytes } = this;
    if (this.isDense) {
      for (let i = 0; i < REGISTERS; i++) {
        const value = denseRegister(bytes, i);
        if (value > registers[i]) registers[i] = value;
      }
      return;
    }
    let index = 0;
    for (let at = HEADER_BYTES; at < bytes.length; at += runBytes(bytes[at])) {
      const value = runValue(bytes[at]);
      const end = index + runLength(bytes, at);
      if (end > REGISTERS) throw new CorruptedError();
      for (; index < end; index++) if (value > registers[index]) registers[index] = value;
    }
    if (index !== REGISTERS) throw new CorruptedError();
  }

  makeDense(): void {
    if (this.isDense) return;
    const registers = new Uint8Array(REGISTERS);
    this.raiseAll(registers);
    const dense = ownBuffer(DENSE_BYTES);
    this.bytes.copy(dense, 0, 0, HEADER_BYTES);
    dense[4] = DENSE;
    this.bytes = dense;
    for (let i = 0; i < REGISTERS; i++) if (registers[i] > 0) this.#raiseDense(i, registers[i]);
  }

  #raiseDense(index: number, value: number): boolean {
    const { bytes } = this;
    if (denseRegister(bytes, index) >= value) return false;
    const at = HEADER_BYTES + ((index * 6) >> 3);
    const shift = (index * 6) & 7;
    bytes[at] = (bytes[at] & ~(63 << shift)) | (value << shift);
    if (shift > 2) {
      bytes[at + 1] = (bytes[at + 1] & ~(63 >> (8 - shift))) | (value >> (8 - shift));
    }
    return true;
  }

  #raiseSparse(index: number, value: number): boolean {
    if (value > SPARSE_VALUE_MAX) return this.#raiseAsDense(index, value);
    const { bytes } = this;
    let before = HEADER_BYTES;
    let at = HEADER_BYTES;
    let first = 0;
    for (;;) {
      if (at >= bytes.length) throw new CorruptedError();
      const length = runLength(bytes, at);
      if (index < first + length) break;
      first += length;
      before = at;
      at += runBytes(bytes[at]);
    }
    const old = runValue(bytes[at]);
    if (old >= value) return false;
    const last = first + runLength(bytes, at) - 1;
    const runs: number[] = [];
    pushRun(runs, old, index - first);
    pushRun(runs, value, 1);
    pushRun(runs, old, last - index);
    const removed = runBytes(bytes[at]);
    const length = bytes.length + runs.length - removed;
    if (runs.length > removed && length > SPARSE_BYTES_MAX) return this.#raiseAsDense(index, value);
    if (runs.length === removed) bytes.set(runs, at);
    else {
      this.bytes = ownBuffer(length);
      bytes.copy(this.bytes, 0, 0, at);
      this.bytes.set(runs, at);
      bytes.copy(this.bytes, at + runs.length, at + removed);
    }
    this.#joinRuns(before);
    return true;
  }

  #raiseAsDense(index: number, value: number): boolean {
    this.makeDense();
    return this.#raiseDense(index, value);
  }

  /** Joins runs of the same value, from the one before the changed one on. */
  #joinRuns(from: number): void {
    const { bytes } = this;
    let end = bytes.length;
    let at = from;
    for (let left = JOINED_RUNS; at < end && left > 0; left--) {
      const value = runValue(bytes[at]);
      if (value > 0 && at + 1 < end && runValue(bytes[at + 1]) === value) {
        const length = runLength(bytes, at) + runLength(bytes, at + 1);
        if (length <= SAME_VALUES_MAX) {
          bytes[at + 1] = sameValues(value, length);
          bytes.copyWithin(at, at + 1, end);
          end--;
          continue;
        }
      }
      at += runBytes(bytes[at]);
    }
    if (end === bytes.length) return;
    this.bytes = ownBuffer(end);
    bytes.copy(this.bytes, 0, 0, end);
  }
}

function denseRegister(bytes: Buffer, index: number): number {
  const at = HEADER_BYTES + ((index * 6) >> 3);
  const shift = (index * 6) & 7;
  return ((bytes[at] | ((bytes[at + 1] ?? 0) << 8)) >> shift) & 63;
}

// ── Runs ──

function runBytes(head: number): number {
  return (head & 0xc0) === 0x40 ? 2 : 1;
}

function runValue(head: number): number {
  return head & 0x80 ? ((head >> 2) & 31) + 1 : 0;
}

function runLength(bytes: Buffer, at: number): number {
  const head = bytes[at];
  if (head & 0x80) return (head & 3) + 1;
  if ((head & 0x40) === 0) return (head & 63) + 1;
  if (at + 1 === bytes.length) throw new CorruptedError();
  return (((head & 63) << 8) | bytes[at + 1]) + 1;
}

function sameValues(value: number, length: number): number {
  return 0x80 | ((value - 1) << 2) | (length - 1);
}

function writeZeros(bytes: Buffer | number[], at: number, length: number): void {
  if (length <= SHORT_ZEROS_MAX) bytes[at] = length - 1;
  else {
    bytes[at] = 0x40 | ((length - 1) >> 8);
    bytes[at + 1] = (length - 1) & 0xff;
  }
}

function pushRun(runs: number[], value: number, length: number): void {
  if (length === 0) return;
  if (value === 0) writeZeros(runs, runs.length, length);
  else runs.push(sameValues(value, length));
}

/** How many zeros the other bits of the hash begin with, from low ones to high ones. */
function zerosOf(high: number, low: number): number {
  if (low !== 0) return trailingZeros(low);
  return high !== 0 ? HASH_BITS - 32 + trailingZeros(high) : HASH_BITS;
}

function trailingZeros(value: number): number {
  return 31 - Math.clz32(value & -value);
}

// ── The estimate ──

/** 1 / (2 ln 2) */
const ALPHA = 0.7213475204444817;

/**
 * How many different elements were added, about: the improved estimator of Otmar Ertl, "New cardinality estimation algorithms for
 * HyperLogLog sketches" (2017).
 */
export function estimate(registers: Uint8Array): number {
  const counts = new Float64Array(HASH_BITS + 2);
  for (const value of registers) counts[value]++;
  let z = REGISTERS * tau((REGISTERS - counts[HASH_BITS + 1]) / REGISTERS);
  for (let value = HASH_BITS; value >= 1; value--) z = 0.5 * (z + counts[value]);
  z += REGISTERS * sigma(counts[0] / REGISTERS);
  return Math.round((ALPHA * REGISTERS * REGISTERS) / z);
}

function sigma(share: number): number {
  if (share === 1) return Infinity;
  let x = share;
  let y = 1;
  let z = x;
  for (let before = Number.NaN; before !== z; ) {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  }
  return z;
}

function tau(share: number): number {
  if (share === 0 || share === 1) return 0;
  let x = share;
  let y = 1;
  let z = 1 - x;
  for (let before = Number.NaN; before !== z; ) {
    x = Math.sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) ** 2 * y;
  }
  return z / 3;
}
