/** Sorted sets: members and their scores. */

import { ScoredMembers } from '../engine/values.js';
import { formatDouble } from '../resp/number.js';
import { type Bytes, Double, ErrorReply, Pairs, type Reply } from '../resp/reply.js';
import { float, option, syntaxError } from './arguments.js';
import {
  checkPairs,
  ONE_KEY,
  randomCount,
  randomPositions,
  scanned,
  shrunk,
} from './collections.js';
import type { CommandSpec, Execution } from './spec.js';

interface Conditions {
  nx: boolean;
  xx: boolean;
  gt: boolean;
  lt: boolean;
  /** Whether changed members count as well as new ones. */
  ch: boolean;
  incr: boolean;
}

/** No number begins with a byte from here on, except `inf`. */
const LETTERS = 65;

/** @returns the position of the first score */
function readConditions(args: readonly Bytes[], conditions: Conditions): number {
  let i = 1;
  for (; i < args.length && args[i].charCodeAt(0) >= LETTERS; i++) {
    const name = option(args[i]);
    if (!Object.hasOwn(conditions, name)) break;
    conditions[name as keyof Conditions] = true;
  }
  return i;
}

function checkConditions({ nx, xx, gt, lt, incr }: Conditions, pairs: number): void {
  if (nx && xx) {
    throw new ErrorReply('ERR XX and NX options at the same time are not compatible');
  }
  if ((gt && nx) || (lt && nx) || (gt && lt)) {
    throw new ErrorReply('ERR GT, LT, and/or NX options at the same time are not compatible');
  }
  if (incr && pairs > 1) {
    throw new ErrorReply('ERR INCR option supports a single increment-element pair');
  }
}

export function zadd(args: readonly Bytes[], execution: Execution): Reply {
  const conditions = { nx: false, xx: false, gt: false, lt: false, ch: false, incr: false };
  const first = readConditions(args, conditions);
  const left = args.length - first;
  if (left === 0 || left % 2 !== 0) throw syntaxError();
  checkConditions(conditions, left / 2);
  return add(args, first, conditions, execution);
}

const INCREMENT: Conditions = { nx: false, xx: false, gt: false, lt: false, ch: false, incr: true };

/** @param first  the position of the first score */
function add(
  args: readonly Bytes[],
  first: number,
  conditions: Conditions,
  { keyspace }: Execution,
): Reply {
  const { xx, ch, incr } = conditions;
  const key = args[0];
  // All scores are read before the first is set, so that none is set if one is wrong.
  let score = float(args[first]);
  for (let i = first + 2; i < args.length; i += 2) float(args[i]);
  const existing = keyspace.forWrite(key, 'zset');
  if (existing === undefined && xx) return incr ? null : 0;
  const set = existing ?? new ScoredMembers();
  let added = 0;
  let updated = 0;
  let result: number | undefined;
  for (let i = first; i < args.length; i += 2) {
    if (i > first) score = float(args[i]);
    const member = args[i + 1];
    const before = set.score(member);
    result = scoreToSet(before, score, conditions);
    if (result === undefined || result === before) continue;
    set.set(member, result);
    if (before === undefined) added++;
    else updated++;
  }
  if (existing === undefined) keyspace.set(key, set);
  else if (added + updated > 0) keyspace.changed(key);
  if (incr) return result === undefined ? null : new Double(result);
  return ch ? added + updated : added;
}

/** @returns undefined if the conditions do not allow it */
function scoreToSet(
  before: number | undefined,
  score: number,
  { nx, xx, gt, lt, incr }: Conditions,
): number | undefined {
  if (before === undefined) return xx ? undefined : score;
  if (nx) return undefined;
  const after = incr ? before + score : score;
  if (Number.isNaN(after)) throw new ErrorReply('ERR resulting score is not a number (NaN)');
  if ((gt && after <= before) || (lt && after >= before)) return undefined;
  return after;
}

function zrem(args: readonly Bytes[], { keyspace }: Execution): Reply {
  const key = args[0];
  const set = keyspace.forWrite(key, 'zset');
  if (set === undefined) return 0;
  let removed = 0;
  for (let i = 1; i < args.length; i++) if (set.delete(args[i])) removed++;
  if (removed > 0) shrunk(keyspace, key, set.size);
  return removed;
}

function scoreReply(score: number | undefined): Reply {
  return score === undefined ? null : new Double(score);
}

function zrandmember(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  const [key, countText, withScoresText] = args;
  if (args.length === 1) {
    const set = keyspace.read(key, 'zset');
    return set === undefined ? null : set.at(Math.floor(execution.random() * set.size))[0];
  }
  const count = randomCount(countText);
  if (args.length > 3 || (args.length === 3 && option(withScoresText) !== 'withscores')) {
    throw syntaxError();
  }
  if (args.length === 3) checkPairs(count);
  const set = keyspace.read(key, 'zset');
  if (set === undefined) return [];
  const picked = randomPositions(set.size, count, execution).map((rank) => set.at(rank));
  if (args.length === 2) return picked.map(([member]) => member);
  return new Pairs(picked.map(([member, score]) => [member, new Double(score)]));
}

/** Redis keeps the integers of small sorted sets as such up to here. */
const INTEGER_SCORE_MAX = 2 ** 62;

function zscan(args: readonly Bytes[], { keyspace }: Execution): Reply {
  let isCompact = false;
  const find = () => {
    const set = keyspace.read(args[0], 'zset');
    if (set === undefined) return undefined;
    isCompact = set.isCompact;
    const { size, scores } = set;
    return { isCompact, size, scan: scores.scan.bind(scores) };
  };
  return scanned<number>(args, find, (out, member, score) => {
    const isInteger = isCompact && Number.isInteger(score) && Math.abs(score) < INTEGER_SCORE_MAX;
    out.push(member, isInteger ? String(BigInt(score)) : formatDouble(score));
  });
}

export const SORTED_SETS: readonly CommandSpec[] = [
  {
    name: 'zadd',
    arity: -4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Adds members to a sorted set, or changes their scores.',
    keys: ONE_KEY,
    run: zadd,
  },
  {
    name: 'zincrby',
    arity: 4,
    flags: ['write', 'denyoom', 'fast'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Adds a number to the score of a member.',
    keys: ONE_KEY,
    run: (args, execution) => add(args, 1, INCREMENT, execution),
  },
  {
    name: 'zrem',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Removes members from a sorted set.',
    keys: ONE_KEY,
    run: zrem,
  },
  {
    name: 'zscore',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Returns the score of a member.',
    keys: ONE_KEY,
    run: ([key, member], { keyspace }) => scoreReply(keyspace.read(key, 'zset')?.score(member)),
  },
  {
    name: 'zmscore',
    arity: -3,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the scores of several members.',
    keys: ONE_KEY,
    run: ([key, ...members], { keyspace }) => {
      const set = keyspace.read(key, 'zset');
      return members.map((member) => scoreReply(set?.score(member)));
    },
  },
  {
    name: 'zcard',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Returns the number of members of a sorted set.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'zset')?.size ?? 0,
  },
  {
    name: 'zrank',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '2.0.0',
    summary: 'Returns the rank of a member, from the lowest score.',
    keys: ONE_KEY,
    run: ([key, member], { keyspace }) => keyspace.read(key, 'zset')?.rank(member) ?? null,
  },
  {
    name: 'zrevrank',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '2.0.0',
    summary: 'Returns the rank of a member, from the highest score.',
    keys: ONE_KEY,
    run: ([key, member], { keyspace }) => {
      const set = keyspace.read(key, 'zset');
      const rank = set?.rank(member);
      return rank === undefined ? null : set!.size - 1 - rank;
    },
  },
  {
    name: 'zrandmember',
    arity: -2,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns random members of a sorted set.',
    differs: 'A negative count is at least -1,048,576.',
    keys: ONE_KEY,
    run: zrandmember,
  },
  {
    name: 'zscan',
    arity: -3,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '2.8.0',
    summary: 'Visits the members of a sorted set, some at a time.',
    keys: ONE_KEY,
    run: zscan,
  },
];
