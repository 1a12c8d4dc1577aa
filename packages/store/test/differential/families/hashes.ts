import * as fc from 'fast-check';
import { sameShape, scanned, unordered, unorderedPairs } from '../comparisons.js';
import {
  type Family,
  float,
  integer,
  joined,
  keyOf,
  maybe,
  member,
  of,
  pattern,
  several,
  smallInteger,
  value,
  word,
} from './family.js';

const key = keyOf('hash');
/** Not a very large number below zero: Redis would pick as often. */
const picks = fc.oneof(
  smallInteger,
  fc.constantFrom('x', '', '-9223372036854775808', '9223372036854775807'),
);
const pair = of(member, value);

export const hashes: Family = {
  commands: {
    hset: joined('HSET', key, several(pair), maybe(member)),
    hmset: joined('HMSET', key, several(pair), maybe(member)),
    hsetnx: of('HSETNX', key, member, value),
    hget: of('HGET', key, member),
    hmget: joined('HMGET', key, several(member)),
    hgetall: of('HGETALL', key),
    hkeys: of('HKEYS', key),
    hvals: of('HVALS', key),
    hlen: of('HLEN', key),
    hexists: of('HEXISTS', key, member),
    hstrlen: of('HSTRLEN', key, member),
    hdel: joined('HDEL', key, several(member)),
    hincrby: of('HINCRBY', key, member, integer),
    hincrbyfloat: of('HINCRBYFLOAT', key, member, float),
    hrandfield: joined(
      'HRANDFIELD',
      key,
      fc.oneof(fc.constant([]), of(picks), of(picks, word('WITHVALUES', 'X'))),
    ),
    hscan: joined(
      'HSCAN',
      key,
      fc.constantFrom('0', '0', '0', 'x'),
      several(
        fc.oneof(
          of(word('MATCH'), pattern),
          of(word('COUNT'), fc.constantFrom('1', '100', '0', 'x')),
          word('X', 'TYPE'),
        ),
        0,
        2,
      ),
    ),
  },
  comparisons: {
    hgetall: unorderedPairs,
    hkeys: unordered,
    hvals: unordered,
    hrandfield: sameShape,
    hscan: scanned(unorderedPairs, 2),
  },
};
