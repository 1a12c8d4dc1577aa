import * as fc from 'fast-check';
import {
  type Family,
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

const key = keyOf('list');
const element = fc.oneof({ weight: 4, arbitrary: member }, { weight: 1, arbitrary: value });
const end = fc.oneof(
  { weight: 9, arbitrary: word('LEFT', 'RIGHT') },
  { weight: 1, arbitrary: fc.constant('UP') },
);

/** Commands that wait are drawn with times after which a real server goes on at once, and with times that are none. */
export const timeout = fc.constantFrom('0.001', '0.001', '0.001', '0.001', '-1', 'x', '', 'inf');

/** `numkeys key [key …]` */
export function counted(key: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> {
  return fc.oneof(
    {
      weight: 9,
      arbitrary: fc
        .array(key, { minLength: 1, maxLength: 3 })
        .map((keys) => [String(keys.length), ...keys]),
    },
    { weight: 1, arbitrary: joined(integer, several(key, 0, 3)) },
  );
}

export const popCount = several(of(word('COUNT'), integer), 0, 1);

const lposOption = fc.oneof(
  of(word('RANK'), smallInteger),
  of(word('COUNT', 'MAXLEN'), integer),
  of('RANK', fc.constantFrom('0', 'x')),
  of('X'),
);

export const lists: Family = {
  commands: {
    lpush: joined('LPUSH', key, several(element)),
    rpush: joined('RPUSH', key, several(element, 1, 8)),
    lpushx: joined('LPUSHX', key, several(element)),
    rpushx: joined('RPUSHX', key, several(element)),
    lpop: joined('LPOP', key, maybe(integer)),
    rpop: joined('RPOP', key, maybe(integer)),
    llen: of('LLEN', key),
    lindex: of('LINDEX', key, integer),
    lset: of('LSET', key, integer, element),
    lrange: of('LRANGE', key, integer, integer),
    ltrim: of('LTRIM', key, integer, integer),
    linsert: of('LINSERT', key, word('BEFORE', 'AFTER', 'X'), element, element),
    lrem: of('LREM', key, integer, element),
    lpos: joined('LPOS', key, element, several(lposOption, 0, 3)),
    lmove: of('LMOVE', key, key, end, end),
    rpoplpush: of('RPOPLPUSH', key, key),
    lmpop: joined('LMPOP', counted(key), end, popCount),
    blpop: joined('BLPOP', several(key), timeout),
    brpop: joined('BRPOP', several(key), timeout),
    blmove: of('BLMOVE', key, key, end, end, timeout),
    brpoplpush: of('BRPOPLPUSH', key, key, timeout),
    blmpop: joined('BLMPOP', timeout, counted(key), end, popCount),
  },
};
