/** Places: sorted sets whose scores are geohashes. */

import {
  bitsOf,
  cellOf,
  distance,
  LATITUDE_MAX,
  LONGITUDE_MAX,
  type Place,
  placeOf,
  STEPS,
  scoreOf,
} from '../engine/geohash.js';
import { type Bytes, Double, ErrorReply, NullArray, type Reply } from '../resp/reply.js';
import { float, option, syntaxError } from './arguments.js';
import { ONE_KEY } from './key-ranges.js';
import { zadd } from './sorted-sets.js';
import type { CommandSpec, Execution } from './spec.js';

/** Two arguments: longitude and latitude. */
export function parsePlace(longitudeText: Bytes, latitudeText: Bytes): Place {
  const longitude = float(longitudeText);
  const latitude = float(latitudeText);
  if (Math.abs(longitude) > LONGITUDE_MAX || Math.abs(latitude) > LATITUDE_MAX) {
    throw new ErrorReply(
      `ERR invalid longitude,latitude pair ${sixDigits(longitude)},${sixDigits(latitude)}`,
    );
  }
  return { longitude, latitude };
}

/** As `%f` of C. */
function sixDigits(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Math.abs(value) < 1e21 ? value.toFixed(6) : `${BigInt(value)}.000000`;
}

const METRES: ReadonlyMap<string, number> = new Map([
  ['m', 1],
  ['km', 1000],
  ['ft', 0.3048],
  ['mi', 1609.34],
]);

/** @returns how many metres a unit has */
export function parseUnit(arg: Bytes): number {
  const metres = METRES.get(option(arg));
  if (metres === undefined) {
    throw new ErrorReply('ERR unsupported unit provided. please use M, KM, FT, MI');
  }
  return metres;
}

export function distanceReply(value: number): Bytes {
  return value.toFixed(4);
}

export function placeReply({ longitude, latitude }: Place): Reply {
  return [coordinateReply(longitude), coordinateReply(latitude)];
}

/** With 17 digits after the point, but no zeros at the end. */
function coordinateReply(value: number): Double {
  return new Double(value, value.toFixed(17).replace(/\.?0+$/, ''));
}

function geoadd([key, ...args]: readonly Bytes[], execution: Execution): Reply {
  let first = 0;
  const options = new Set<string>();
  for (; first < args.length; first++) {
    const name = option(args[first]);
    if (name !== 'nx' && name !== 'xx' && name !== 'ch') break;
    options.add(name);
  }
  if ((args.length - first) % 3 !== 0 || (options.has('nx') && options.has('xx'))) {
    throw syntaxError();
  }
  const pairs: Bytes[] = [];
  for (let i = first; i < args.length; i += 3) {
    pairs.push(String(scoreOf(parsePlace(args[i], args[i + 1]))), args[i + 2]);
  }
  return zadd([key, ...options, ...pairs], execution);
}

function geodist(args: readonly Bytes[], { keyspace }: Execution): Reply {
  if (args.length > 4) throw syntaxError();
  const [key, from, to, unit] = args;
  const metres = unit === undefined ? 1 : parseUnit(unit);
  const set = keyspace.read(key, 'zset');
  const fromScore = set?.score(from);
  const toScore = set?.score(to);
  if (fromScore === undefined || toScore === undefined) return null;
  return distanceReply(distance(placeOf(fromScore), placeOf(toScore)) / metres);
}

const ALPHABET = '0123456789bcdefghjkmnpqrstuvwxyz';
const GEOHASH_LENGTH = 11;

/** The public form has another grid, up to the poles. It has 55 bits, but we have only 52: the last character stands for none. */
function geohashText(score: number): Bytes {
  const bits = BigInt(bitsOf(cellOf(placeOf(score), STEPS, 90)));
  let text = '';
  for (let i = 1; i < GEOHASH_LENGTH; i++) {
    text += ALPHABET[Number((bits >> BigInt(2 * STEPS - 5 * i)) & 31n)];
  }
  return `${text}0`;
}

export const GEO: readonly CommandSpec[] = [
  {
    name: 'geoadd',
    arity: -5,
    flags: ['write', 'denyoom'],
    category: 'geo',
    since: '3.2.0',
    summary: 'Adds members with their places, or changes their places.',
    keys: ONE_KEY,
    run: geoadd,
  },
  {
    name: 'geopos',
    arity: -2,
    flags: ['readonly'],
    category: 'geo',
    since: '3.2.0',
    summary: 'Returns the longitudes and latitudes of members.',
    keys: ONE_KEY,
    run: ([key, ...members], { keyspace }) => {
      const set = keyspace.read(key, 'zset');
      return members.map((member) => {
        const score = set?.score(member);
        return score === undefined ? NullArray.instance : placeReply(placeOf(score));
      });
    },
  },
  {
    name: 'geodist',
    arity: -4,
    flags: ['readonly'],
    category: 'geo',
    since: '3.2.0',
    summary: 'Returns the distance between two members.',
    keys: ONE_KEY,
    run: geodist,
  },
  {
    name: 'geohash',
    arity: -2,
    flags: ['readonly'],
    category: 'geo',
    since: '3.2.0',
    summary: 'Returns the geohashes of members, as other services write them.',
    keys: ONE_KEY,
    run: ([key, ...members], { keyspace }) => {
      const set = keyspace.read(key, 'zset');
      return members.map((member) => {
        const score = set?.score(member);
        return score === undefined ? null : geohashText(score);
      });
    },
  },
];
