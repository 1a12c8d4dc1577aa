/** When keys expire. */

import type { Keyspace } from '../engine/keyspace.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { INTEGER_MAX, option } from './arguments.js';
import { expiryTime, TIME_FORMS, type TimeForm } from './expiry-times.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec, Run } from './spec.js';

const CONDITIONS: readonly string[] = ['nx', 'xx', 'gt', 'lt'];

function conditionsOf(args: readonly Bytes[]): ReadonlySet<string> {
  const conditions = new Set<string>();
  for (const arg of args.slice(2)) {
    const condition = option(arg);
    if (!CONDITIONS.includes(condition)) throw new ErrorReply(`ERR Unsupported option ${arg}`);
    conditions.add(condition);
  }
  if (conditions.has('nx') && conditions.size > 1) {
    throw new ErrorReply('ERR NX and XX, GT or LT options at the same time are not compatible');
  }
  if (conditions.has('gt') && conditions.has('lt')) {
    throw new ErrorReply('ERR GT and LT options at the same time are not compatible');
  }
  return conditions;
}

/** A key without an expiry time counts as one that expires after all others. */
function allows(conditions: ReadonlySet<string>, beforeMs: number, afterMs: number): boolean {
  const expires = beforeMs !== Infinity;
  return !(
    (conditions.has('nx') && expires) ||
    (conditions.has('xx') && !expires) ||
    (conditions.has('gt') && afterMs <= beforeMs) ||
    (conditions.has('lt') && afterMs >= beforeMs)
  );
}

function expire(command: string, form: TimeForm): Run {
  return (args, { keyspace }) => {
    const key = args[0];
    const conditions = conditionsOf(args);
    const expiresAtMs = expiryTime(args[1], form, keyspace.nowMs, command);
    const entry = keyspace.find(key);
    if (entry === undefined || !allows(conditions, entry.expiresAtMs, expiresAtMs)) return 0;
    if (expiresAtMs <= keyspace.nowMs) keyspace.delete(key);
    else keyspace.expireAt(key, expiresAtMs);
    return 1;
  };
}

const ABSENT = -2;
const NEVER = -1;

function timeOf(
  keyspace: Keyspace,
  key: Bytes,
  convert: (expiresAtMs: number, nowMs: number) => number,
): Reply {
  const entry = keyspace.peek(key);
  if (entry === undefined) return ABSENT;
  if (entry.expiresAtMs === Infinity) return NEVER;
  const time = convert(entry.expiresAtMs, keyspace.nowMs);
  if (Number.isSafeInteger(time)) return time;
  // Times are doubles: the greatest integer of 64 bits is none, and the next one would be too large for a reply.
  return time >= Number(INTEGER_MAX) ? INTEGER_MAX : BigInt(time);
}

/** Rounded as Redis does it. */
function toSeconds(ms: number): number {
  return Math.floor((ms + 500) / 1000);
}

export const EXPIRY: readonly CommandSpec[] = [
  {
    name: 'expire',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Lets a key expire after seconds.',
    keys: ONE_KEY,
    run: expire('expire', TIME_FORMS['ex']!),
  },
  {
    name: 'pexpire',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '2.6.0',
    summary: 'Lets a key expire after milliseconds.',
    keys: ONE_KEY,
    run: expire('pexpire', TIME_FORMS['px']!),
  },
  {
    name: 'expireat',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '1.2.0',
    summary: 'Lets a key expire at a time in seconds since 1970.',
    keys: ONE_KEY,
    run: expire('expireat', TIME_FORMS['exat']!),
  },
  {
    name: 'pexpireat',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '2.6.0',
    summary: 'Lets a key expire at a time in milliseconds since 1970.',
    keys: ONE_KEY,
    run: expire('pexpireat', TIME_FORMS['pxat']!),
  },
  {
    name: 'persist',
    arity: 2,
    flags: ['write', 'fast'],
    category: 'generic',
    since: '2.2.0',
    summary: 'Lets a key never expire.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => {
      const entry = keyspace.find(key);
      if (entry === undefined || entry.expiresAtMs === Infinity) return 0;
      keyspace.expireAt(key, Infinity);
      return 1;
    },
  },
  {
    name: 'ttl',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Replies with the seconds until a key expires.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => timeOf(keyspace, key, (atMs, nowMs) => toSeconds(atMs - nowMs)),
  },
  {
    name: 'pttl',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '2.6.0',
    summary: 'Replies with the milliseconds until a key expires.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => timeOf(keyspace, key, (atMs, nowMs) => atMs - nowMs),
  },
  {
    name: 'expiretime',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '7.0.0',
    summary: 'Replies with the time when a key expires, in seconds since 1970.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => timeOf(keyspace, key, toSeconds),
  },
  {
    name: 'pexpiretime',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'generic',
    since: '7.0.0',
    summary: 'Replies with the time when a key expires, in milliseconds since 1970.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => timeOf(keyspace, key, (atMs) => atMs),
  },
];
