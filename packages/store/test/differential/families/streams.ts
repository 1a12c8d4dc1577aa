import * as fc from 'fast-check';
import { type Comparison, exact } from '../comparisons.js';
import type { Wire } from '../wire.js';
import {
  type Family,
  integer,
  joined,
  keyOf,
  maybe,
  of,
  several,
  smallInteger,
  value,
  word,
} from './family.js';

const key = keyOf('stream');
const group = fc.constantFrom('g1', 'g1', 'g2');
const consumer = fc.constantFrom('alice', 'bob');

/** Few ids, so that they meet. Not `*`: the two servers would choose others. */
const id = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 30 }).map(String) },
  { weight: 3, arbitrary: fc.tuple(fc.nat(30), fc.nat(3)).map(([ms, n]) => `${ms}-${n}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '0-0',
      '0',
      'x',
      '',
      '-',
      '1-2-3',
      '5-x',
      '18446744073709551615',
      '18446744073709551615-18446744073709551615',
      '18446744073709551616',
    ),
  },
);
const newId = fc.oneof(
  { weight: 6, arbitrary: id },
  { weight: 2, arbitrary: fc.nat(30).map((ms) => `${ms}-*`) },
);
const bound = fc.oneof(
  fc.constantFrom('-', '+'),
  id,
  id.map((id) => `(${id}`),
);
const count = several(of(word('COUNT'), integer), 0, 1);
/** Not with `~`, which trims by the nodes that Redis has. */
const trim = joined(
  fc.oneof(joined(word('MAXLEN'), maybe('='), integer), joined(word('MINID'), maybe('='), id)),
  several(of('LIMIT', integer), 0, 1),
);
const fields = several(of(fc.constantFrom('f', 'g'), value), 1, 3);
const readOption = fc.oneof(
  of(word('COUNT'), integer),
  of(word('BLOCK'), fc.constantFrom('1', '1', '-1', 'x')),
);

/** As many ids as keys, mostly. */
function streams(id: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> {
  const pairs = fc.array(fc.tuple(key, id), { minLength: 1, maxLength: 3 });
  return fc
    .tuple(word('STREAMS'), pairs, maybe('x'))
    .map(([word, pairs, more]) => [
      word,
      ...pairs.map(([key]) => key),
      ...pairs.map(([, id]) => id),
      ...(more.length > 0 && pairs.length > 2 ? more : []),
    ]);
}

const claimOption = fc.oneof(
  word('FORCE', 'JUSTID', 'X').map((word) => [word]),
  of(word('IDLE', 'TIME', 'RETRYCOUNT'), fc.constantFrom('0', '5', '1000', 'x')),
  of(word('LASTID'), id),
);
/** Not beyond 2^53, where ours are rounded. */
const entriesCount = fc.oneof(smallInteger, fc.constantFrom('x', '', '9007199254740991'));
const entriesRead = several(of(word('ENTRIESREAD'), entriesCount), 0, 1);
/** Times are either long ago or far away. */
const minIdle = fc.constantFrom('0', '0', '0', '100000000', '-1', 'x');

/** Times of the two servers, and the nodes of radix trees, are not compared. */
const withoutTimes: Comparison = (real, ours, command) =>
  exact(masked(real), masked(ours), command);

const UNCOMPARED = new Set(['idle', 'radix-tree-keys', 'radix-tree-nodes', 'seen-time']);

function masked(wire: Wire, hides = false): Wire {
  const content = wire[1];
  if (hides || (wire[0] === ':' && Number(content) > 1e12)) return [wire[0], ''];
  if (!Array.isArray(content)) return wire;
  const items = content as readonly Wire[];
  return [
    wire[0],
    items.map((item, i) => masked(item, i > 0 && UNCOMPARED.has(String(items[i - 1][1])))),
  ];
}

/** Ours has other words. */
const anyArray: Comparison = (real, ours) => real[0] === ours[0];

/** Of pending entries, the third part is the time since their delivery. */
const withoutIdle: Comparison = (real, ours, command) => {
  const masked = (wire: Wire): Wire =>
    Array.isArray(wire[1])
      ? [
          wire[0],
          (wire[1] as readonly Wire[]).map((item): Wire => {
            const parts = item[1];
            if (!Array.isArray(parts) || parts.length !== 4) return item;
            return [item[0], (parts as readonly Wire[]).with(2, [':', ''])];
          }),
        ]
      : wire;
  return exact(masked(real), masked(ours), command);
};

export const streamCommands: Family = {
  commands: {
    xadd: joined(
      'XADD',
      key,
      maybe(word('NOMKSTREAM')),
      fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: trim }),
      newId,
      fields,
    ),
    xlen: of('XLEN', key),
    xrange: joined('XRANGE', key, bound, bound, count),
    xrevrange: joined('XREVRANGE', key, bound, bound, count),
    xdel: joined('XDEL', key, several(id)),
    xtrim: joined('XTRIM', key, trim),
    xsetid: joined(
      'XSETID',
      key,
      id,
      several(of(word('ENTRIESADDED'), entriesCount), 0, 1),
      several(of(word('MAXDELETEDID'), id), 0, 1),
    ),
    xread: joined(
      'XREAD',
      several(readOption, 0, 2),
      streams(fc.oneof({ weight: 9, arbitrary: id }, { weight: 1, arbitrary: word('$', '>') })),
    ),
    xreadgroup: joined(
      'XREADGROUP',
      of(word('GROUP'), group, consumer),
      several(fc.oneof(readOption, of(word('NOACK'))), 0, 2),
      streams(
        fc.oneof(
          { weight: 4, arbitrary: fc.constant('>') },
          { weight: 2, arbitrary: id },
          { weight: 1, arbitrary: fc.constantFrom('0', '$') },
        ),
      ),
    ),
    'xgroup|create': joined(
      'XGROUP',
      'create',
      key,
      group,
      fc.oneof(id, fc.constantFrom('$', '0')),
      maybe(word('MKSTREAM')),
      entriesRead,
    ),
    'xgroup|setid': joined(
      'XGROUP',
      'setid',
      key,
      group,
      fc.oneof(id, fc.constantFrom('$', '0', '+')),
      entriesRead,
    ),
    'xgroup|destroy': of('XGROUP', word('DESTROY'), key, group),
    'xgroup|createconsumer': of('XGROUP', word('CREATECONSUMER'), key, group, consumer),
    'xgroup|delconsumer': of('XGROUP', word('DELCONSUMER'), key, group, consumer),
    'xgroup|help': of('XGROUP', word('HELP')),
    'xinfo|help': of('XINFO', word('HELP')),
    xack: joined('XACK', key, group, several(id)),
    xpending: joined(
      'XPENDING',
      key,
      group,
      fc.oneof(
        fc.constant([]),
        joined(
          several(of(word('IDLE'), minIdle), 0, 1),
          bound,
          bound,
          integer,
          several(consumer, 0, 1),
        ),
      ),
    ),
    xclaim: joined(
      'XCLAIM',
      key,
      group,
      consumer,
      minIdle,
      several(id, 1, 5),
      several(claimOption, 0, 2),
    ),
    xautoclaim: joined(
      'XAUTOCLAIM',
      key,
      group,
      consumer,
      minIdle,
      bound,
      several(of(word('COUNT'), fc.constantFrom('1', '2', '0', '-1', 'x')), 0, 1),
      maybe(word('JUSTID')),
    ),
    'xinfo|stream': joined('XINFO', 'stream', key, maybe(word('FULL'), count)),
    'xinfo|groups': of('XINFO', word('GROUPS'), key),
    'xinfo|consumers': of('XINFO', word('CONSUMERS'), key, group),
  },
  comparisons: {
    xpending: withoutIdle,
    'xgroup|help': anyArray,
    'xinfo|help': anyArray,
    'xinfo|stream': withoutTimes,
    'xinfo|consumers': withoutTimes,
  },
};
