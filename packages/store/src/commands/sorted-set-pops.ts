/** Sorted sets: members with the lowest or highest scores are taken, and commands wait for them. */

import type { ScoredMembers } from '../engine/values.js';
import { type Bytes, Double, NullArray, Pairs, type Reply } from '../resp/reply.js';
import { syntaxError } from './arguments.js';
import {
  countedKeys,
  KEYS_BEFORE_LAST,
  ONE_KEY,
  popArguments,
  positive,
  readToTake,
  shrunk,
  timeout,
} from './collections.js';
import type { CommandSpec, Execution, Run } from './spec.js';

type Which = 'min' | 'max';
type Scored = [member: Bytes, score: Double];

/** Removes members. @param count  how many at most */
function take(set: ScoredMembers, which: Which, count: number): Scored[] {
  const length = Math.min(count, set.size);
  const taken: Scored[] = [];
  const visit = (member: Bytes, score: number) => taken.push([member, new Double(score)]);
  if (which === 'min') set.visit(0, length, visit);
  else set.visitDown(set.size - length, set.size, visit);
  for (const [member] of taken) set.delete(member);
  return taken;
}

function popping(which: Which): Run {
  return (args, { keyspace }) => {
    if (args.length > 2) throw syntaxError();
    const [key] = args;
    const count = args.length === 2 ? positive(args[1]) : undefined;
    const set = keyspace.forWrite(key, 'zset');
    if (set === undefined || count === 0) return [];
    const taken = take(set, which, count ?? 1);
    shrunk(keyspace, key, set.size);
    return count === undefined ? taken[0] : new Pairs(taken);
  };
}

/** Takes members from the first of these sorted sets that is there. */
function takeFirst(
  keys: readonly Bytes[],
  which: Which,
  count: number,
  execution: Execution,
): { readonly key: Bytes; readonly taken: Scored[] } | undefined {
  const { keyspace } = execution;
  for (const key of keys) {
    if (readToTake(execution, key, 'zset') === undefined) continue;
    const set = keyspace.forWrite(key, 'zset')!;
    const taken = take(set, which, count);
    shrunk(keyspace, key, set.size);
    return { key, taken };
  }
  return undefined;
}

function blockingPop(which: Which): Run {
  return (args, execution) => {
    const keys = args.slice(0, -1);
    const timeoutMs = timeout(args[args.length - 1]);
    const found = takeFirst(keys, which, 1, execution);
    if (found === undefined) return execution.block(keys, timeoutMs, NullArray.instance);
    return [found.key, ...found.taken[0]];
  };
}

function popFirst(args: readonly Bytes[], execution: Execution) {
  const { keys, where, count } = popArguments(args, ['min', 'max']);
  const run = (): Reply | undefined => {
    const found = takeFirst(keys, where as Which, count, execution);
    return found && [found.key, found.taken];
  };
  return { keys, run };
}

export const SORTED_SET_POPS: readonly CommandSpec[] = [
  {
    name: 'zpopmin',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'sorted-set',
    since: '5.0.0',
    summary: 'Removes and returns members with the lowest scores.',
    keys: ONE_KEY,
    run: popping('min'),
  },
  {
    name: 'zpopmax',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'sorted-set',
    since: '5.0.0',
    summary: 'Removes and returns members with the highest scores.',
    keys: ONE_KEY,
    run: popping('max'),
  },
  {
    name: 'bzpopmin',
    arity: -3,
    flags: ['write', 'noscript', 'blocking', 'fast'],
    category: 'sorted-set',
    since: '5.0.0',
    summary: 'Removes and returns the member with the lowest score; waits until there is one.',
    keys: KEYS_BEFORE_LAST,
    run: blockingPop('min'),
  },
  {
    name: 'bzpopmax',
    arity: -3,
    flags: ['write', 'noscript', 'blocking', 'fast'],
    category: 'sorted-set',
    since: '5.0.0',
    summary: 'Removes and returns the member with the highest score; waits until there is one.',
    keys: KEYS_BEFORE_LAST,
    run: blockingPop('max'),
  },
  {
    name: 'zmpop',
    arity: -4,
    flags: ['write', 'movablekeys'],
    category: 'sorted-set',
    since: '7.0.0',
    summary: 'Removes and returns members of the first sorted set that is not empty.',
    findKeys: countedKeys(0),
    run: (args, execution) => popFirst(args, execution).run() ?? NullArray.instance,
  },
  {
    name: 'bzmpop',
    arity: -5,
    flags: ['write', 'blocking', 'movablekeys'],
    category: 'sorted-set',
    since: '7.0.0',
    summary:
      'Removes and returns members of the first sorted set that is not empty; waits for one.',
    findKeys: countedKeys(1),
    run: (args, execution) => {
      const { keys, run } = popFirst(args.slice(1), execution);
      const timeoutMs = timeout(args[0]);
      return run() ?? execution.block(keys, timeoutMs, NullArray.instance);
    },
  },
];
