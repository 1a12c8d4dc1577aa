import * as fc from 'fast-check';
import {
  anyKey,
  type Family,
  float,
  integer,
  joined,
  keyOf,
  maybe,
  of,
  several,
  value,
  word,
} from './family.js';

const key = keyOf('string');

/** Times that are long over, far away, or none. */
export const seconds = fc.constantFrom(
  '1000',
  '5000',
  '100000',
  '0',
  '-1',
  'x',
  '9223372036854775807',
);
export const milliseconds = fc.constantFrom(
  '1000000',
  '50000000',
  '0',
  '-1',
  'x',
  '9223372036854775807',
);
export const secondsAt = fc.constantFrom(
  '4000000000',
  '5000000000',
  '1',
  '0',
  '-5',
  '9223372036854775807',
);
export const millisecondsAt = fc.constantFrom('4000000000000', '5000000000000', '1', '0', '-5');

const time = fc.oneof(
  of(word('EX'), seconds),
  of(word('PX'), milliseconds),
  of(word('EXAT'), secondsAt),
  of(word('PXAT'), millisecondsAt),
);

export const strings: Family = {
  commands: {
    get: of('GET', key),
    set: fc.oneof(
      of('SET', key, value),
      joined(
        'SET',
        key,
        value,
        several(fc.oneof(word('NX', 'XX', 'GET', 'KEEPTTL', 'PERSIST'), time), 0, 3),
      ),
    ),
    setnx: of('SETNX', key, value),
    setex: of('SETEX', key, seconds, value),
    psetex: of('PSETEX', key, milliseconds, value),
    getset: of('GETSET', key, value),
    getdel: of('GETDEL', key),
    getex: joined('GETEX', key, several(fc.oneof(word('PERSIST', 'NX'), time), 0, 2)),
    mget: joined('MGET', several(anyKey)),
    mset: joined('MSET', several(of(key, value), 1, 3), maybe(key)),
    msetnx: joined('MSETNX', several(of(fc.oneof(key, anyKey), value), 1, 3), maybe(key)),
    incr: of('INCR', key),
    decr: of('DECR', key),
    incrby: of('INCRBY', key, integer),
    decrby: of('DECRBY', key, integer),
    incrbyfloat: of('INCRBYFLOAT', key, float),
    append: of('APPEND', key, value),
    strlen: of('STRLEN', key),
    getrange: of('GETRANGE', key, integer, integer),
    substr: of('SUBSTR', key, integer, integer),
    setrange: of('SETRANGE', key, integer, value),
    lcs: joined(
      'LCS',
      key,
      key,
      several(fc.oneof(word('LEN', 'IDX', 'WITHMATCHLEN', 'X'), of('MINMATCHLEN', integer)), 0, 3),
    ),
  },
};
