/** Strings that are numbers. */

import type { Keyspace } from '../engine/keyspace.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import {
  exactInteger,
  INTEGER_MAX,
  INTEGER_MIN,
  NOT_A_FLOAT,
  narrowed,
  WOULD_OVERFLOW,
} from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import { formatLongDouble, type LongDouble, parseLongDouble, sumOf } from './long-double.js';
import type { CommandSpec } from './spec.js';

/** @returns their sum, or an error if it has more than 64 bits */
export function addIntegers(a: number | bigint, b: number | bigint): number | bigint {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  const sum = BigInt(a) + BigInt(b);
  if (sum > INTEGER_MAX || sum < INTEGER_MIN) throw new ErrorReply(WOULD_OVERFLOW);
  return narrowed(sum);
}

export function longDouble(text: Bytes, message = NOT_A_FLOAT): LongDouble {
  const value = parseLongDouble(text);
  if (value === undefined) throw new ErrorReply(message);
  return value;
}

/** @returns their sum as text, or an error if it is not finite */
export function addFloats(a: LongDouble, b: LongDouble): Bytes {
  const sum = sumOf(a, b);
  if (sum === undefined) throw new ErrorReply('ERR increment would produce NaN or Infinity');
  return formatLongDouble(sum);
}

function increment(keyspace: Keyspace, key: Bytes, by: number | bigint): Reply {
  const old = keyspace.readString(key);
  const sum = old === undefined ? by : addIntegers(exactInteger(old), by);
  keyspace.replace(key, String(sum));
  return sum;
}

function incrementByFloat(keyspace: Keyspace, key: Bytes, by: Bytes): Reply {
  const old = longDouble(keyspace.readString(key) ?? '0');
  const sum = addFloats(old, longDouble(by));
  keyspace.replace(key, sum);
  return sum;
}

export const COUNTERS: readonly CommandSpec[] = [
  {
    name: 'incr',
    arity: 2,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Adds 1 to the integer of a key.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => increment(keyspace, key, 1),
  },
  {
    name: 'decr',
    arity: 2,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Subtracts 1 from the integer of a key.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => increment(keyspace, key, -1),
  },
  {
    name: 'incrby',
    arity: 3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Adds to the integer of a key.',
    keys: ONE_KEY,
    run: ([key, by], { keyspace }) => increment(keyspace, key, exactInteger(by)),
  },
  {
    name: 'decrby',
    arity: 3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Subtracts from the integer of a key.',
    keys: ONE_KEY,
    run: ([key, by], { keyspace }) => {
      const value = exactInteger(by);
      if (value === INTEGER_MIN) throw new ErrorReply('ERR decrement would overflow');
      // 0, not -0.
      return increment(keyspace, key, typeof value === 'number' ? 0 - value : -value);
    },
  },
  {
    name: 'incrbyfloat',
    arity: 3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '2.6.0',
    summary: 'Adds to the number of a key.',
    keys: ONE_KEY,
    run: ([key, by], { keyspace }) => incrementByFloat(keyspace, key, by),
  },
];
