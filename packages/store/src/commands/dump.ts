/** DUMP and RESTORE, with the format of Redis. */

import type { Keyspace } from '../engine/keyspace.js';
import { checkedDump, dumpOf, restoredValue } from '../engine/rdb/dump.js';
import { stalenessOfFrequency, stalenessOfIdle } from '../engine/usage.js';
import type { Value } from '../engine/values.js';
import { type Bytes, ErrorReply, OK, type Reply } from '../resp/reply.js';
import { integer, option, syntaxError } from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec } from './spec.js';

function dump(keyspace: Keyspace, key: Bytes): Reply {
  const entry = keyspace.find(key);
  if (entry === undefined) return null;
  return dumpOf(entry.value);
}

interface RestoreOptions {
  readonly replaces: boolean;
  readonly isAbsolute: boolean;
  readonly idleSeconds: number | undefined;
  readonly frequency: number | undefined;
}

function restoreOptions(args: readonly Bytes[]): RestoreOptions {
  let replaces = false;
  let isAbsolute = false;
  let idleSeconds: number | undefined;
  let frequency: number | undefined;
  for (let i = 3; i < args.length; i++) {
    const name = option(args[i]);
    const hasMore = i + 1 < args.length;
    if (name === 'replace') replaces = true;
    else if (name === 'absttl') isAbsolute = true;
    else if (name === 'idletime' && hasMore && frequency === undefined) {
      idleSeconds = integer(args[++i]);
      if (idleSeconds < 0) throw new ErrorReply('ERR Invalid IDLETIME value, must be >= 0');
    } else if (name === 'freq' && hasMore && idleSeconds === undefined) {
      frequency = integer(args[++i]);
      if (frequency < 0 || frequency > 255) {
        throw new ErrorReply('ERR Invalid FREQ value, must be >= 0 and <= 255');
      }
    } else throw syntaxError();
  }
  return { replaces, isAbsolute, idleSeconds, frequency };
}

function restore(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const [key, time, payload] = args;
  const { replaces, isAbsolute, idleSeconds, frequency } = restoreOptions(args);
  const entry = keyspace.find(key);
  if (entry !== undefined && !replaces) {
    throw new ErrorReply('BUSYKEY Target key name already exists.');
  }
  const ttl = integer(time);
  if (ttl < 0) throw new ErrorReply('ERR Invalid TTL value, must be >= 0');
  const bytes = checkedDump(payload);
  if (bytes === undefined) {
    throw new ErrorReply('ERR DUMP payload version or checksum are wrong');
  }
  const value = decoded(bytes);
  const expiresAtMs = ttl === 0 ? Infinity : isAbsolute ? ttl : keyspace.nowMs + ttl;
  // As in Redis, the key is a new one: how often the old one was used does not count.
  keyspace.delete(key);
  if (expiresAtMs <= keyspace.nowMs) return OK;
  keyspace.set(key, value, expiresAtMs);
  // What the policy does not look at has no effect.
  if (keyspace.usage.countsFrequency) {
    if (frequency !== undefined) keyspace.setStaleness(key, stalenessOfFrequency(frequency));
  } else if (idleSeconds !== undefined) keyspace.setStaleness(key, stalenessOfIdle(idleSeconds));
  return OK;
}

function decoded(bytes: Buffer): Value {
  try {
    return restoredValue(bytes);
  } catch (error) {
    if (error instanceof RangeError) throw new ErrorReply('ERR Bad data format');
    throw error;
  }
}

export const DUMP: readonly CommandSpec[] = [
  {
    name: 'dump',
    arity: 2,
    flags: ['readonly'],
    category: 'generic',
    since: '2.6.0',
    summary: 'Replies with the value of a key in the format of Redis.',
    differs: 'Without compression. Redis can restore it.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => dump(keyspace, key),
  },
  {
    name: 'restore',
    arity: -4,
    flags: ['write', 'denyoom'],
    category: 'generic',
    since: '2.6.0',
    summary: 'Gives a key a value that was dumped.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => restore(args, keyspace),
  },
];
