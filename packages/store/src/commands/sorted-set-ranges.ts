/** Sorted sets: ranges of members. */

import type { SortedSet } from '../engine/sorted-set.js';
import { ScoredMembers } from '../engine/values.js';
import { type Bytes, Double, ErrorReply, Pairs, type Reply } from '../resp/reply.js';
import { integer, option, syntaxError } from './arguments.js';
import { ONE_KEY, type Span, shrunk, TWO_KEYS } from './collections.js';
import { parseRange, type Range, type RangeKind } from './score-ranges.js';
import type { CommandSpec, Execution, Run } from './spec.js';

/** What a command of the family is by its name. What is undefined is left to options. */
interface Form {
  readonly kind?: RangeKind;
  readonly reversed?: boolean;
}

interface Query {
  readonly range: Range;
  readonly reversed: boolean;
  readonly withScores: boolean;
  /** How many members are left out at the beginning, and how many are taken. */
  readonly offset: number;
  readonly count: number;
}

/** @param args  from the first bound on */
function parseQuery(args: readonly Bytes[], form: Form, stored: boolean): Query {
  let { kind, reversed } = form;
  let withScores = false;
  let offset = 0;
  let count = -1;
  for (let i = 2; i < args.length; i++) {
    const name = option(args[i]);
    if (name === 'withscores' && !stored) withScores = true;
    else if (name === 'limit' && i + 2 < args.length) {
      offset = integer(args[i + 1]);
      count = integer(args[i + 2]);
      i += 2;
    } else if (name === 'rev' && reversed === undefined) reversed = true;
    else if (name === 'bylex' && kind === undefined) kind = 'lex';
    else if (name === 'byscore' && kind === undefined) kind = 'score';
    else throw syntaxError();
  }
  kind ??= 'rank';
  reversed ??= false;
  // As in Redis, a limit of -1 is none.
  if (count !== -1 && kind === 'rank') {
    throw new ErrorReply(
      'ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX',
    );
  }
  if (withScores && kind === 'lex') {
    throw new ErrorReply('ERR syntax error, WITHSCORES not supported in combination with BYLEX');
  }
  const [first, second] = args;
  const range =
    reversed && kind !== 'rank'
      ? parseRange(kind, second, first)
      : parseRange(kind, first, second, reversed);
  return { range, reversed, withScores, offset: kind === 'rank' ? 0 : offset, count };
}

/** The ranks that the query asks for; `from` is not less than `to` if there is none. */
function select(set: SortedSet, { range, reversed, offset, count }: Query): Span {
  const { from, to } = range(set);
  if (offset < 0) return { from: 0, to: 0 };
  const length = Math.min(to - from - offset, count < 0 ? Infinity : count);
  return reversed
    ? { from: to - offset - length, to: to - offset }
    : { from: from + offset, to: from + offset + length };
}

function visit(
  set: SortedSet,
  query: Query,
  visitor: (member: Bytes, score: number) => void,
): void {
  const { from, to } = select(set, query);
  if (query.reversed) set.visitDown(from, to, visitor);
  else set.visit(from, to, visitor);
}

function ranging(form: Form): Run {
  return ([key, ...args], { keyspace }) => {
    const query = parseQuery(args, form, false);
    const set = keyspace.read(key, 'zset');
    if (set === undefined) return [];
    if (query.withScores) {
      const pairs: [Bytes, Double][] = [];
      visit(set, query, (member, score) => pairs.push([member, new Double(score)]));
      return new Pairs(pairs);
    }
    const members: Bytes[] = [];
    visit(set, query, (member) => members.push(member));
    return members;
  };
}

function zrangestore([target, key, ...args]: readonly Bytes[], { keyspace }: Execution): Reply {
  const query = parseQuery(args, {}, true);
  const set = keyspace.read(key, 'zset');
  const result = new ScoredMembers();
  if (set !== undefined) visit(set, query, (member, score) => result.set(member, score));
  if (result.size === 0) keyspace.delete(target);
  else keyspace.set(target, result);
  return result.size;
}

function counting(kind: RangeKind): Run {
  return ([key, min, max], { keyspace }) => {
    const range = parseRange(kind, min, max);
    const set = keyspace.read(key, 'zset');
    if (set === undefined) return 0;
    const { from, to } = range(set);
    return Math.max(0, to - from);
  };
}

function removing(kind: RangeKind): Run {
  return ([key, min, max], { keyspace }) => {
    const range = parseRange(kind, min, max);
    const set = keyspace.forWrite(key, 'zset');
    if (set === undefined) return 0;
    const { from, to } = range(set);
    const members: Bytes[] = [];
    set.visit(from, to, (member) => members.push(member));
    for (const member of members) set.delete(member);
    if (members.length > 0) shrunk(keyspace, key, set.size);
    return members.length;
  };
}

/** Redis leaves open what these do if scores differ. */
const SAME_SCORES = 'If members have different scores, the reply can be another one.';

export const SORTED_SET_RANGES: readonly CommandSpec[] = [
  {
    name: 'zrange',
    arity: -4,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Returns members in a range of ranks, scores or bytes.',
    keys: ONE_KEY,
    run: ranging({}),
  },
  {
    name: 'zrangestore',
    arity: -5,
    flags: ['write', 'denyoom'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Stores members in a range of ranks, scores or bytes.',
    keys: TWO_KEYS,
    run: zrangestore,
  },
  {
    name: 'zrevrange',
    arity: -4,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Returns members in a range of ranks, from the highest score.',
    keys: ONE_KEY,
    run: ranging({ kind: 'rank', reversed: true }),
  },
  {
    name: 'zrangebyscore',
    arity: -4,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '1.0.5',
    summary: 'Returns members in a range of scores.',
    keys: ONE_KEY,
    run: ranging({ kind: 'score', reversed: false }),
  },
  {
    name: 'zrevrangebyscore',
    arity: -4,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '2.2.0',
    summary: 'Returns members in a range of scores, from the highest score.',
    keys: ONE_KEY,
    run: ranging({ kind: 'score', reversed: true }),
  },
  {
    name: 'zrangebylex',
    arity: -4,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '2.8.9',
    summary: 'Returns members in a range of bytes, if all have the same score.',
    differs: SAME_SCORES,
    keys: ONE_KEY,
    run: ranging({ kind: 'lex', reversed: false }),
  },
  {
    name: 'zrevrangebylex',
    arity: -4,
    flags: ['readonly'],
    category: 'sorted-set',
    since: '2.8.9',
    summary: 'Returns members in a range of bytes, from the last, if all have the same score.',
    differs: SAME_SCORES,
    keys: ONE_KEY,
    run: ranging({ kind: 'lex', reversed: true }),
  },
  {
    name: 'zcount',
    arity: 4,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '2.0.0',
    summary: 'Returns how many members are in a range of scores.',
    keys: ONE_KEY,
    run: counting('score'),
  },
  {
    name: 'zlexcount',
    arity: 4,
    flags: ['readonly', 'fast'],
    category: 'sorted-set',
    since: '2.8.9',
    summary: 'Returns how many members are in a range of bytes, if all have the same score.',
    differs: SAME_SCORES,
    keys: ONE_KEY,
    run: counting('lex'),
  },
  {
    name: 'zremrangebyrank',
    arity: 4,
    flags: ['write'],
    category: 'sorted-set',
    since: '2.0.0',
    summary: 'Removes members in a range of ranks.',
    keys: ONE_KEY,
    run: removing('rank'),
  },
  {
    name: 'zremrangebyscore',
    arity: 4,
    flags: ['write'],
    category: 'sorted-set',
    since: '1.2.0',
    summary: 'Removes members in a range of scores.',
    keys: ONE_KEY,
    run: removing('score'),
  },
  {
    name: 'zremrangebylex',
    arity: 4,
    flags: ['write'],
    category: 'sorted-set',
    since: '2.8.9',
    summary: 'Removes members in a range of bytes, if all have the same score.',
    differs: SAME_SCORES,
    keys: ONE_KEY,
    run: removing('lex'),
  },
];
