/** Lists: elements taken from the first list that has some, elements moved between lists, and the commands that wait for them. */

import { List } from '../engine/values.js';
import { type Bytes, NullArray, type Reply } from '../resp/reply.js';
import {
  countedKeys,
  KEYS_BEFORE_LAST,
  popArguments,
  readToTake,
  shrunk,
  TWO_KEYS,
  timeout,
} from './collections.js';
import { type End, end, pop, popSeveral, push } from './lists.js';
import type { CommandSpec, Execution, Run } from './spec.js';

/** @returns undefined if there is nothing to move */
function move(
  [from, to]: readonly Bytes[],
  fromEnd: End,
  toEnd: End,
  execution: Execution,
): Bytes | undefined {
  const { keyspace } = execution;
  if (readToTake(execution, from, 'list') === undefined) return undefined;
  const target = keyspace.forWrite(to, 'list');
  const source = keyspace.forWrite(from, 'list')!;
  const element = pop(source, fromEnd)!;
  if (target === undefined) {
    const list = new List();
    list.pushRight(element);
    keyspace.set(to, list);
  } else {
    push(target, toEnd, element);
    keyspace.changed(to);
  }
  if (from !== to) shrunk(keyspace, from, source.length);
  return element;
}

/** Takes elements from the first of these lists that is there. */
function takeFirst(
  keys: readonly Bytes[],
  execution: Execution,
  take: (key: Bytes, elements: List) => Reply,
): Reply | undefined {
  const { keyspace } = execution;
  for (const key of keys) {
    if (readToTake(execution, key, 'list') === undefined) continue;
    const elements = keyspace.forWrite(key, 'list')!;
    const reply = take(key, elements);
    shrunk(keyspace, key, elements.length);
    return reply;
  }
  return undefined;
}

function popMany(args: readonly Bytes[]) {
  const { keys, where, count } = popArguments(args, ['left', 'right']);
  const take = (key: Bytes, elements: List) => [key, popSeveral(elements, where as End, count)];
  return { keys, take };
}

function blockingPop(end: End): Run {
  return (args, execution) => {
    const keys = args.slice(0, -1);
    const timeoutMs = timeout(args[args.length - 1]);
    const popped = takeFirst(keys, execution, (key, elements) => [key, pop(elements, end)!]);
    return popped ?? execution.block(keys, timeoutMs, NullArray.instance);
  };
}

function blockingMove(
  args: readonly Bytes[],
  fromEnd: End,
  toEnd: End,
  execution: Execution,
): Reply {
  const timeoutMs = timeout(args[args.length - 1]);
  const moved = move(args, fromEnd, toEnd, execution);
  return moved ?? execution.block([args[0]], timeoutMs, NullArray.instance);
}

const NULL_IN_TRANSACTION =
  'In a transaction of RESP 2, it replies with a null array if there is nothing to move. Redis replies with a null bulk string.';

export const LIST_MOVES: readonly CommandSpec[] = [
  {
    name: 'lmove',
    arity: 5,
    flags: ['write', 'denyoom'],
    category: 'list',
    since: '6.2.0',
    summary: 'Moves an element from an end of a list to an end of another one, and returns it.',
    keys: TWO_KEYS,
    run: (args, execution) => move(args, end(args[2]), end(args[3]), execution) ?? null,
  },
  {
    name: 'rpoplpush',
    arity: 3,
    flags: ['write', 'denyoom'],
    category: 'list',
    since: '1.2.0',
    summary: 'Moves the last element of a list to the front of another one, and returns it.',
    keys: TWO_KEYS,
    run: (args, execution) => move(args, 'right', 'left', execution) ?? null,
  },
  {
    name: 'lmpop',
    arity: -4,
    flags: ['write', 'movablekeys'],
    category: 'list',
    since: '7.0.0',
    summary: 'Removes and returns elements of the first list that is not empty.',
    findKeys: countedKeys(0),
    run: (args, execution) => {
      const { keys, take } = popMany(args);
      return takeFirst(keys, execution, take) ?? NullArray.instance;
    },
  },
  {
    name: 'blpop',
    arity: -3,
    flags: ['write', 'noscript', 'blocking'],
    category: 'list',
    since: '2.0.0',
    summary: 'Removes and returns the first element of a list; waits until there is one.',
    keys: KEYS_BEFORE_LAST,
    run: blockingPop('left'),
  },
  {
    name: 'brpop',
    arity: -3,
    flags: ['write', 'noscript', 'blocking'],
    category: 'list',
    since: '2.0.0',
    summary: 'Removes and returns the last element of a list; waits until there is one.',
    keys: KEYS_BEFORE_LAST,
    run: blockingPop('right'),
  },
  {
    name: 'blmove',
    arity: 6,
    flags: ['write', 'denyoom', 'noscript', 'blocking'],
    category: 'list',
    since: '6.2.0',
    summary: 'Moves an element from one list to another; waits until there is one.',
    differs: NULL_IN_TRANSACTION,
    keys: TWO_KEYS,
    run: (args, execution) => blockingMove(args, end(args[2]), end(args[3]), execution),
  },
  {
    name: 'brpoplpush',
    arity: 4,
    flags: ['write', 'denyoom', 'noscript', 'blocking'],
    category: 'list',
    since: '2.2.0',
    summary: 'Moves the last element of a list to the front of another; waits until there is one.',
    differs: NULL_IN_TRANSACTION,
    keys: TWO_KEYS,
    run: (args, execution) => blockingMove(args, 'right', 'left', execution),
  },
  {
    name: 'blmpop',
    arity: -5,
    flags: ['write', 'blocking', 'movablekeys'],
    category: 'list',
    since: '7.0.0',
    summary: 'Removes and returns elements of the first list that is not empty; waits for one.',
    findKeys: countedKeys(1),
    run: (args, execution) => {
      const { keys, take } = popMany(args.slice(1));
      const timeoutMs = timeout(args[0]);
      const taken = takeFirst(keys, execution, take);
      return taken ?? execution.block(keys, timeoutMs, NullArray.instance);
    },
  },
];
