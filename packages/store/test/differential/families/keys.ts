import * as fc from 'fast-check';
import { type Comparison, exact, near, sameShape, scanned, unordered } from '../comparisons.js';
import { isError, itemsOf } from '../wire.js';
import {
  anyKey,
  type Family,
  integer,
  joined,
  keyOf,
  maybe,
  of,
  pattern,
  several,
  word,
} from './family.js';
import { milliseconds, millisecondsAt, seconds, secondsAt } from './strings.js';

/** Two keys of the same kind meet more often than with `anyKey` alone. */
const key = anyKey;
const condition = word('NX', 'XX');
/** Only for absolute times: the two servers do not run a command at the same moment. */
const anyCondition = several(word('NX', 'XX', 'GT', 'LT', 'X'), 0, 2);
const scanOption = fc.oneof(
  of(word('MATCH'), pattern),
  of(word('COUNT'), fc.constantFrom('1000', '5000')),
  of(word('TYPE'), word('string', 'hash', 'list', 'x')),
);
const badScanOption = fc.oneof(word('MATCH', 'X'), of('COUNT', fc.constantFrom('0', '-1', 'x')));

/** After INCRBYFLOAT, an integer is not kept as one in Redis. */
const sameEncoding: Comparison = (real, ours, command) =>
  exact(real, ours, command) || (real[1] === 'embstr' && ours[1] === 'int');

/** In Redis, a key that has expired still takes memory until somebody else asks for it. */
const measured: Comparison = (real, ours, command) =>
  sameShape(real, ours, command) || (real[0] === ':' && ours[1] === null);

const sortedKey = fc.oneof(keyOf('list'), keyOf('set'), keyOf('zset'), keyOf('hash'));
const sortPattern = fc.constantFrom(
  '*',
  's*',
  'h*->a',
  '#',
  'none',
  's*->',
  'h1->*',
  '*->a',
  'nosort',
);
const sortOption = fc.oneof(
  word('ASC', 'DESC', 'ALPHA', 'ALPHA', 'X'),
  of(word('BY'), sortPattern),
  of(word('GET'), sortPattern),
  joined(word('LIMIT'), integer, integer),
  of(word('STORE'), keyOf('list')),
);

/** Elements with the same weight, and those that need not be sorted, can be in any order: the first ones can be others. */
const sortedAlike: Comparison = (real, ours, command) => {
  const has = (option: string) => command.some((arg) => arg.toUpperCase() === option);
  if (!has('BY')) return exact(real, ours, command);
  if (!has('LIMIT') || isError(real) || isError(ours)) return unordered(real, ours, command);
  return itemsOf(real)?.length === itemsOf(ours)?.length;
};

/**
 * SORT of Redis does not clear `errno` before it reads a number: the empty string is one, unless an earlier command has left an error.
 * This one leaves none.
 */
const CLEARED = [['INCRBYFLOAT', 'errno', '1']];

/** The string 10, as Redis dumps it. */
const DUMPED = '\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb';

export const keys: Family = {
  commands: {
    del: joined('DEL', several(key)),
    unlink: joined('UNLINK', several(key)),
    exists: joined('EXISTS', several(key)),
    touch: joined('TOUCH', several(key)),
    type: of('TYPE', key),
    rename: of('RENAME', key, key),
    renamenx: of('RENAMENX', key, key),
    copy: joined(
      'COPY',
      key,
      key,
      several(fc.oneof(word('REPLACE', 'X'), of('DB', fc.constantFrom('0', '1', '-1', 'x'))), 0, 2),
    ),
    move: of('MOVE', key, fc.constantFrom('0', '1', '-1', 'x', '4294967296')),
    keys: of('KEYS', pattern),
    scan: joined(
      'SCAN',
      fc.constantFrom('0', '0', '0', 'x', '18446744073709551616', '+0', ' 0', ''),
      several(
        fc.oneof({ weight: 5, arbitrary: scanOption }, { weight: 1, arbitrary: badScanOption }),
        0,
        2,
      ),
      of('COUNT', '10000'),
    ),
    randomkey: of('RANDOMKEY'),
    // What real dumps hold is tested apart.
    dump: of('DUMP', key),
    restore: joined(
      'RESTORE',
      key,
      fc.constantFrom('0', '1000000', '-1', 'x'),
      fc.constantFrom(DUMPED, DUMPED, DUMPED, DUMPED.slice(1), '', 'x'),
      several(
        fc.oneof(
          word('REPLACE', 'ABSTTL', 'X'),
          of(word('IDLETIME'), integer),
          of(word('FREQ'), integer),
        ),
        0,
        3,
      ),
    ),
    'object|encoding': of('OBJECT', 'ENCODING', key),
    'object|refcount': of('OBJECT', word('REFCOUNT'), key),
    'object|idletime': of('OBJECT', word('IDLETIME'), key),
    'object|freq': of('OBJECT', 'FREQ', key),
    'object|help': of('OBJECT', 'HELP'),
    'memory|usage': joined('MEMORY', 'USAGE', key, maybe('SAMPLES', integer)),
    sort: joined('SORT', sortedKey, several(sortOption, 0, 4)),
    sort_ro: joined('SORT_RO', sortedKey, several(sortOption, 0, 4)),
    dbsize: of('DBSIZE'),
    flushdb: joined('FLUSHDB', several(word('SYNC', 'ASYNC', 'X'), 0, 1)),
    flushall: joined('FLUSHALL', several(word('SYNC', 'ASYNC', 'X'), 0, 1)),
    expire: joined('EXPIRE', key, seconds, several(condition, 0, 2)),
    pexpire: joined('PEXPIRE', key, milliseconds, several(condition, 0, 2)),
    expireat: joined('EXPIREAT', key, fc.oneof(secondsAt, integer), anyCondition),
    pexpireat: joined('PEXPIREAT', key, fc.oneof(millisecondsAt, integer), anyCondition),
    persist: of('PERSIST', key),
    ttl: of('TTL', key),
    pttl: of('PTTL', key),
    expiretime: of('EXPIRETIME', key),
    pexpiretime: of('PEXPIRETIME', key),
  },
  before: { sort: CLEARED, sort_ro: CLEARED },
  after: {
    // The order of elements with the same weight is not defined.
    sort: ([, ...args]) =>
      args.some((arg) => arg.toUpperCase() === 'BY') ? [['DEL', ...args]] : [],
  },
  comparisons: {
    keys: unordered,
    scan: scanned(unordered, 1),
    dump: sameShape,
    randomkey: sameShape,
    // RANDOMKEY deletes a key that has expired, if it is the one that it picks.
    dbsize: sameShape,
    'object|encoding': sameEncoding,
    'object|refcount': sameShape,
    'object|idletime': sameShape,
    'object|help': () => true,
    'memory|usage': measured,
    sort: sortedAlike,
    sort_ro: sortedAlike,
    ttl: near,
    pttl: near,
    expiretime: near,
    pexpiretime: near,
  },
};
