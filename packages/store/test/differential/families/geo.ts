import * as fc from 'fast-check';
import { type Drawn, type Family, joined, maybe, of, several, word } from './family.js';

/** Others do not touch these keys, nor those where results are stored. */
const key = fc.constantFrom('geo1', 'geo2');
const target = fc.constantFrom('found1', 'found2');
const member = fc.integer({ min: 0, max: 30 }).map((n) => `m${n}`);

function degrees(min: number, max: number, odd: readonly string[]): fc.Arbitrary<string> {
  const any = fc.integer({ min: min * 10_000, max: max * 10_000 }).map((n) => String(n / 10_000));
  return fc.oneof(
    { weight: 20, arbitrary: any },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

const ODD = ['x', '', '181', '-180', '180', '86', '-85.06', '0', '1e400'];
const place = fc.oneof(
  of(degrees(10, 20, ODD), degrees(40, 50, ODD)),
  of(degrees(-180, 180, ODD), degrees(-85, 85, ODD)),
);
const length = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('1', '50', '500', '3000', '20000', '0.5', '123456') },
  { weight: 1, arbitrary: fc.constantFrom('0', '-1', 'x', '') },
);
const unit = word('M', 'KM', 'KM', 'FT', 'MI');
const count = fc.oneof(
  of(word('COUNT'), fc.constantFrom('1', '3', '100', '0', '-1', 'x')),
  of(word('COUNT'), fc.constantFrom('1', '3', '100'), word('ANY')),
);
const shown = word('WITHCOORD', 'WITHDIST', 'WITHHASH', 'ASC', 'DESC');
const options = several(
  fc.oneof(
    { weight: 8, arbitrary: shown },
    { weight: 3, arbitrary: count },
    { weight: 1, arbitrary: of('X') },
  ),
  0,
  4,
);
const orders = several(fc.oneof(count, word('ASC', 'DESC')), 0, 2);
const circle = joined(length, unit);
const centre = fc.oneof(of(word('FROMMEMBER'), member), joined(word('FROMLONLAT'), place));
const shape = fc.oneof(joined(word('BYRADIUS'), circle), joined(word('BYBOX'), length, circle));
const storing: Drawn = fc.oneof(
  { weight: 3, arbitrary: options },
  { weight: 1, arbitrary: joined(orders, word('STORE'), target) },
);

export const geo: Family = {
  commands: {
    geoadd: joined(
      'GEOADD',
      key,
      several(word('NX', 'XX', 'CH'), 0, 1),
      several(joined(place, member), 1, 8),
    ),
    geopos: joined('GEOPOS', key, several(member, 0, 3)),
    geodist: joined('GEODIST', key, member, member, maybe(unit)),
    geohash: joined('GEOHASH', key, several(member, 0, 3)),
    geosearch: joined('GEOSEARCH', key, centre, shape, options),
    geosearchstore: joined('GEOSEARCHSTORE', target, key, centre, shape, orders),
    georadius: joined('GEORADIUS', key, place, circle, storing),
    georadius_ro: joined('GEORADIUS_RO', key, place, circle, options),
    georadiusbymember: joined('GEORADIUSBYMEMBER', key, member, circle, storing),
    georadiusbymember_ro: joined('GEORADIUSBYMEMBER_RO', key, member, circle, options),
  },
};
