/** Sorted sets: union, intersection and difference, also of sets, whose members count as having the score 1. */

import type { IndexedMap } from '../engine/indexed-map.js';
import { SortedSet } from '../engine/sorted-set.js';
import { ScoredMembers } from '../engine/values.js';
import { type Bytes, Double, ErrorReply, Pairs, type Reply } from '../resp/reply.js';
import { float, integer, option, syntaxError } from './arguments.js';
import { countedKeys, ONE_KEY, positive, storedAndCountedKeys } from './collections.js';
import type { CommandSpec, Execution, Run } from './spec.js';

/** One of the sets of a command. A key that is not there has an empty one. */
interface Operand {
  readonly size: number;
  readonly members: readonly Bytes[];
  /** The score times the weight: it can be NaN. @returns undefined if it is no member */
  score(member: Bytes): number | undefined;
}

const EMPTY: Operand = { size: 0, members: [], score: () => undefined };

function operand(key: Bytes, { keyspace }: Execution): Operand {
  const value = keyspace.find(key)?.value;
  if (value === undefined) return EMPTY;
  const isSet = typeof value === 'object' && 'type' in value && value.type === 'set';
  const map: IndexedMap<unknown> = isSet
    ? keyspace.read(key, 'set')!
    : keyspace.read(key, 'zset')!.scores;
  const score = isSet
    ? (member: Bytes) => (map.has(member) ? 1 : undefined)
    : (member: Bytes) => map.get(member) as number | undefined;
  return { size: map.size, members: map.keys(), score };
}

/** What is not a number counts as zero: infinity times zero, and the sum of both infinities. */
function number(value: number): number {
  return Number.isNaN(value) ? 0 : value;
}

function weighted({ size, members, score }: Operand, weight: number): Operand {
  const weightedScore = (member: Bytes) => {
    const value = score(member);
    return value === undefined ? undefined : value * weight;
  };
  return { size, members, score: weightedScore };
}

type Aggregate = (a: number, b: number) => number;

const AGGREGATES: ReadonlyMap<string, Aggregate> = new Map([
  ['sum', (a, b) => number(a + b)],
  // Minus zero is not less than zero, and NaN is neither less nor greater.
  ['min', (a, b) => (b < a ? b : a)],
  ['max', (a, b) => (b > a ? b : a)],
]);

interface Query {
  readonly operands: readonly Operand[];
  readonly aggregate: Aggregate;
  readonly withScores: boolean;
  readonly limit: number;
}

/** Which options a command has. */
interface Options {
  readonly name: string;
  readonly weights: boolean;
  readonly withScores: boolean;
  readonly limit: boolean;
}

/** @param args  from the number of keys on */
function parseQuery(args: readonly Bytes[], options: Options, execution: Execution): Query {
  const numberOfKeys = integer(args[0]);
  if (numberOfKeys < 1) {
    throw new ErrorReply(`ERR at least 1 input key is needed for '${options.name}' command`);
  }
  const afterKeys = 1 + numberOfKeys;
  if (afterKeys > args.length) throw syntaxError();
  let operands = args.slice(1, afterKeys).map((key) => operand(key, execution));
  let aggregate = AGGREGATES.get('sum')!;
  let withScores = false;
  let limit = Infinity;
  for (let i = afterKeys; i < args.length; i++) {
    const name = option(args[i]);
    const left = args.length - i - 1;
    if (name === 'weights' && options.weights && left >= numberOfKeys) {
      const from = i + 1;
      operands = operands.map((operand, j) =>
        weighted(operand, float(args[from + j], 'ERR weight value is not a float')),
      );
      i += numberOfKeys;
    } else if (name === 'aggregate' && options.weights && left >= 1) {
      const chosen = AGGREGATES.get(option(args[++i]));
      if (chosen === undefined) throw syntaxError();
      aggregate = chosen;
    } else if (name === 'withscores' && options.withScores) {
      withScores = true;
    } else if (name === 'limit' && options.limit && left >= 1) {
      limit = positive(args[++i], "ERR LIMIT can't be negative") || Infinity;
    } else throw syntaxError();
  }
  return { operands, aggregate, withScores, limit };
}

/** Sums of doubles depend on the order: Redis begins with the smallest set. */
function bySize(operands: readonly Operand[]): readonly Operand[] {
  return operands.toSorted((a, b) => a.size - b.size);
}

function union({ operands, aggregate }: Query, result: SortedSet): void {
  const scores = new Map<Bytes, number>();
  for (const { members, score } of bySize(operands)) {
    for (const member of members) {
      const before = scores.get(member);
      const value = number(score(member)!);
      scores.set(member, before === undefined ? value : aggregate(before, value));
    }
  }
  for (const [member, score] of scores) result.set(member, score);
}

/** Visits members that all of these have, until `visit` returns false. */
function visitCommon(
  { operands, aggregate }: Query,
  visit: (member: Bytes, score: number) => boolean,
): void {
  const [smallest, ...others] = bySize(operands);
  for (const member of smallest.members) {
    let total: number | undefined = number(smallest.score(member)!);
    for (const { score } of others) {
      const value = score(member);
      total = total === undefined || value === undefined ? undefined : aggregate(total, value);
    }
    if (total !== undefined && !visit(member, total)) return;
  }
}

function intersection(query: Query, result: SortedSet): void {
  visitCommon(query, (member, score) => {
    result.set(member, score);
    return true;
  });
}

function difference({ operands: [first, ...others] }: Query, result: SortedSet): void {
  for (const member of first.members) {
    if (others.some(({ score }) => score(member) !== undefined)) continue;
    result.set(member, first.score(member)!);
  }
}

type Combination = (query: Query, result: SortedSet) => void;

function combining(name: string, combine: Combination): Run {
  const options = { name, weights: combine !== difference, withScores: true, limit: false };
  return (args, execution) => {
    const query = parseQuery(args, options, execution);
    const result = new SortedSet();
    combine(query, result);
    if (query.withScores) {
      const pairs: [Bytes, Double][] = [];
      result.visit(0, result.size, (member, score) => pairs.push([member, new Double(score)]));
      return new Pairs(pairs);
    }
    const members: Bytes[] = [];
    result.visit(0, result.size, (member) => members.push(member));
    return members;
  };
}

function storing(name: string, combine: Combination): Run {
  const options = { name, weights: combine !== difference, withScores: false, limit: false };
  return ([target, ...args], execution) => {
    const result = new ScoredMembers();
    combine(parseQuery(args, options, execution), result);
    if (result.size === 0) execution.keyspace.delete(target);
    else execution.keyspace.set(target, result);
    return result.size;
  };
}

function zintercard(args: readonly Bytes[], execution: Execution): Reply {
  const options = { name: 'zintercard', weights: false, withScores: false, limit: true };
  const query = parseQuery(args, options, execution);
  let count = 0;
  visitCommon(query, () => ++count < query.limit);
  return count;
}

export const SORTED_SET_ALGEBRA: readonly CommandSpec[] = [
  {
    name: 'zunion',
    arity: -3,
    flags: ['readonly', 'movablekeys'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the members that any of the sorted sets has.',
    findKeys: countedKeys(0),
    run: combining('zunion', union),
  },
  {
    name: 'zinter',
    arity: -3,
    flags: ['readonly', 'movablekeys'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the members that all of the sorted sets have.',
    findKeys: countedKeys(0),
    run: combining('zinter', intersection),
  },
  {
    name: 'zdiff',
    arity: -3,
    flags: ['readonly', 'movablekeys'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Returns the members of the first sorted set that no other one has.',
    findKeys: countedKeys(0),
    run: combining('zdiff', difference),
  },
  {
    name: 'zunionstore',
    arity: -4,
    flags: ['write', 'denyoom', 'movablekeys'],
    category: 'sorted-set',
    since: '2.0.0',
    summary: 'Stores the members that any of the sorted sets has.',
    keys: ONE_KEY,
    findKeys: storedAndCountedKeys,
    run: storing('zunionstore', union),
  },
  {
    name: 'zinterstore',
    arity: -4,
    flags: ['write', 'denyoom', 'movablekeys'],
    category: 'sorted-set',
    since: '2.0.0',
    summary: 'Stores the members that all of the sorted sets have.',
    keys: ONE_KEY,
    findKeys: storedAndCountedKeys,
    run: storing('zinterstore', intersection),
  },
  {
    name: 'zdiffstore',
    arity: -4,
    flags: ['write', 'denyoom', 'movablekeys'],
    category: 'sorted-set',
    since: '6.2.0',
    summary: 'Stores the members of the first sorted set that no other one has.',
    keys: ONE_KEY,
    findKeys: storedAndCountedKeys,
    run: storing('zdiffstore', difference),
  },
  {
    name: 'zintercard',
    arity: -3,
    flags: ['readonly', 'movablekeys'],
    category: 'sorted-set',
    since: '7.0.0',
    summary: 'Returns how many members all of the sorted sets have.',
    findKeys: countedKeys(0),
    run: zintercard,
  },
];
