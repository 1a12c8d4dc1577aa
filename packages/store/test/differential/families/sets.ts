import * as fc from 'fast-check';
import { sameShape, scanned, unordered } from '../comparisons.js';
import {
  type Family,
  integer,
  joined,
  keyOf,
  maybe,
  member,
  of,
  pattern,
  several,
  smallInteger,
  word,
} from './family.js';
import { counted } from './lists.js';

const key = keyOf('set');
/** Not a very large number below zero: Redis would pick as often. */
export const picks = fc.oneof(
  smallInteger,
  fc.constantFrom('x', '', '-9223372036854775808', '9223372036854775807'),
);

/** `cursor [MATCH pattern] [COUNT count]`. The count lets all members be visited at once. */
export const scanArguments = joined(
  fc.constantFrom('0', '0', '0', 'x'),
  several(
    fc.oneof(of(word('MATCH'), pattern), of('COUNT', fc.constantFrom('0', 'x')), of('X')),
    0,
    1,
  ),
  of('COUNT', '10000'),
);

export const sets: Family = {
  commands: {
    sadd: joined('SADD', key, several(member, 1, 6)),
    srem: joined('SREM', key, several(member)),
    sismember: of('SISMEMBER', key, member),
    smismember: joined('SMISMEMBER', key, several(member)),
    smembers: of('SMEMBERS', key),
    scard: of('SCARD', key),
    spop: joined('SPOP', key, maybe(integer)),
    srandmember: joined('SRANDMEMBER', key, maybe(picks)),
    smove: of('SMOVE', key, key, member),
    sinter: joined('SINTER', several(key)),
    sunion: joined('SUNION', several(key)),
    sdiff: joined('SDIFF', several(key)),
    sinterstore: joined('SINTERSTORE', key, several(key)),
    sunionstore: joined('SUNIONSTORE', key, several(key)),
    sdiffstore: joined('SDIFFSTORE', key, several(key)),
    sintercard: joined(
      'SINTERCARD',
      counted(key),
      several(fc.oneof(of(word('LIMIT'), integer), of('X')), 0, 2),
    ),
    sscan: joined('SSCAN', key, scanArguments),
  },
  comparisons: {
    smembers: unordered,
    spop: sameShape,
    srandmember: sameShape,
    sinter: unordered,
    sunion: unordered,
    sdiff: unordered,
    sscan: scanned(unordered, 2),
  },
  after: {
    spop: ([, key]) => (key === undefined ? [] : [['DEL', key]]),
  },
};
