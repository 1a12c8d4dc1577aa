/** Parts of strings, and what two strings have in common. */

import type { Keyspace } from '../engine/keyspace.js';
import { typeOf } from '../engine/values.js';
import { type Bytes, ErrorReply, MapReply, type Reply } from '../resp/reply.js';
import { integer, option, syntaxError } from './arguments.js';
import { ONE_KEY, TWO_KEYS } from './key-ranges.js';
import type { CommandSpec } from './spec.js';

/** Redis's `proto-max-bulk-len`. */
export const STRING_BYTES_MAX = 512 * 1024 * 1024;

function requireLength(length: number): void {
  if (length > STRING_BYTES_MAX) {
    throw new ErrorReply('ERR string exceeds maximum allowed size (proto-max-bulk-len)');
  }
}

function lengthOf(keyspace: Keyspace, key: Bytes): number {
  const value = keyspace.find(key)?.value;
  return Buffer.isBuffer(value) ? value.length : (keyspace.readString(key)?.length ?? 0);
}

function append(keyspace: Keyspace, key: Bytes, value: Bytes): Reply {
  if (keyspace.find(key) === undefined) {
    keyspace.set(key, value);
    return value.length;
  }
  const end = lengthOf(keyspace, key);
  requireLength(end + value.length);
  keyspace.bufferForWrite(key, end + value.length).write(value, end, 'latin1');
  keyspace.changed(key);
  return end + value.length;
}

function getRange(keyspace: Keyspace, [key, first, last]: readonly Bytes[]): Reply {
  let from = integer(first);
  let to = integer(last);
  const value = keyspace.find(key)?.value;
  const bytes = Buffer.isBuffer(value) ? value : (keyspace.readString(key) ?? '');
  const { length } = bytes;
  if (from < 0 && to < 0 && from > to) return '';
  from = from < 0 ? Math.max(0, length + from) : from;
  to = Math.min(to < 0 ? Math.max(0, length + to) : to, length - 1);
  if (from > to) return '';
  return typeof bytes === 'string'
    ? bytes.slice(from, to + 1)
    : bytes.toString('latin1', from, to + 1);
}

function setRange(keyspace: Keyspace, [key, offset, value]: readonly Bytes[]): Reply {
  const from = integer(offset);
  if (from < 0) throw new ErrorReply('ERR offset is out of range');
  const length = lengthOf(keyspace, key);
  if (value.length === 0) return length;
  requireLength(from + value.length);
  const buffer = keyspace.bufferForWrite(key, from + value.length);
  buffer.write(value, from, 'latin1');
  keyspace.changed(key);
  return buffer.length;
}

interface LcsOptions {
  readonly length: boolean;
  readonly indexes: boolean;
  readonly lengths: boolean;
  readonly shortest: number;
}

function lcsOptions(args: readonly Bytes[]): LcsOptions {
  let length = false;
  let indexes = false;
  let lengths = false;
  let shortest = 0;
  for (let i = 2; i < args.length; i++) {
    const name = option(args[i]);
    if (name === 'idx') indexes = true;
    else if (name === 'len') length = true;
    else if (name === 'withmatchlen') lengths = true;
    else if (name === 'minmatchlen' && i + 1 < args.length) {
      shortest = Math.max(0, integer(args[++i]));
    } else throw syntaxError();
  }
  if (length && indexes) {
    throw new ErrorReply('ERR If you want both the length and indexes, please just use IDX.');
  }
  return { length, indexes, lengths, shortest };
}

function stringForLcs(keyspace: Keyspace, key: Bytes): Bytes {
  const entry = keyspace.find(key);
  if (entry !== undefined && typeOf(entry.value) !== 'string') {
    throw new ErrorReply('ERR The specified keys must contain string values');
  }
  return keyspace.readString(key) ?? '';
}

/** A range of both strings in which they are equal. */
interface Match {
  a: number;
  b: number;
  length: number;
}

/** The longest common subsequence, by dynamic programming: `lengths` has the length for each pair of beginnings. */
function lcs(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const a = stringForLcs(keyspace, args[0]);
  const b = stringForLcs(keyspace, args[1]);
  const options = lcsOptions(args);
  const width = b.length + 1;
  if ((a.length + 1) * width * 4 > STRING_BYTES_MAX) {
    throw new ErrorReply(
      'ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len',
    );
  }
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const at = i * width + j;
      lengths[at] =
        a.charCodeAt(i - 1) === b.charCodeAt(j - 1)
          ? lengths[at - width - 1] + 1
          : Math.max(lengths[at - width], lengths[at - 1]);
    }
  }
  const total = lengths[a.length * width + b.length];
  if (options.length) return total;

  const bytes: Bytes[] = [];
  const matches: Match[] = [];
  let i = a.length;
  let j = b.length;
  let match: Match | undefined;
  while (i > 0 && j > 0) {
    if (a.charCodeAt(i - 1) === b.charCodeAt(j - 1)) {
      i--;
      j--;
      bytes.push(a[i]);
      if (match === undefined) {
        match = { a: i, b: j, length: 0 };
        matches.push(match);
      }
      match.a = i;
      match.b = j;
      match.length++;
    } else {
      match = undefined;
      if (lengths[(i - 1) * width + j] > lengths[i * width + j - 1]) i--;
      else j--;
    }
  }
  if (!options.indexes) return bytes.reverse().join('');
  const shown = matches
    .filter(({ length }) => length >= options.shortest)
    .map((found) => {
      const ranges: Reply[] = [
        [found.a, found.a + found.length - 1],
        [found.b, found.b + found.length - 1],
      ];
      return options.lengths ? [...ranges, found.length] : ranges;
    });
  return new MapReply([
    ['matches', shown],
    ['len', total],
  ]);
}

export const SUBSTRINGS: readonly CommandSpec[] = [
  {
    name: 'append',
    arity: 3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '2.0.0',
    summary: 'Adds bytes to the end of a string.',
    keys: ONE_KEY,
    run: ([key, value], { keyspace }) => append(keyspace, key, value),
  },
  {
    name: 'strlen',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'string',
    since: '2.2.0',
    summary: 'Replies with the length of a string.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => lengthOf(keyspace, key),
  },
  {
    name: 'getrange',
    arity: 4,
    flags: ['readonly'],
    category: 'string',
    since: '2.4.0',
    summary: 'Replies with a part of a string.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => getRange(keyspace, args),
  },
  {
    name: 'substr',
    arity: 4,
    flags: ['readonly'],
    category: 'string',
    since: '1.0.0',
    summary: 'Replies with a part of a string: the old name of GETRANGE.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => getRange(keyspace, args),
  },
  {
    name: 'setrange',
    arity: 4,
    flags: ['write', 'denyoom'],
    category: 'string',
    since: '2.2.0',
    summary: 'Overwrites a part of a string, which grows with zeros if needed.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => setRange(keyspace, args),
  },
  {
    name: 'lcs',
    arity: -3,
    flags: ['readonly'],
    category: 'string',
    since: '7.0.0',
    summary: 'Finds the longest common subsequence of two strings.',
    keys: TWO_KEYS,
    run: (args, { keyspace }) => lcs(args, keyspace),
  },
];
