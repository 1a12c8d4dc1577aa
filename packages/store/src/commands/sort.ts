/** SORT: the elements of a list, set or sorted set, in the order of their own values or of those of other keys. */

import type { Keyspace } from '../engine/keyspace.js';
import { List } from '../engine/values.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { integer, option, parseFloat64, syntaxError } from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import type { CommandSpec, Execution } from './spec.js';

interface SortOptions {
  readonly isDescending: boolean;
  readonly isAlpha: boolean;
  readonly by: Bytes | undefined;
  /** The patterns of GET, whose values the reply has for each element; if there are none, the reply has the element. */
  readonly get: readonly Bytes[];
  readonly skipped: number;
  /** Negative: all. */
  readonly count: number;
  readonly store: Bytes | undefined;
}

/** How many arguments an option has. */
const OPERANDS: Readonly<Record<string, number>> = { limit: 2, store: 1, by: 1, get: 1 };

function sortOptions(args: readonly Bytes[], readOnly: boolean): SortOptions {
  let isDescending = false;
  let isAlpha = false;
  let by: Bytes | undefined;
  let store: Bytes | undefined;
  const get: Bytes[] = [];
  let skipped = 0;
  let count = -1;
  for (let i = 1; i < args.length; i++) {
    const name = option(args[i]);
    const operands = OPERANDS[name] ?? 0;
    if (i + operands >= args.length) throw syntaxError();
    if (name === 'asc') isDescending = false;
    else if (name === 'desc') isDescending = true;
    else if (name === 'alpha') isAlpha = true;
    else if (name === 'limit') {
      skipped = integer(args[i + 1]);
      count = integer(args[i + 2]);
    } else if (name === 'store' && !readOnly) store = args[i + 1];
    else if (name === 'by') by = args[i + 1];
    else if (name === 'get') get.push(args[i + 1]);
    else throw syntaxError();
    i += operands;
  }
  return { isDescending, isAlpha, by, get, skipped, count, store };
}

/** The key that is sorted, and the one where the result is stored. */
function keysOfSort(args: readonly Bytes[]): readonly number[] {
  let store = -1;
  for (let i = 1; i < args.length; i++) {
    const name = option(args[i]);
    if (name === 'store' && i + 1 < args.length) store = i + 1;
    i += OPERANDS[name] ?? 0;
  }
  return store < 0 ? [0] : [0, store];
}

/** The patterns of BY and GET that name other keys. */
function patternsOfSort(args: readonly Bytes[]): readonly Bytes[] {
  const patterns: Bytes[] = [];
  for (let i = 1; i < args.length; i++) {
    const name = option(args[i]);
    if ((name === 'by' || name === 'get') && args[i + 1]?.includes('*')) patterns.push(args[i + 1]);
    i += OPERANDS[name] ?? 0;
  }
  return patterns;
}

function elementsOf(keyspace: Keyspace, key: Bytes): Bytes[] {
  const value = keyspace.find(key)?.value;
  if (value === undefined) return [];
  if (value instanceof List) return value.slice(0, value.length);
  const set =
    typeof value === 'object' && 'type' in value && value.type === 'set' ? value : undefined;
  if (set !== undefined) return [...set.keys()];
  const members: Bytes[] = [];
  const sorted = keyspace.read(key, 'zset')!;
  sorted.visit(0, sorted.size, (member) => members.push(member));
  return members;
}

/** What a pattern names for an element: the first `*` stands for it, and a field of a hash can follow `->`. */
function lookUp({ keyspace, reach }: Execution, pattern: Bytes, element: Bytes): Bytes | undefined {
  if (pattern === '#') return element;
  const star = pattern.indexOf('*');
  if (star < 0) return undefined;
  const arrow = pattern.indexOf('->', star + 1);
  const end = arrow < 0 || arrow + 2 === pattern.length ? pattern.length : arrow;
  const key = pattern.slice(0, star) + element + pattern.slice(star + 1, end);
  if (reach.discovers) reach.has(key);
  const value = keyspace.find(key)?.value;
  if (end === pattern.length) {
    return typeof value === 'string' || Buffer.isBuffer(value)
      ? keyspace.readString(key)
      : undefined;
  }
  if (typeof value !== 'object' || !('type' in value) || value.type !== 'hash') return undefined;
  return value.get(pattern.slice(end + 2));
}

/** A missing weight counts as 0. */
function numericWeight(text: Bytes | undefined): number {
  const trimmed = text?.replace(/^[ \t\n\v\f\r]+/, '') ?? '';
  const weight = trimmed === '' ? 0 : parseFloat64(trimmed);
  if (weight === undefined) {
    throw new ErrorReply("ERR One or more scores can't be converted into double");
  }
  return weight;
}

const compareBytes = (a: Bytes, b: Bytes): number => (a < b ? -1 : a > b ? 1 : 0);

/** A missing value comes before all others. */
function compareWords(a: Bytes | undefined, b: Bytes | undefined): number {
  if (a === undefined || b === undefined)
    return (a === undefined ? 0 : 1) - (b === undefined ? 0 : 1);
  return compareBytes(a, b);
}

function sorted(execution: Execution, elements: Bytes[], options: SortOptions): Bytes[] {
  const { by, isAlpha, isDescending } = options;
  const weightOf = (element: Bytes) =>
    by === undefined ? element : lookUp(execution, by, element);
  const direction = isDescending ? -1 : 1;
  if (isAlpha) {
    return elements
      .map((element) => ({ element, weight: weightOf(element) }))
      .sort((a, b) => direction * compareWords(a.weight, b.weight))
      .map(({ element }) => element);
  }
  return elements
    .map((element) => ({ element, weight: numericWeight(weightOf(element)) }))
    .sort(
      (a, b) =>
        direction * (compareNumbers(a.weight, b.weight) || compareBytes(a.element, b.element)),
    )
    .map(({ element }) => element);
}

/** Not by subtraction: the difference of two infinite numbers is NaN. */
const compareNumbers = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

function sort(args: readonly Bytes[], execution: Execution, readOnly: boolean): Reply {
  const { keyspace } = execution;
  const options = sortOptions(args, readOnly);
  const elements = elementsOf(keyspace, args[0]);
  const ordered = inOrder(execution, args[0], elements, options);
  const from = Math.max(0, options.skipped);
  const to = options.count < 0 ? ordered.length : from + options.count;
  const picked = ordered.slice(from, to);
  const results = picked.flatMap((element) =>
    options.get.length === 0
      ? [element]
      : options.get.map((pattern) => lookUp(execution, pattern, element) ?? null),
  );
  const { store } = options;
  if (store === undefined) return results;
  const list = new List();
  for (const result of results) list.pushRight(result ?? '');
  if (list.length > 0) keyspace.set(store, list);
  else keyspace.delete(store);
  return list.length;
}

function inOrder(
  execution: Execution,
  key: Bytes,
  elements: Bytes[],
  options: SortOptions,
): Bytes[] {
  const { by, isDescending } = options;
  if (by === undefined || by.includes('*')) return sorted(execution, elements, options);
  // A pattern without `*`: not to be sorted. A set has no order of its own. It is sorted nevertheless, as Redis does in scripts and
  // with STORE.
  const value = execution.keyspace.find(key)?.value;
  const type = typeof value === 'object' && 'type' in value ? value.type : undefined;
  if (type === 'set') {
    return sorted(execution, elements, { ...options, by: undefined, isAlpha: true });
  }
  return type === 'zset' && isDescending ? elements.reverse() : elements;
}

const UNSORTED_SETS =
  'With a pattern of BY that has no `*`, a set is sorted by bytes. Redis does that only in scripts and with STORE.';

export const SORT: readonly CommandSpec[] = [
  {
    name: 'sort',
    arity: -2,
    flags: ['write', 'denyoom', 'movablekeys'],
    category: 'generic',
    since: '1.0.0',
    summary: 'Sorts the elements of a list, set or sorted set, and stores them if asked.',
    differs: UNSORTED_SETS,
    keys: ONE_KEY,
    findKeys: keysOfSort,
    patterns: patternsOfSort,
    run: (args, execution) => sort(args, execution, false),
  },
  {
    name: 'sort_ro',
    arity: -2,
    flags: ['readonly', 'movablekeys'],
    category: 'generic',
    since: '7.0.0',
    summary: 'Sorts the elements of a list, set or sorted set.',
    differs: UNSORTED_SETS,
    keys: ONE_KEY,
    patterns: patternsOfSort,
    run: (args, execution) => sort(args, execution, true),
  },
];
