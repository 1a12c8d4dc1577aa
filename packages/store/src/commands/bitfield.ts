/** Strings as arrays of integers of any width: up to 64 bits with a sign, up to 63 without. */

import type { Keyspace } from '../engine/keyspace.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { exactInteger, INTEGER_MAX, narrowed, option, syntaxError } from './arguments.js';
import { bitOffset } from './bits.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec } from './spec.js';

interface Field {
  readonly isSigned: boolean;
  readonly width: number;
  readonly offset: number;
}

type Overflow = 'wrap' | 'sat' | 'fail';

interface Operation extends Field {
  readonly name: 'get' | 'set' | 'incrby';
  readonly operand: bigint;
  readonly overflow: Overflow;
}

const BAD_TYPE =
  'ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.';

function fieldOf(type: Bytes, offset: Bytes): Field {
  const isSigned = type[0] === 'i';
  const width = /^[iu][1-9][0-9]?$/.test(type) ? Number(type.slice(1)) : 0;
  if (width < 1 || width > (isSigned ? 64 : 63)) throw new ErrorReply(BAD_TYPE);
  return { isSigned, width, offset: bitOffset(offset, width) };
}

function operationsOf(args: readonly Bytes[], readOnly: boolean): Operation[] {
  const operations: Operation[] = [];
  let overflow: Overflow = 'wrap';
  for (let i = 1; i < args.length; ) {
    const name = option(args[i]);
    const left = args.length - i - 1;
    if (name === 'overflow' && left >= 1) {
      const kind = option(args[i + 1]);
      if (kind !== 'wrap' && kind !== 'sat' && kind !== 'fail') {
        throw new ErrorReply('ERR Invalid OVERFLOW type specified');
      }
      overflow = kind;
      i += 2;
      continue;
    }
    if (name === 'get' && left >= 2) {
      operations.push({ name, ...fieldOf(args[i + 1], args[i + 2]), operand: 0n, overflow });
      i += 3;
    } else if ((name === 'set' || name === 'incrby') && left >= 3) {
      const field = fieldOf(args[i + 1], args[i + 2]);
      operations.push({ name, ...field, operand: BigInt(exactInteger(args[i + 3])), overflow });
      i += 4;
    } else throw syntaxError();
  }
  if (readOnly && operations.some(({ name }) => name !== 'get')) {
    throw new ErrorReply('ERR BITFIELD_RO only supports the GET subcommand');
  }
  return operations;
}

/** Bits beyond the end are zeros. */
function readField(buffer: Buffer | undefined, { isSigned, width, offset }: Field): bigint {
  const first = Math.floor(offset / 8);
  const last = Math.floor((offset + width - 1) / 8);
  let bits = 0n;
  for (let at = first; at <= last; at++) bits = (bits << 8n) | BigInt(buffer?.[at] ?? 0);
  bits >>= BigInt(last * 8 + 7 - (offset + width - 1));
  return isSigned ? BigInt.asIntN(width, bits) : BigInt.asUintN(width, bits);
}

function writeField(buffer: Buffer, { width, offset }: Field, value: bigint): void {
  const bits = BigInt.asUintN(width, value);
  for (let i = 0; i < width; i++) {
    const position = offset + i;
    const at = Math.floor(position / 8);
    const mask = 0x80 >>> (position % 8);
    const isOn = (bits >> BigInt(width - 1 - i)) & 1n;
    buffer[at] = isOn ? buffer[at] | mask : buffer[at] & ~mask;
  }
}

/** @returns undefined if the value does not fit, and the field is to be left alone */
function fitted(value: bigint, operation: Operation): bigint | undefined {
  const { name, isSigned, width, overflow } = operation;
  const bits = BigInt(width);
  const max = isSigned ? (1n << (bits - 1n)) - 1n : (1n << bits) - 1n;
  const min = isSigned ? -(1n << (bits - 1n)) : 0n;
  if (value >= min && value <= max) return value;
  if (overflow === 'fail') return undefined;
  if (overflow === 'sat') {
    // SET of Redis computes the distance to the largest value with 64 bits: where that wraps, it takes the value for a large one.
    const isTaken = name === 'set' && isSigned && max - value > INTEGER_MAX;
    return value > max || isTaken ? max : min;
  }
  return isSigned ? BigInt.asIntN(width, value) : BigInt.asUintN(width, value);
}

function bitField(keyspace: Keyspace, args: readonly Bytes[], readOnly: boolean): Reply {
  const key = args[0];
  const operations = operationsOf(args, readOnly);
  const written = operations.filter(({ name }) => name !== 'get');
  const bits = written.reduce((end, { offset, width }) => Math.max(end, offset + width), 0);
  const buffer =
    written.length > 0
      ? keyspace.bufferForWrite(key, Math.ceil(bits / 8))
      : keyspace.readBuffer(key);
  const replies = operations.map((operation): Reply => {
    const old = readField(buffer, operation);
    if (operation.name === 'get') return narrowed(old);
    const isSet = operation.name === 'set';
    const value = fitted(isSet ? asOperand(operation) : old + operation.operand, operation);
    if (value === undefined) return null;
    writeField(buffer!, operation, value);
    return narrowed(isSet ? old : value);
  });
  if (written.length > 0) keyspace.changed(key);
  return replies;
}

/** Without a sign, a negative value of SET counts as the large number that has the same 64 bits. */
function asOperand({ isSigned, operand }: Operation): bigint {
  return isSigned ? operand : BigInt.asUintN(64, operand);
}

export const BITFIELDS: readonly CommandSpec[] = [
  {
    name: 'bitfield',
    arity: -2,
    flags: ['write', 'denyoom'],
    category: 'bitmap',
    since: '3.2.0',
    summary: 'Reads and changes integers of any width in a string.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => bitField(keyspace, args, false),
  },
  {
    name: 'bitfield_ro',
    arity: -2,
    flags: ['readonly', 'fast'],
    category: 'bitmap',
    since: '6.0.0',
    summary: 'Reads integers of any width in a string.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => bitField(keyspace, args, true),
  },
];
