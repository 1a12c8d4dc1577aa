/** Hashes: fields with values. */

import type { Keyspace } from '../engine/keyspace.js';
import { Hash } from '../engine/values.js';
import { type Bytes, ErrorReply, MapReply, OK, Pairs, type Reply } from '../resp/reply.js';
import { exactInteger, option, syntaxError, wrongArity } from './arguments.js';
import { checkPairs, randomCount, randomPositions, scanned, shrunk } from './collections.js';
import { addFloats, addIntegers, longDouble } from './counters.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec, Execution } from './spec.js';

/** The hash of a key, or a new one. The caller changes it, and then stores it at the key. */
function hashForWrite(keyspace: Keyspace, key: Bytes): Hash {
  return keyspace.forWrite(key, 'hash') ?? new Hash();
}

/** Sets one field. */
function setField(keyspace: Keyspace, key: Bytes, field: Bytes, value: Bytes): void {
  const hash = hashForWrite(keyspace, key);
  hash.set(field, value);
  keyspace.put(key, hash);
}

/** @returns how many fields are new */
function setFields(keyspace: Keyspace, args: readonly Bytes[], name: string): number {
  if (args.length % 2 === 0) throw wrongArity(name);
  const hash = hashForWrite(keyspace, args[0]);
  let added = 0;
  for (let i = 1; i < args.length; i += 2) if (hash.set(args[i], args[i + 1])) added++;
  keyspace.put(args[0], hash);
  return added;
}

function deleteFields(keyspace: Keyspace, args: readonly Bytes[]): Reply {
  const hash = keyspace.forWrite(args[0], 'hash');
  if (hash === undefined) return 0;
  let deleted = 0;
  for (let i = 1; i < args.length; i++) if (hash.delete(args[i])) deleted++;
  if (deleted > 0) shrunk(keyspace, args[0], hash.size);
  return deleted;
}

function increment(keyspace: Keyspace, [key, field, by]: readonly Bytes[]): Reply {
  const added = exactInteger(by);
  const old = keyspace.read(key, 'hash')?.get(field) ?? '0';
  const sum = addIntegers(exactInteger(old, 'ERR hash value is not an integer'), added);
  setField(keyspace, key, field, String(sum));
  return sum;
}

function incrementByFloat(keyspace: Keyspace, [key, field, by]: readonly Bytes[]): Reply {
  const added = longDouble(by);
  if (added.exponent === Infinity) throw new ErrorReply('ERR value is NaN or Infinity');
  const old = keyspace.read(key, 'hash')?.get(field) ?? '0';
  const sum = addFloats(longDouble(old, 'ERR hash value is not a float'), added);
  setField(keyspace, key, field, sum);
  return sum;
}

function randomFields(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const [key, countArg, withValues] = args;
  if (countArg === undefined) {
    const hash = keyspace.read(key, 'hash');
    return hash === undefined ? null : hash.fieldAt(Math.floor(execution.random() * hash.size));
  }
  const count = randomCount(countArg);
  if (args.length > 3 || (withValues !== undefined && option(withValues) !== 'withvalues')) {
    throw syntaxError();
  }
  if (withValues !== undefined) checkPairs(count);
  const hash = keyspace.read(key, 'hash');
  if (hash === undefined) return [];
  const positions = randomPositions(hash.size, count, execution);
  if (withValues === undefined) return positions.map((position) => hash.fieldAt(position));
  return new Pairs(
    positions.map((position) => [hash.fieldAt(position), hash.valueAt(position)] as const),
  );
}

export const HASHES: readonly CommandSpec[] = [
  {
    name: 'hset',
    arity: -4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Sets fields, and counts those that are new.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => setFields(keyspace, args, 'hset'),
  },
  {
    name: 'hmset',
    arity: -4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Sets fields.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => {
      setFields(keyspace, args, 'hmset');
      return OK;
    },
  },
  {
    name: 'hsetnx',
    arity: 4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Sets a field if it is absent.',
    keys: ONE_KEY,
    run: ([key, field, value], { keyspace }) => {
      if (keyspace.read(key, 'hash')?.has(field)) return 0;
      setField(keyspace, key, field, value);
      return 1;
    },
  },
  {
    name: 'hget',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Replies with the value of a field.',
    keys: ONE_KEY,
    run: ([key, field], { keyspace }) => keyspace.read(key, 'hash')?.get(field) ?? null,
  },
  {
    name: 'hmget',
    arity: -3,
    flags: ['readonly', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Replies with the values of fields.',
    keys: ONE_KEY,
    run: ([key, ...fields], { keyspace }) => {
      const hash = keyspace.read(key, 'hash');
      return fields.map((field) => hash?.get(field) ?? null);
    },
  },
  {
    name: 'hgetall',
    arity: 2,
    flags: ['readonly'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Replies with all fields and values.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => {
      const hash = keyspace.read(key, 'hash');
      return new MapReply(
        hash?.fields().map((field, i) => [field, hash.valueAt(i)] as const) ?? [],
      );
    },
  },
  {
    name: 'hkeys',
    arity: 2,
    flags: ['readonly'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Replies with all fields.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'hash')?.fields() ?? [],
  },
  {
    name: 'hvals',
    arity: 2,
    flags: ['readonly'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Replies with all values.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'hash')?.values() ?? [],
  },
  {
    name: 'hlen',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Counts the fields.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'hash')?.size ?? 0,
  },
  {
    name: 'hexists',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Tells whether there is a field.',
    keys: ONE_KEY,
    run: ([key, field], { keyspace }) => (keyspace.read(key, 'hash')?.has(field) ? 1 : 0),
  },
  {
    name: 'hstrlen',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'hash',
    since: '3.2.0',
    summary: 'Replies with the length of the value of a field.',
    keys: ONE_KEY,
    run: ([key, field], { keyspace }) => keyspace.read(key, 'hash')?.get(field)?.length ?? 0,
  },
  {
    name: 'hdel',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Deletes fields.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => deleteFields(keyspace, args),
  },
  {
    name: 'hincrby',
    arity: 4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'hash',
    since: '2.0.0',
    summary: 'Adds to the integer of a field.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => increment(keyspace, args),
  },
  {
    name: 'hincrbyfloat',
    arity: 4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'hash',
    since: '2.6.0',
    summary: 'Adds to the number of a field.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => incrementByFloat(keyspace, args),
  },
  {
    name: 'hrandfield',
    arity: -2,
    flags: ['readonly'],
    category: 'hash',
    since: '6.2.0',
    summary: 'Replies with random fields.',
    differs: 'A negative count is at least -1,048,576.',
    keys: ONE_KEY,
    run: randomFields,
  },
  {
    name: 'hscan',
    arity: -3,
    flags: ['readonly'],
    category: 'hash',
    since: '2.8.0',
    summary: 'Visits the fields step by step.',
    keys: ONE_KEY,
    run: (args, { keyspace }) =>
      scanned(
        args,
        () => keyspace.read(args[0], 'hash'),
        (out, field, value) => out.push(field, value),
      ),
  },
];
