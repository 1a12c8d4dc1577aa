/** Sets. */

import { Members } from '../engine/values.js';
import { type Bytes, ErrorReply, type Reply, SetReply } from '../resp/reply.js';
import { option, syntaxError } from './arguments.js';
import {
  ALL_KEYS,
  atLeastOne,
  countedKeys,
  ONE_KEY,
  positive,
  randomCount,
  randomPositions,
  scanned,
  shrunk,
  TWO_KEYS,
} from './collections.js';
import { DIFFERENCE_PER_KEY, INTERSECTION_PER_KEY, UNION_PER_KEY } from './set-spreads.js';
import type { CommandSpec, Execution, Run } from './spec.js';

function sadd(args: readonly Bytes[], { keyspace }: Execution): Reply {
  const key = args[0];
  const set = keyspace.forWrite(key, 'set');
  const members = set ?? new Members();
  let added = 0;
  for (let i = 1; i < args.length; i++) if (members.add(args[i])) added++;
  if (set === undefined) keyspace.set(key, members);
  else if (added > 0) keyspace.changed(key);
  return added;
}

function srem(args: readonly Bytes[], { keyspace }: Execution): Reply {
  const key = args[0];
  const set = keyspace.forWrite(key, 'set');
  if (set === undefined) return 0;
  let removed = 0;
  for (let i = 1; i < args.length; i++) if (set.delete(args[i])) removed++;
  if (removed > 0) shrunk(keyspace, key, set.size);
  return removed;
}

function smove([from, to, member]: readonly Bytes[], { keyspace }: Execution): Reply {
  const source = keyspace.forWrite(from, 'set');
  if (source === undefined) return 0;
  const target = keyspace.forWrite(to, 'set');
  if (from === to) return source.has(member) ? 1 : 0;
  if (!source.delete(member)) return 0;
  shrunk(keyspace, from, source.size);
  if (target === undefined) {
    const members = new Members();
    members.add(member);
    keyspace.set(to, members);
  } else if (target.add(member)) {
    keyspace.changed(to);
  }
  return 1;
}

function spop(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  if (args.length > 2) throw syntaxError();
  const [key] = args;
  const count = args.length === 2 ? positive(args[1]) : undefined;
  const set = keyspace.forWrite(key, 'set');
  if (set === undefined) return count === undefined ? null : new SetReply([]);
  if (count === 0) return new SetReply([]);
  const popped: Bytes[] = [];
  for (let left = Math.min(count ?? 1, set.size); left > 0; left--) {
    const member = set.keyAt(Math.floor(execution.random() * set.size));
    set.delete(member);
    popped.push(member);
  }
  shrunk(keyspace, key, set.size);
  return count === undefined ? popped[0] : new SetReply(popped);
}

function srandmember(args: readonly Bytes[], execution: Execution): Reply {
  const { keyspace } = execution;
  if (args.length > 2) throw syntaxError();
  const [key] = args;
  if (args.length === 1) {
    const set = keyspace.read(key, 'set');
    return set === undefined ? null : set.keyAt(Math.floor(execution.random() * set.size));
  }
  const count = randomCount(args[1]);
  const set = keyspace.read(key, 'set');
  if (set === undefined) return [];
  return randomPositions(set.size, count, execution).map((position) => set.keyAt(position));
}

// ── Several sets ──

/** @returns undefined for a key that is not there. A key of another type is an error, wherever it is. */
function readAll(
  keys: readonly Bytes[],
  { keyspace }: Execution,
): readonly (Members | undefined)[] {
  return keys.map((key) => keyspace.read(key, 'set'));
}

/** Visits members that all of these have, until `visit` returns false. */
function visitCommon(
  sets: readonly (Members | undefined)[],
  visit: (member: Bytes) => boolean,
): void {
  if (sets.includes(undefined)) return;
  const [smallest, ...others] = (sets as readonly Members[]).toSorted((a, b) => a.size - b.size);
  for (const member of smallest.keys()) {
    if (others.every((set) => set.has(member)) && !visit(member)) return;
  }
}

function intersection(keys: readonly Bytes[], execution: Execution): Members {
  const result = new Members();
  visitCommon(readAll(keys, execution), (member) => result.add(member));
  return result;
}

function union(keys: readonly Bytes[], execution: Execution): Members {
  const result = new Members();
  for (const set of readAll(keys, execution)) {
    if (set) for (const member of set.keys()) result.add(member);
  }
  return result;
}

function difference(keys: readonly Bytes[], execution: Execution): Members {
  const [first, ...others] = readAll(keys, execution);
  const result = new Members();
  if (first === undefined) return result;
  for (const member of first.keys()) {
    if (!others.some((set) => set?.has(member))) result.add(member);
  }
  return result;
}

type Combination = typeof union;

function combining(combine: Combination): Run {
  return (keys, execution) => new SetReply(combine(keys, execution).keys());
}

function storing(combine: Combination): Run {
  return ([target, ...keys], execution) => {
    const { keyspace } = execution;
    const result = combine(keys, execution);
    if (result.size === 0) keyspace.delete(target);
    else keyspace.set(target, result);
    return result.size;
  };
}

function sintercard(args: readonly Bytes[], execution: Execution): Reply {
  const { keys, limit } = cardArguments(args);
  let count = 0;
  visitCommon(readAll(keys, execution), () => ++count < limit);
  return count;
}

/** `numkeys key [key …] [LIMIT limit]` */
function cardArguments(args: readonly Bytes[]) {
  const numberOfKeys = atLeastOne(args[0], 'numkeys');
  if (numberOfKeys > args.length - 1) {
    throw new ErrorReply("ERR Number of keys can't be greater than number of args");
  }
  let limit = Infinity;
  for (let i = 1 + numberOfKeys; i < args.length; i += 2) {
    if (option(args[i]) !== 'limit' || i + 1 === args.length) throw syntaxError();
    limit = positive(args[i + 1], "ERR LIMIT can't be negative") || Infinity;
  }
  return { keys: args.slice(1, 1 + numberOfKeys), limit };
}

export const SETS: readonly CommandSpec[] = [
  {
    name: 'sadd',
    arity: -3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'set',
    since: '1.0.0',
    summary: 'Adds members to a set.',
    keys: ONE_KEY,
    run: sadd,
  },
  {
    name: 'srem',
    arity: -3,
    flags: ['write', 'fast'],
    category: 'set',
    since: '1.0.0',
    summary: 'Removes members from a set.',
    keys: ONE_KEY,
    run: srem,
  },
  {
    name: 'sismember',
    arity: 3,
    flags: ['readonly', 'fast'],
    category: 'set',
    since: '1.0.0',
    summary: 'Tells whether a set has a member.',
    keys: ONE_KEY,
    run: ([key, member], { keyspace }) => (keyspace.read(key, 'set')?.has(member) ? 1 : 0),
  },
  {
    name: 'smismember',
    arity: -3,
    flags: ['readonly', 'fast'],
    category: 'set',
    since: '6.2.0',
    summary: 'Tells which of several members a set has.',
    keys: ONE_KEY,
    run: ([key, ...members], { keyspace }) => {
      const set = keyspace.read(key, 'set');
      return members.map((member) => (set?.has(member) ? 1 : 0));
    },
  },
  {
    name: 'smembers',
    arity: 2,
    flags: ['readonly'],
    category: 'set',
    since: '1.0.0',
    summary: 'Returns all members of a set.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => new SetReply(keyspace.read(key, 'set')?.keys().slice() ?? []),
  },
  {
    name: 'scard',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'set',
    since: '1.0.0',
    summary: 'Returns the number of members of a set.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'set')?.size ?? 0,
  },
  {
    name: 'spop',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'set',
    since: '1.0.0',
    summary: 'Removes and returns random members of a set.',
    keys: ONE_KEY,
    run: spop,
  },
  {
    name: 'srandmember',
    arity: -2,
    flags: ['readonly'],
    category: 'set',
    since: '1.0.0',
    summary: 'Returns random members of a set.',
    differs: 'A negative count is at least -1,048,576.',
    keys: ONE_KEY,
    run: srandmember,
  },
  {
    name: 'smove',
    arity: 4,
    flags: ['write', 'fast'],
    category: 'set',
    since: '1.0.0',
    summary: 'Moves a member from one set to another.',
    keys: TWO_KEYS,
    run: smove,
  },
  {
    name: 'sinter',
    arity: -2,
    flags: ['readonly'],
    category: 'set',
    since: '1.0.0',
    summary: 'Returns the members that all of the sets have.',
    keys: ALL_KEYS,
    spread: INTERSECTION_PER_KEY,
    run: combining(intersection),
  },
  {
    name: 'sunion',
    arity: -2,
    flags: ['readonly'],
    category: 'set',
    since: '1.0.0',
    summary: 'Returns the members that any of the sets has.',
    keys: ALL_KEYS,
    spread: UNION_PER_KEY,
    run: combining(union),
  },
  {
    name: 'sdiff',
    arity: -2,
    flags: ['readonly'],
    category: 'set',
    since: '1.0.0',
    summary: 'Returns the members of the first set that no other one has.',
    keys: ALL_KEYS,
    spread: DIFFERENCE_PER_KEY,
    run: combining(difference),
  },
  {
    name: 'sinterstore',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'set',
    since: '1.0.0',
    summary: 'Stores the members that all of the sets have.',
    keys: ALL_KEYS,
    run: storing(intersection),
  },
  {
    name: 'sunionstore',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'set',
    since: '1.0.0',
    summary: 'Stores the members that any of the sets has.',
    keys: ALL_KEYS,
    run: storing(union),
  },
  {
    name: 'sdiffstore',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'set',
    since: '1.0.0',
    summary: 'Stores the members of the first set that no other one has.',
    keys: ALL_KEYS,
    run: storing(difference),
  },
  {
    name: 'sintercard',
    arity: -3,
    flags: ['readonly', 'movablekeys'],
    category: 'set',
    since: '7.0.0',
    summary: 'Returns how many members all of the sets have.',
    findKeys: countedKeys(0),
    run: sintercard,
  },
  {
    name: 'sscan',
    arity: -3,
    flags: ['readonly'],
    category: 'set',
    since: '2.8.0',
    summary: 'Visits the members of a set, some at a time.',
    keys: ONE_KEY,
    run: (args, { keyspace }) =>
      scanned(
        args,
        () => keyspace.read(args[0], 'set'),
        (out, member) => out.push(member),
      ),
  },
];
