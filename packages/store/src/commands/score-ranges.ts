/** Ranges of sorted sets, by rank, score or bytes: each of them is a range of ranks once the sorted set is known. */

import type { SortedSet } from '../engine/sorted-set.js';
import { type Bytes, ErrorReply } from '../resp/reply.js';
import { integer, parseFloat64 } from './arguments.js';
import { type Span, span } from './collections.js';

/** Finds the members of a sorted set that are in the range. */
export type Range = (set: SortedSet) => Span;

export type RangeKind = 'rank' | 'score' | 'lex';

/** @param reversed  for ranks: whether they count from the greatest score */
export function parseRange(kind: RangeKind, min: Bytes, max: Bytes, reversed = false): Range {
  if (kind === 'score') return scoreRange(min, max);
  if (kind === 'lex') return lexRange(min, max);
  return rankRange(min, max, reversed);
}

function rankRange(first: Bytes, last: Bytes, reversed: boolean): Range {
  const firstRank = integer(first);
  const lastRank = integer(last);
  return ({ size }) => {
    const { from, to } = span(firstRank, lastRank, size);
    return reversed ? { from: size - to, to: size - from } : { from, to };
  };
}

interface Bound<T> {
  readonly value: T;
  readonly excluded: boolean;
}

function scoreRange(minText: Bytes, maxText: Bytes): Range {
  const min = scoreBound(minText);
  const max = scoreBound(maxText);
  return (set) => ({
    from: set.countBelow(min.value, min.excluded),
    to: set.countBelow(max.value, !max.excluded),
  });
}

function scoreBound(text: Bytes): Bound<number> {
  const excluded = text[0] === '(';
  const value = boundValue(excluded ? text.slice(1) : text);
  if (value === undefined) throw new ErrorReply('ERR min or max is not a float');
  return { value, excluded };
}

/** More is a bound than a score: nothing at all is zero, and too large a number is infinite. */
function boundValue(text: Bytes): number | undefined {
  if (text === '') return 0;
  const number = text.replace(/^[ \t-\r]+/, '');
  return (
    parseFloat64(number) ??
    (/^[+-]?[0-9.]+(?:e[+-]?[0-9]+)?$/i.test(number) ? Number(number) : undefined)
  );
}

function lexRange(minText: Bytes, maxText: Bytes): Range {
  const min = lexBound(minText);
  const max = lexBound(maxText);
  return (set) => ({ from: lexRank(set, min, false), to: lexRank(set, max, true) });
}

/** The infinite ones come before and after all members. */
function lexBound(text: Bytes): Bound<Bytes> | '-' | '+' {
  if (text === '-' || text === '+') return text;
  if (text[0] !== '(' && text[0] !== '[') {
    throw new ErrorReply('ERR min or max not valid string range item');
  }
  return { value: text.slice(1), excluded: text[0] === '(' };
}

function lexRank(set: SortedSet, bound: Bound<Bytes> | '-' | '+', isMax: boolean): number {
  if (bound === '-') return 0;
  if (bound === '+') return set.size;
  return set.countBeforeMember(bound.value, bound.excluded !== isMax);
}
