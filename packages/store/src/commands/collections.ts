/** What commands on lists, sets and sorted sets share. */

import { matchesGlob } from '../engine/glob.js';
import type { Keyspace } from '../engine/keyspace.js';
import type { Value, ValueType } from '../engine/values.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import {
  exactInteger,
  float,
  INTEGER_MAX,
  INTEGER_MIN,
  integer,
  OUT_OF_RANGE,
  option,
  scanCursor,
  scanOptions,
  syntaxError,
} from './arguments.js';
import type { Execution } from './spec.js';

export { ALL_KEYS, KEYS_BEFORE_LAST, ONE_KEY, TWO_KEYS } from './key-ranges.js';

/** To be called after elements were removed: an empty collection is deleted. */
export function shrunk(keyspace: Keyspace, key: Bytes, size: number): void {
  if (size === 0) keyspace.delete(key);
  else keyspace.changed(key);
}

/**
 * The value of a key from which a blocking command takes something. While it waits, values of other types are no error.
 * @returns undefined if there is none
 */
export function readToTake<T extends ValueType>(
  { keyspace, resumed }: Execution,
  key: Bytes,
  type: T,
): Extract<Value, { type: T }> | undefined {
  if (!resumed) return keyspace.read(key, type);
  const value = keyspace.find(key)?.value;
  return typeof value === 'object' && 'type' in value && value.type === type
    ? (value as Extract<Value, { type: T }>)
    : undefined;
}

/** For `numkeys key [key …]`. @param position  where `numkeys` is in the arguments */
export function countedKeys(position: number): (args: readonly Bytes[]) => readonly number[] {
  return (args) => {
    const count = Number(args[position]);
    const length = Math.min(count, args.length - position - 1);
    return length > 0 ? Array.from({ length }, (_, i) => position + 1 + i) : [];
  };
}

/** As `countedKeys`, for commands whose first argument is the key where the result is stored. */
export function storedAndCountedKeys(args: readonly Bytes[]): readonly number[] {
  return [0, ...countedKeys(1)(args)];
}

/** A count that must not be negative. */
export function positive(
  arg: Bytes,
  message = 'ERR value is out of range, must be positive',
): number {
  const value = integer(arg, message);
  if (value < 0) throw new ErrorReply(message);
  return value;
}

/** A count of one at least. */
export function atLeastOne(arg: Bytes, name: string): number {
  const value = integer(arg, `ERR ${name} should be greater than 0`);
  if (value < 1) throw new ErrorReply(`ERR ${name} should be greater than 0`);
  return value;
}

/** From one index to another, both included and counted from the end if negative. */
export interface Span {
  readonly from: number;
  /** One more than the last; not less than `from`. */
  readonly to: number;
}

export function span(first: number, last: number, length: number): Span {
  const from = Math.max(0, first < 0 ? first + length : first);
  const to = Math.min(length, (last < 0 ? last + length : last) + 1);
  return from < to ? { from, to } : { from: 0, to: 0 };
}

/** Seconds, as blocking commands have them. @returns milliseconds; 0: no limit */
export function timeout(arg: Bytes): number {
  const seconds = float(arg, 'ERR timeout is not a float or out of range');
  const ms = Math.ceil(seconds * 1000);
  // Beyond 64 bits, Redis takes it for negative.
  if (ms < 0 || ms >= 2 ** 63) throw new ErrorReply('ERR timeout is negative');
  return ms;
}

/** `numkeys key [key …] where [COUNT count]`, for LMPOP, ZMPOP and their blocking forms. */
export interface PopArguments {
  readonly keys: readonly Bytes[];
  /** In lower case: one of the two that the command has. */
  readonly where: string;
  readonly count: number;
}

export function popArguments(args: readonly Bytes[], wheres: readonly string[]): PopArguments {
  const numberOfKeys = atLeastOne(args[0], 'numkeys');
  const afterKeys = 1 + numberOfKeys;
  if (afterKeys >= args.length) throw syntaxError();
  const where = option(args[afterKeys]);
  if (!wheres.includes(where)) throw syntaxError();
  let count = 1;
  let counted = false;
  for (let i = afterKeys + 1; i < args.length; i += 2) {
    if (counted || option(args[i]) !== 'count' || i + 1 === args.length) throw syntaxError();
    count = atLeastOne(args[i + 1], 'count');
    counted = true;
  }
  return { keys: args.slice(1, afterKeys), where, count };
}

/** How many random picks with repetition a command makes at most: a short request must not make a shard run out of memory. */
const PICKS_MAX = 2 ** 20;

/** The count of SRANDMEMBER and ZRANDMEMBER. */
export function randomCount(arg: Bytes): number {
  const count = exactInteger(arg);
  if (count === INTEGER_MIN) {
    throw new ErrorReply(
      `ERR value is out of range, value must between ${-INTEGER_MAX} and ${INTEGER_MAX}`,
    );
  }
  if (count < -PICKS_MAX) throw new ErrorReply(OUT_OF_RANGE);
  return Number(count);
}

/** Redis refuses even greater counts if each pick has two parts: it would count them with 64 bits. */
export function checkPairs(count: number): void {
  if (Math.abs(count) >= 2 ** 62) throw new ErrorReply(OUT_OF_RANGE);
}

/** @param count  how many different ones; if negative, how many that may be the same */
export function randomPositions(size: number, count: number, execution: Execution): number[] {
  const below = (limit: number) => Math.floor(execution.random() * limit);
  if (count < 0) return Array.from({ length: -count }, () => below(size));
  // Swaps each picked position to the front of a list of all positions, of which only those are kept that are not at their place.
  const moved = new Map<number, number>();
  return Array.from({ length: Math.min(count, size) }, (_, i) => {
    const j = i + below(size - i);
    const picked = moved.get(j) ?? j;
    moved.set(j, moved.get(i) ?? i);
    return picked;
  });
}

/** What SSCAN and ZSCAN visit. */
interface Scanned<V> {
  readonly isCompact: boolean;
  readonly size: number;
  scan(cursor: number, count: number, visit: (member: Bytes, value: V) => void): number;
}

/** `key cursor [MATCH pattern] [COUNT count]`. A small collection is visited at once, as in Redis. */
export function scanned<V>(
  args: readonly Bytes[],
  find: () => Scanned<V> | undefined,
  write: (out: Bytes[], member: Bytes, value: V) => void,
): Reply {
  const cursor = Number(scanCursor(args[1]));
  const collection = find();
  if (collection === undefined) return ['0', []];
  const { match, count } = scanOptions(args, 2);
  const out: Bytes[] = [];
  const visited = collection.isCompact ? collection.size : count;
  const next = collection.scan(collection.isCompact ? 0 : cursor, visited, (member, value) => {
    if (match === undefined || matchesGlob(match, member)) write(out, member, value);
  });
  return [String(next), out];
}
