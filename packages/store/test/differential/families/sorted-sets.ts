import * as fc from 'fast-check';
import { sameShape, scanned, unorderedPairs } from '../comparisons.js';
import {
  type Drawn,
  type Family,
  float,
  integer,
  joined,
  keyOf,
  maybe,
  member,
  of,
  several,
  smallInteger,
  value,
  word,
} from './family.js';
import { counted, popCount, timeout } from './lists.js';
import { picks, scanArguments } from './sets.js';

const key = keyOf('zset');
const setOrSortedSet = fc.oneof(
  { weight: 6, arbitrary: key },
  { weight: 1, arbitrary: keyOf('set') },
);
/** Members of these have the same score, as ranges by bytes ask for. Other commands do not touch them. */
const lexKey = fc.constantFrom('lex1', 'lex2');
const score = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -5, max: 15 }).map(String) },
  { weight: 1, arbitrary: float },
);
const scoreBound = fc
  .tuple(fc.constantFrom('', '', '', '('), score)
  .map(([excluded, score]) => excluded + score);
const lexBound = fc.oneof(
  fc.constantFrom('-', '+'),
  fc
    .tuple(fc.constantFrom('(', '['), fc.oneof(member, value))
    .map(([sign, member]) => sign + member),
  fc.constantFrom('', 'a', '+x', '-x'),
);

const withScores = maybe(word('WITHSCORES'));
const reversed = maybe(word('REV'));
const limit = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 2, arbitrary: of(word('LIMIT'), smallInteger, smallInteger) },
  { weight: 1, arbitrary: of(word('LIMIT'), integer, integer) },
);
const which = word('MIN', 'MAX');

const pairs = several(of(score, member), 1, 6);
const zeroPairs = several(
  member.map((member) => ['0', member]),
  1,
  6,
);
const conditions = several(word('NX', 'XX', 'GT', 'LT', 'CH', 'INCR'), 0, 3);

/** Where bounds and options follow. */
function ranges(name: string, ...keys: fc.Arbitrary<string>[]): fc.Arbitrary<readonly string[]> {
  const scores = name === 'ZRANGE' ? withScores : fc.constant([]);
  return fc.oneof(
    joined(name, ...keys, integer, integer, reversed, scores),
    joined(name, ...keys, scoreBound, scoreBound, word('BYSCORE'), reversed, limit, scores),
    joined(
      name,
      ...keys,
      integer,
      integer,
      several(word('BYLEX', 'BYSCORE', 'REV', 'WITHSCORES', 'LIMIT', 'X'), 1, 3),
    ),
  );
}

function lexRanges(name: string, end: Drawn): Drawn {
  return joined(name, lexKey, lexBound, lexBound, end);
}

/** WEIGHTS has as many numbers as there are keys. */
function combined(name: string, hasWeights: boolean, end: Drawn): Drawn {
  return counted(setOrSortedSet).chain((keys) => {
    const weight = fc.oneof(
      { weight: 5, arbitrary: smallInteger },
      { weight: 1, arbitrary: float },
    );
    const count = keys.length - 1;
    const weights = joined(word('WEIGHTS'), several(weight, count, count));
    const aggregate = of(word('AGGREGATE'), word('SUM', 'MIN', 'MAX', 'X'));
    const options = hasWeights
      ? [fc.oneof(fc.constant([]), weights), fc.oneof(fc.constant([]), aggregate)]
      : [];
    return joined(name, fc.constant(keys), ...options, end);
  });
}

function stored(name: string, hasWeights: boolean): Drawn {
  return fc
    .tuple(key, combined(name, hasWeights, fc.constant([])))
    .map(([target, [name, ...rest]]) => [name, target, ...rest]);
}

export const sortedSets: Family = {
  commands: {
    zadd: fc.oneof(
      joined('ZADD', key, pairs),
      joined('ZADD', lexKey, zeroPairs),
      joined('ZADD', key, conditions, pairs),
      joined('ZADD', key, conditions, score, member),
    ),
    zincrby: of('ZINCRBY', key, score, member),
    zrem: joined('ZREM', key, several(member)),
    zscore: of('ZSCORE', key, member),
    zmscore: joined('ZMSCORE', key, several(member)),
    zcard: of('ZCARD', key),
    zrank: of('ZRANK', key, member),
    zrevrank: of('ZREVRANK', key, member),
    zrandmember: joined(
      'ZRANDMEMBER',
      key,
      fc.oneof(fc.constant([]), of(picks), of(picks, word('WITHSCORES', 'X'))),
    ),
    zscan: joined('ZSCAN', key, scanArguments),
    zrange: fc.oneof(
      ranges('ZRANGE', key),
      lexRanges('ZRANGE', joined(word('BYLEX'), reversed, limit)),
    ),
    zrangestore: ranges('ZRANGESTORE', key, key),
    zrevrange: joined('ZREVRANGE', key, integer, integer, withScores),
    zrangebyscore: joined('ZRANGEBYSCORE', key, scoreBound, scoreBound, withScores, limit),
    zrevrangebyscore: joined('ZREVRANGEBYSCORE', key, scoreBound, scoreBound, withScores, limit),
    zrangebylex: lexRanges('ZRANGEBYLEX', limit),
    zrevrangebylex: lexRanges('ZREVRANGEBYLEX', limit),
    zcount: of('ZCOUNT', key, scoreBound, scoreBound),
    zlexcount: of('ZLEXCOUNT', lexKey, lexBound, lexBound),
    zremrangebyrank: of('ZREMRANGEBYRANK', key, integer, integer),
    zremrangebyscore: of('ZREMRANGEBYSCORE', key, scoreBound, scoreBound),
    zremrangebylex: of('ZREMRANGEBYLEX', lexKey, lexBound, lexBound),
    zpopmin: joined('ZPOPMIN', key, maybe(integer)),
    zpopmax: joined('ZPOPMAX', key, maybe(integer)),
    bzpopmin: joined('BZPOPMIN', several(key), timeout),
    bzpopmax: joined('BZPOPMAX', several(key), timeout),
    zmpop: joined('ZMPOP', counted(key), which, popCount),
    bzmpop: joined('BZMPOP', timeout, counted(key), which, popCount),
    zunion: combined('ZUNION', true, withScores),
    zinter: combined('ZINTER', true, withScores),
    zdiff: combined('ZDIFF', false, withScores),
    zunionstore: stored('ZUNIONSTORE', true),
    zinterstore: stored('ZINTERSTORE', true),
    zdiffstore: stored('ZDIFFSTORE', false),
    zintercard: combined('ZINTERCARD', false, several(of(word('LIMIT'), integer), 0, 1)),
  },
  comparisons: {
    zrandmember: sameShape,
    zscan: scanned(unorderedPairs, 2),
  },
};
