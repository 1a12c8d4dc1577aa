/** Keys of any type. */

import { copyOf } from '../engine/codec.js';
import { matchesGlob } from '../engine/glob.js';
import type { Keyspace } from '../engine/keyspace.js';
import { typeOf } from '../engine/values.js';
import { type Bytes, ErrorReply, OK, type Reply, Simple } from '../resp/reply.js';
import { integer, NO_SUCH_KEY, option, scanCursor, scanOptions, syntaxError } from './arguments.js';
import { ALL_KEYS, ONE_KEY, TWO_KEYS } from './key-ranges.js';
import { ALL_SAY_OK, ANY_KEY, JOINED, NEXT_SHARD } from './keys-spreads.js';
import type { CommandSpec, Execution, Run } from './spec.js';
import { SUM_OF_ALL, SUM_PER_KEY } from './spreads.js';

/** How many of the keys satisfy this. A key that is named twice counts twice. */
function countKeys(satisfies: (keyspace: Keyspace, key: Bytes) => boolean): Run {
  return (keys, { keyspace }) => {
    let count = 0;
    for (const key of keys) if (satisfies(keyspace, key)) count++;
    return count;
  };
}

const isThere = (keyspace: Keyspace, key: Bytes): boolean => keyspace.peek(key) !== undefined;

const isUsed = (keyspace: Keyspace, key: Bytes): boolean => keyspace.find(key) !== undefined;

const isDeleted = (keyspace: Keyspace, key: Bytes): boolean =>
  isThere(keyspace, key) && keyspace.delete(key);

function rename(keyspace: Keyspace, from: Bytes, to: Bytes, onlyIfAbsent: boolean): boolean {
  if (keyspace.find(from) === undefined) throw new ErrorReply(NO_SUCH_KEY);
  if (onlyIfAbsent && keyspace.find(to) !== undefined) return false;
  if (from !== to) keyspace.rename(from, to);
  return true;
}

function copy(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const [from, to] = args;
  let replaces = false;
  for (let i = 2; i < args.length; i++) {
    const name = option(args[i]);
    if (name === 'replace') replaces = true;
    else if (name === 'db' && i + 1 < args.length) requireFirstDatabase(args[++i]);
    else throw syntaxError();
  }
  if (from === to) {
    throw new ErrorReply('ERR source and destination objects are the same');
  }
  const entry = keyspace.find(from);
  if (entry === undefined) return 0;
  if (keyspace.find(to) !== undefined && !replaces) return 0;
  keyspace.set(to, copyOf(entry), entry.expiresAtMs);
  return 1;
}

/** There is one database. */
function requireFirstDatabase(arg: Bytes): void {
  const index = integer(arg);
  if ((index | 0) !== index) {
    throw new ErrorReply(
      'ERR value is out of range, value must between -2147483648 and 2147483647',
    );
  }
  if (index !== 0) throw new ErrorReply('ERR DB index is out of range');
}

function keysLike(keyspace: Keyspace, pattern: Bytes): Reply {
  const { entries } = keyspace;
  const found: Bytes[] = [];
  for (let i = 0; i < entries.size; i++) {
    const key = entries.keyAt(i);
    if (!keyspace.hasExpired(entries.valueAt(i)) && matchesGlob(pattern, key)) found.push(key);
  }
  return found;
}

function scan(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const cursor = Number(scanCursor(args[0]));
  const { match, count, type } = scanOptions(args, 1, true);
  const found: Bytes[] = [];
  const next = keyspace.entries.scan(cursor, count, (key, entry) => {
    if (keyspace.hasExpired(entry)) return;
    if (type !== undefined && typeOf(entry.value) !== type) return;
    if (match === undefined || matchesGlob(match, key)) found.push(key);
  });
  return [String(next), found];
}

/** A key that has expired and is picked is deleted, so that this ends. */
function randomKey(execution: Execution): Reply {
  const { keyspace } = execution;
  const { entries } = keyspace;
  while (entries.size > 0) {
    const key = entries.keyAt(Math.floor(execution.random() * entries.size));
    if (keyspace.peek(key) !== undefined) return key;
  }
  return null;
}

function flush(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const mode = args.length === 0 ? 'sync' : option(args[0]);
  if (args.length > 1 || (mode !== 'sync' && mode !== 'async')) throw syntaxError();
  keyspace.clear();
  return OK;
}

export const KEYS: readonly CommandSpec[] = [
  {
    name: 'del',
    arity: -2,
    flags: ['write'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Deletes keys.',
    keys: ALL_KEYS,
    spread: SUM_PER_KEY,
    run: countKeys(isDeleted),
  },
  {
    name: 'unlink',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '4.0.0',
    summary: 'Deletes keys.',
    keys: ALL_KEYS,
    spread: SUM_PER_KEY,
    run: countKeys(isDeleted),
  },
  {
    name: 'exists',
    arity: -2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Counts those of the keys that exist.',
    keys: ALL_KEYS,
    spread: SUM_PER_KEY,
    run: countKeys(isThere),
  },
  {
    name: 'touch',
    arity: -2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '3.2.1',
    summary: 'Counts those of the keys that exist, as if they were used.',
    keys: ALL_KEYS,
    spread: SUM_PER_KEY,
    run: countKeys(isUsed),
  },
  {
    name: 'type',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Replies with the type of the value of a key.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => {
      const entry = keyspace.peek(key);
      return new Simple(entry === undefined ? 'none' : typeOf(entry.value));
    },
  },
  {
    name: 'rename',
    arity: 3,
    flags: ['write'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Gives a key another name, and overwrites what had that name.',
    keys: TWO_KEYS,
    run: ([from, to], { keyspace }) => {
      rename(keyspace, from, to, false);
      return OK;
    },
  },
  {
    name: 'renamenx',
    arity: 3,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Gives a key another name, unless there is a key of that name.',
    keys: TWO_KEYS,
    run: ([from, to], { keyspace }) => (rename(keyspace, from, to, true) ? 1 : 0),
  },
  {
    name: 'copy',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'generic',
    since: '6.2.0',
    summary: 'Copies the value of a key to another key.',
    keys: TWO_KEYS,
    run: (args, { keyspace }) => copy(args, keyspace),
  },
  {
    name: 'move',
    arity: 3,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Moves a key to another database.',
    differs: 'There is one database, so this always fails.',
    keys: ONE_KEY,
    run: ([, database]) => {
      requireFirstDatabase(database);
      throw new ErrorReply('ERR source and destination objects are the same');
    },
  },
  {
    name: 'keys',
    arity: 2,
    flags: ['readonly'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Replies with all keys whose names match a pattern.',
    spread: JOINED,
    run: ([pattern], { keyspace }) => keysLike(keyspace, pattern),
  },
  {
    name: 'scan',
    arity: -2,
    flags: ['readonly'],
    category: 'generic',
    since: '2.8.0',
    summary: 'Visits the keys step by step.',
    spread: NEXT_SHARD,
    run: (args, { keyspace }) => scan(args, keyspace),
  },
  {
    name: 'randomkey',
    arity: 1,
    flags: ['readonly'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Replies with a random key.',
    differs: 'Each shard is equally likely, then each of its keys.',
    spread: ANY_KEY,
    run: (_args, execution) => randomKey(execution),
  },
  {
    name: 'dbsize',
    arity: 1,
    flags: ['readonly', 'fast'],
    category: 'server',
    since: '1.0.0',
    summary: 'Counts the keys.',
    spread: SUM_OF_ALL,
    run: (_args, { keyspace }) => keyspace.entries.size,
  },
  {
    name: 'flushdb',
    arity: -1,
    flags: ['write'],
    category: 'server',
    since: '1.0.0',
    summary: 'Deletes all keys.',
    spread: ALL_SAY_OK,
    run: (args, { keyspace }) => flush(args, keyspace),
  },
  {
    name: 'flushall',
    arity: -1,
    flags: ['write'],
    category: 'server',
    since: '1.0.0',
    summary: 'Deletes all keys.',
    spread: ALL_SAY_OK,
    run: (args, { keyspace }) => flush(args, keyspace),
  },
];
