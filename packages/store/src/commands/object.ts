/** OBJECT and MEMORY USAGE: how a value is kept. */

import { encodingOfCollection } from '../engine/encodings.js';
import type { Entry, Keyspace } from '../engine/keyspace.js';
import { frequencyOf, idleSeconds } from '../engine/usage.js';
import type { Value } from '../engine/values.js';
import { type Bytes, ErrorReply, type Reply, Simple } from '../resp/reply.js';
import { integer, option, parseInteger, syntaxError } from './arguments.js';
import type { CommandSpec, KeyRange, Run } from './spec.js';

const KEY: KeyRange = { first: 2, last: 2, step: 1 };

/** Up to this length, Redis stores a string in one allocation with its header. */
const EMBEDDED_BYTES_MAX = 44;

/** The name that Redis has for the form of a value. */
function encodingOf(value: Value): string {
  if (Buffer.isBuffer(value)) return 'raw';
  if (typeof value === 'string') {
    if (parseInteger(value) !== undefined) return 'int';
    return value.length <= EMBEDDED_BYTES_MAX ? 'embstr' : 'raw';
  }
  if (value.type === 'hash') return value.isCompact ? 'listpack' : 'hashtable';
  return encodingOfCollection(value);
}

function ofEntry(reply: (entry: Entry) => Reply): Run {
  return ([key], { keyspace }) => {
    const entry = keyspace.peek(key);
    return entry === undefined ? null : reply(entry);
  };
}

/** @param reply  gets the staleness of the key */
function ofUsage(
  counted: 'recency' | 'frequency',
  refusal: string,
  reply: (staleness: number) => Reply,
): Run {
  return ([key], { keyspace }) => {
    if (keyspace.peek(key) === undefined) return null;
    const isCounted = keyspace.usage.countsFrequency === (counted === 'frequency');
    if (!isCounted) throw new ErrorReply(refusal);
    return reply(keyspace.stalenessOf(key));
  };
}

function memoryUsage(args: readonly Bytes[], keyspace: Keyspace): Reply {
  for (let i = 1; i < args.length; i += 2) {
    if (option(args[i]) !== 'samples' || i + 1 === args.length) throw syntaxError();
    if (integer(args[i + 1]) < 0) throw syntaxError();
  }
  return keyspace.peek(args[0])?.memory ?? null;
}

const ADJUSTS =
  'Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.';
const NO_FREQUENCIES = `ERR An LFU maxmemory policy is not selected, access frequency not tracked. ${ADJUSTS}`;
const NO_IDLE_TIMES = `ERR An LFU maxmemory policy is selected, idle time not tracked. ${ADJUSTS}`;

const OBJECT_HELP = [
  'OBJECT <subcommand> <key>. Subcommands are:',
  'ENCODING: the form in which Redis would keep the value.',
  'FREQ: how often the key is used.',
  'IDLETIME: the seconds since the key was used.',
  'REFCOUNT: the references to the value.',
  'HELP: this list.',
];

export const OBJECT: readonly CommandSpec[] = [
  {
    name: 'object|encoding',
    arity: 3,
    flags: ['readonly'],
    category: 'generic',
    since: '2.2.3',
    summary: 'Names the form in which Redis would keep a value.',
    differs: 'After INCRBYFLOAT, an integer is called int; Redis calls it embstr.',
    keys: KEY,
    run: ofEntry(({ value }) => encodingOf(value)),
  },
  {
    name: 'object|refcount',
    arity: 3,
    flags: ['readonly'],
    category: 'generic',
    since: '2.2.3',
    summary: 'Counts the references to a value.',
    differs: 'Always 1.',
    keys: KEY,
    run: ofEntry(() => 1),
  },
  {
    name: 'object|idletime',
    arity: 3,
    flags: ['readonly'],
    category: 'generic',
    since: '2.2.3',
    summary: 'Replies with the seconds since a key was used.',
    keys: KEY,
    run: ofUsage('recency', NO_IDLE_TIMES, idleSeconds),
  },
  {
    name: 'object|freq',
    arity: 3,
    flags: ['readonly'],
    category: 'generic',
    since: '4.0.0',
    summary: 'Tells how often a key is used.',
    keys: KEY,
    run: ofUsage('frequency', NO_FREQUENCIES, frequencyOf),
  },
  {
    name: 'object|help',
    arity: 2,
    flags: ['loading', 'stale'],
    category: 'generic',
    since: '6.2.0',
    summary: 'Lists the subcommands.',
    run: () => OBJECT_HELP.map((line) => new Simple(line)),
  },
  {
    name: 'memory|usage',
    arity: -3,
    flags: ['readonly'],
    category: 'server',
    since: '4.0.0',
    summary: 'Estimates the memory that a key and its value take.',
    differs: 'An estimate of the memory in this process, without samples.',
    keys: KEY,
    run: (args, { keyspace }) => memoryUsage(args, keyspace),
  },
];
