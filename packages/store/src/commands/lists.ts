/** Lists. */

import { List } from '../engine/values.js';
import { type Bytes, ErrorReply, NullArray, OK, type Reply } from '../resp/reply.js';
import { integer, NO_SUCH_KEY, option, syntaxError, wrongArity } from './arguments.js';
import { ONE_KEY, positive, shrunk, span } from './collections.js';
import type { CommandSpec, Execution, Run } from './spec.js';

export type End = 'left' | 'right';

export function push(elements: List, end: End, element: Bytes): void {
  if (end === 'left') elements.pushLeft(element);
  else elements.pushRight(element);
}

export function pop(elements: List, end: End): Bytes | undefined {
  return end === 'left' ? elements.popLeft() : elements.popRight();
}

/** @param count  how many at most */
export function popSeveral(elements: List, end: End, count: number): Bytes[] {
  const length = Math.min(count, elements.length);
  return Array.from({ length }, () => pop(elements, end)!);
}

export function end(arg: Bytes): End {
  const name = option(arg);
  if (name !== 'left' && name !== 'right') throw syntaxError();
  return name;
}

function pushing(end: End): Run {
  return (args, { keyspace }) => {
    const key = args[0];
    const list = keyspace.forWrite(key, 'list');
    const elements = list ?? new List();
    for (let i = 1; i < args.length; i++) push(elements, end, args[i]);
    if (list === undefined) keyspace.set(key, elements);
    else keyspace.changed(key);
    return elements.length;
  };
}

/** Only if the key has a list. */
function pushingIfThere(end: End): Run {
  const push = pushing(end);
  return (args, execution) =>
    execution.keyspace.read(args[0], 'list') === undefined ? 0 : push(args, execution);
}

function popping(name: string, end: End): Run {
  return (args, { keyspace }) => {
    if (args.length > 2) throw wrongArity(name);
    const [key] = args;
    const count = args.length === 2 ? positive(args[1]) : undefined;
    const elements = keyspace.forWrite(key, 'list');
    if (elements === undefined) return count === undefined ? null : NullArray.instance;
    if (count === 0) return [];
    const popped = count === undefined ? pop(elements, end)! : popSeveral(elements, end, count);
    shrunk(keyspace, key, elements.length);
    return popped;
  };
}

/** @returns -1 if it is out of range */
function indexOf(arg: Bytes, length: number): number {
  const index = integer(arg);
  const fromLeft = index < 0 ? index + length : index;
  return fromLeft < length ? Math.max(-1, fromLeft) : -1;
}

function lset([key, index, element]: readonly Bytes[], { keyspace }: Execution): Reply {
  const elements = keyspace.forWrite(key, 'list');
  if (elements === undefined) throw new ErrorReply(NO_SUCH_KEY);
  const at = indexOf(index, elements.length);
  if (at < 0) throw new ErrorReply('ERR index out of range');
  elements.set(at, element);
  keyspace.changed(key);
  return OK;
}

function ltrim([key, first, last]: readonly Bytes[], { keyspace }: Execution): Reply {
  const firstIndex = integer(first);
  const lastIndex = integer(last);
  const elements = keyspace.forWrite(key, 'list');
  if (elements === undefined) return OK;
  const { from, to } = span(firstIndex, lastIndex, elements.length);
  elements.trim(from, to);
  shrunk(keyspace, key, elements.length);
  return OK;
}

function linsert([key, where, pivot, element]: readonly Bytes[], { keyspace }: Execution): Reply {
  const side = option(where);
  if (side !== 'before' && side !== 'after') throw syntaxError();
  const elements = keyspace.forWrite(key, 'list');
  if (elements === undefined) return 0;
  for (let i = 0; i < elements.length; i++) {
    if (elements.at(i) !== pivot) continue;
    elements.insert(side === 'before' ? i : i + 1, element);
    keyspace.changed(key);
    return elements.length;
  }
  return -1;
}

function lrem([key, count, element]: readonly Bytes[], { keyspace }: Execution): Reply {
  const limit = integer(count);
  const elements = keyspace.forWrite(key, 'list');
  if (elements === undefined) return 0;
  const removed = elements.remove(element, Math.abs(limit) || Infinity, limit < 0);
  if (removed > 0) shrunk(keyspace, key, elements.length);
  return removed;
}

const RANK_ZERO =
  "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
  'or use negative to start from the end of the list';

function lpos(args: readonly Bytes[], { keyspace }: Execution): Reply {
  let rank = 1;
  let count: number | undefined;
  let compared = Infinity;
  for (let i = 2; i < args.length; i += 2) {
    const name = option(args[i]);
    if (i + 1 === args.length) throw syntaxError();
    if (name === 'rank') {
      rank = integer(args[i + 1]);
      if (rank === 0) throw new ErrorReply(RANK_ZERO);
    } else if (name === 'count') {
      count = positive(args[i + 1], "ERR COUNT can't be negative");
    } else if (name === 'maxlen') {
      compared = positive(args[i + 1], "ERR MAXLEN can't be negative") || Infinity;
    } else throw syntaxError();
  }
  const elements = keyspace.read(args[0], 'list');
  if (elements === undefined) return count === undefined ? null : [];
  const limit = count === undefined ? 1 : count || Infinity;
  const found: number[] = [];
  let skipped = Math.abs(rank) - 1;
  for (let i = 0; i < Math.min(elements.length, compared) && found.length < limit; i++) {
    const index = rank > 0 ? i : elements.length - 1 - i;
    if (elements.at(index) === args[1] && skipped-- <= 0) found.push(index);
  }
  return count === undefined ? (found[0] ?? null) : found;
}

export const LISTS: readonly CommandSpec[] = [
  {
    name: 'lpush',
    arity: -3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'list',
    since: '1.0.0',
    summary: 'Adds elements at the left end of a list, one after the other.',
    keys: ONE_KEY,
    run: pushing('left'),
  },
  {
    name: 'rpush',
    arity: -3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'list',
    since: '1.0.0',
    summary: 'Adds elements at the right end of a list, one after the other.',
    keys: ONE_KEY,
    run: pushing('right'),
  },
  {
    name: 'lpushx',
    arity: -3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'list',
    since: '2.2.0',
    summary: 'Adds elements at the left end of a list that exists.',
    keys: ONE_KEY,
    run: pushingIfThere('left'),
  },
  {
    name: 'rpushx',
    arity: -3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'list',
    since: '2.2.0',
    summary: 'Adds elements at the right end of a list that exists.',
    keys: ONE_KEY,
    run: pushingIfThere('right'),
  },
  {
    name: 'lpop',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'list',
    since: '1.0.0',
    summary: 'Removes and returns elements from the left end of a list.',
    keys: ONE_KEY,
    run: popping('lpop', 'left'),
  },
  {
    name: 'rpop',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'list',
    since: '1.0.0',
    summary: 'Removes and returns elements from the right end of a list.',
    keys: ONE_KEY,
    run: popping('rpop', 'right'),
  },
  {
    name: 'llen',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'list',
    since: '1.0.0',
    summary: 'Returns the length of a list.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.read(key, 'list')?.length ?? 0,
  },
  {
    name: 'lindex',
    arity: 3,
    flags: ['readonly'],
    category: 'list',
    since: '1.0.0',
    summary: 'Returns the element of a list at an index.',
    keys: ONE_KEY,
    run: ([key, index], { keyspace }) => {
      const elements = keyspace.read(key, 'list');
      if (elements === undefined) return null;
      const at = indexOf(index, elements.length);
      return at < 0 ? null : elements.at(at);
    },
  },
  {
    name: 'lset',
    arity: 4,
    flags: ['write', 'denyoom'],
    category: 'list',
    since: '1.0.0',
    summary: 'Replaces the element of a list at an index.',
    keys: ONE_KEY,
    run: lset,
  },
  {
    name: 'lrange',
    arity: 4,
    flags: ['readonly'],
    category: 'list',
    since: '1.0.0',
    summary: 'Returns the elements of a list from one index to another.',
    keys: ONE_KEY,
    run: ([key, first, last], { keyspace }) => {
      const firstIndex = integer(first);
      const lastIndex = integer(last);
      const elements = keyspace.read(key, 'list');
      if (elements === undefined) return [];
      const { from, to } = span(firstIndex, lastIndex, elements.length);
      return elements.slice(from, to);
    },
  },
  {
    name: 'ltrim',
    arity: 4,
    flags: ['write'],
    category: 'list',
    since: '1.0.0',
    summary: 'Removes the elements of a list that are not between two indices.',
    keys: ONE_KEY,
    run: ltrim,
  },
  {
    name: 'linsert',
    arity: 5,
    flags: ['write', 'denyoom'],
    category: 'list',
    since: '2.2.0',
    summary: 'Inserts an element before or after another one of a list.',
    keys: ONE_KEY,
    run: linsert,
  },
  {
    name: 'lrem',
    arity: 4,
    flags: ['write'],
    category: 'list',
    since: '1.0.0',
    summary: 'Removes elements of a list that are equal to a value.',
    keys: ONE_KEY,
    run: lrem,
  },
  {
    name: 'lpos',
    arity: -3,
    flags: ['readonly'],
    category: 'list',
    since: '6.0.6',
    summary: 'Returns the indices of elements of a list that are equal to a value.',
    keys: ONE_KEY,
    run: lpos,
  },
];
