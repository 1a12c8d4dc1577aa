/** Bits of strings. Bit 0 is the highest one of the first byte. */

import type { Keyspace } from '../engine/keyspace.js';
import { ownBuffer } from '../engine/own-buffer.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { integer, option, syntaxError } from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec } from './spec.js';
import { STRING_BYTES_MAX } from './substrings.js';

const BAD_OFFSET = 'ERR bit offset is not an integer or out of range';
const BAD_BIT = 'ERR bit is not an integer or out of range';

const ONES = Uint8Array.from({ length: 256 }, (_, byte) => {
  let ones = 0;
  for (let rest = byte; rest > 0; rest >>>= 1) ones += rest & 1;
  return ones;
});

/** @param width  of a field; `#3` is the third field of this width */
export function bitOffset(arg: Bytes, width?: number): number {
  const isCounted = width !== undefined && arg[0] === '#';
  const offset = integer(isCounted ? arg.slice(1) : arg, BAD_OFFSET) * (isCounted ? width : 1);
  if (offset < 0 || offset + (width ?? 1) > STRING_BYTES_MAX * 8) throw new ErrorReply(BAD_OFFSET);
  return offset;
}

function setBit(keyspace: Keyspace, [key, position, bit]: readonly Bytes[]): Reply {
  const offset = bitOffset(position);
  const on = integer(bit, BAD_BIT);
  if (on !== 0 && on !== 1) throw new ErrorReply(BAD_BIT);
  const at = Math.floor(offset / 8);
  const mask = 0x80 >>> (offset % 8);
  const buffer = keyspace.bufferForWrite(key, at + 1);
  const old = buffer[at] & mask ? 1 : 0;
  buffer[at] = on ? buffer[at] | mask : buffer[at] & ~mask;
  keyspace.changed(key);
  return old;
}

function getBit(keyspace: Keyspace, [key, position]: readonly Bytes[]): Reply {
  const offset = bitOffset(position);
  const at = Math.floor(offset / 8);
  const value = keyspace.find(key)?.value;
  // Beyond the end there is no byte, and the bit is 0. Only the string is read that is not kept as a buffer: this copies nothing.
  const byte = Buffer.isBuffer(value) ? value[at] : keyspace.readString(key)?.charCodeAt(at);
  return (byte ?? 0) & (0x80 >>> (offset % 8)) ? 1 : 0;
}

/** Bits from `from` to `to`, both included. */
interface BitRange {
  readonly from: number;
  readonly to: number;
}

/** @param first  and `last` count bytes or bits, from the end if negative. @returns undefined if the range is empty */
function bitRange(
  first: number,
  last: number,
  byBits: boolean,
  length: number,
): BitRange | undefined {
  const total = byBits ? length * 8 : length;
  const from = first < 0 ? Math.max(0, total + first) : first;
  const to = Math.min(last < 0 ? Math.max(0, total + last) : last, total - 1);
  if (from > to) return undefined;
  return byBits ? { from, to } : { from: from * 8, to: to * 8 + 7 };
}

function isByBits(arg: Bytes | undefined): boolean {
  const unit = arg === undefined ? 'byte' : option(arg);
  if (unit !== 'bit' && unit !== 'byte') throw syntaxError();
  return unit === 'bit';
}

/** Of the byte at a position, only the bits that are in the range. */
function masked(byte: number, at: number, { from, to }: BitRange): number {
  let bits = byte & 0xff;
  if (at === Math.floor(from / 8)) bits &= 0xff >>> (from % 8);
  if (at === Math.floor(to / 8)) bits &= 0xff << (7 - (to % 8));
  return bits;
}

function bitCount(keyspace: Keyspace, args: readonly Bytes[]): Reply {
  const key = args[0];
  const value = keyspace.readBuffer(key);
  // Redis does not look at the other arguments then.
  if (value === undefined) return 0;
  if (args.length === 1) return countOnes(value, { from: 0, to: value.length * 8 - 1 });
  if (args.length === 2 || args.length > 4) throw syntaxError();
  const first = integer(args[1]);
  const last = integer(args[2]);
  if (first < 0 && last < 0 && first > last) return 0;
  const byBits = isByBits(args[3]);
  const range = bitRange(first, last, byBits, value.length);
  return range === undefined ? 0 : countOnes(value, range);
}

function countOnes(buffer: Buffer, range: BitRange): number {
  const end = Math.floor(range.to / 8);
  let ones = 0;
  for (let at = Math.floor(range.from / 8); at <= end; at++) {
    ones += ONES[masked(buffer[at], at, range)];
  }
  return ones;
}

function bitPosition(keyspace: Keyspace, args: readonly Bytes[]): Reply {
  const bit = integer(args[1]);
  if (bit !== 0 && bit !== 1) throw new ErrorReply('ERR The bit argument must be 1 or 0.');
  const value = keyspace.readBuffer(args[0]);
  if (value === undefined) return bit === 1 ? -1 : 0;
  if (args.length > 5) throw syntaxError();
  const first = args.length > 2 ? integer(args[2]) : 0;
  const byBits = isByBits(args[4]);
  const last = args.length > 3 ? integer(args[3]) : -1;
  const range = bitRange(first, last, byBits, value.length);
  if (range === undefined) return -1;
  const end = Math.floor(range.to / 8);
  for (let at = Math.floor(range.from / 8); at <= end; at++) {
    const bits = masked(bit === 1 ? value[at] : ~value[at], at, range);
    if (bits !== 0) return at * 8 + Math.clz32(bits) - 24;
  }
  // After a string without an explicit end, there are zeros without end.
  return bit === 0 && args.length <= 3 ? value.length * 8 : -1;
}

type BitOperation = 'and' | 'or' | 'xor' | 'not';

function bitOperation(keyspace: Keyspace, args: readonly Bytes[]): Reply {
  const [name, target, ...sources] = args;
  const operation = option(name);
  if (!['and', 'or', 'xor', 'not'].includes(operation)) throw syntaxError();
  if (operation === 'not' && sources.length !== 1) {
    throw new ErrorReply('ERR BITOP NOT must be called with a single source key.');
  }
  const values = sources.map((key) => keyspace.readBuffer(key) ?? Buffer.alloc(0));
  const length = values.reduce((longest, value) => Math.max(longest, value.length), 0);
  if (length === 0) {
    keyspace.delete(target);
    return 0;
  }
  keyspace.set(target, combined(operation as BitOperation, values, length));
  return length;
}

/** Bytes beyond the end of a value count as zeros. */
function combined(operation: BitOperation, values: readonly Buffer[], length: number): Buffer {
  const result = ownBuffer(length);
  result.set(values[0]);
  if (operation === 'not') for (let i = 0; i < length; i++) result[i] = ~result[i];
  for (const value of values.slice(1)) {
    if (operation === 'and') {
      for (let i = 0; i < value.length; i++) result[i] &= value[i];
      result.fill(0, value.length);
    } else if (operation === 'or') for (let i = 0; i < value.length; i++) result[i] |= value[i];
    else for (let i = 0; i < value.length; i++) result[i] ^= value[i];
  }
  return result;
}

export const BITS: readonly CommandSpec[] = [
  {
    name: 'setbit',
    arity: 4,
    flags: ['write', 'denyoom'],
    category: 'bitmap',
    since: '2.2.0',
    summary: 'Sets or clears a bit of a string.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => setBit(keyspace, args),
  },
  {
    name: 'getbit',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'bitmap',
    since: '2.2.0',
    summary: 'Replies with a bit of a string.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => getBit(keyspace, args),
  },
  {
    name: 'bitcount',
    arity: -2,
    flags: ['readonly'],
    category: 'bitmap',
    since: '2.6.0',
    summary: 'Counts the bits of a string that are 1.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => bitCount(keyspace, args),
  },
  {
    name: 'bitpos',
    arity: -3,
    flags: ['readonly'],
    category: 'bitmap',
    since: '2.8.7',
    summary: 'Finds the first bit of a string that is 1, or 0.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => bitPosition(keyspace, args),
  },
  {
    name: 'bitop',
    arity: -4,
    flags: ['write', 'denyoom'],
    category: 'bitmap',
    since: '2.6.0',
    summary: 'Combines the bits of strings, and stores the result.',
    keys: { first: 2, last: -1, step: 1 },
    run: (args, { keyspace }) => bitOperation(keyspace, args),
  },
];
