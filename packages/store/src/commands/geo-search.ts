/** Places: members inside a circle or a rectangle. */

import { cellsOf, distanceInside, type Shape } from '../engine/geo-shapes.js';
import { type Place, placeOf, scoresOf } from '../engine/geohash.js';
import { ScoredMembers } from '../engine/values.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { float, INTEGER_MIN, integer, option, syntaxError } from './arguments.js';
import { distanceReply, parsePlace, parseUnit, placeReply } from './geo.js';
import { ONE_KEY, TWO_KEYS } from './key-ranges.js';
import type { CommandSpec, Execution, Run } from './spec.js';

interface Found {
  readonly member: Bytes;
  readonly score: number;
  readonly metres: number;
  readonly place: Place;
}

/** Options while they are read. */
interface Search {
  withDistance: boolean;
  withHash: boolean;
  withPlace: boolean;
  count: number | undefined;
  any: boolean;
  order: 'asc' | 'desc' | undefined;
  centre: Place | undefined;
  lengths: Lengths | undefined;
  target: Bytes | undefined;
  storesDistance: boolean;
}

/** In metres, and how many metres the unit has in which they were given. */
type Lengths = (
  | { readonly radius: number }
  | { readonly width: number; readonly height: number }
) & { readonly unit: number };

function parseRadius(lengthText: Bytes, unitText: Bytes): Lengths {
  const length = float(lengthText, 'ERR need numeric radius');
  if (length < 0) throw new ErrorReply('ERR radius cannot be negative');
  const unit = parseUnit(unitText);
  return { radius: length * unit, unit };
}

function parseBox(widthText: Bytes, heightText: Bytes, unitText: Bytes): Lengths {
  const width = float(widthText, 'ERR need numeric width');
  const height = float(heightText, 'ERR need numeric height');
  if (width < 0 || height < 0) throw new ErrorReply('ERR height or width cannot be negative');
  const unit = parseUnit(unitText);
  return { width: width * unit, height: height * unit, unit };
}

/** Stands for the place of a member of a key that is not there: nothing is found around it. */
const NOWHERE: Place = { longitude: 0, latitude: 0 };

function placeOfMember(set: ScoredMembers | undefined, member: Bytes): Place {
  if (set === undefined) return NOWHERE;
  const score = set.score(member);
  if (score === undefined) throw new ErrorReply('ERR could not decode requested zset member');
  return placeOf(score);
}

/** Which options a command has. */
interface Form {
  /** Whether options say where and how far, as GEOSEARCH has it. */
  readonly isSearch: boolean;
  /** Options with which the result is stored. */
  readonly stores: 'none' | 'by options' | 'always';
}

function newSearch(): Search {
  return {
    withDistance: false,
    withHash: false,
    withPlace: false,
    count: undefined,
    any: false,
    order: undefined,
    centre: undefined,
    lengths: undefined,
    target: undefined,
    storesDistance: false,
  };
}

/** Reads options from position `from` on. */
function readOptions(
  args: readonly Bytes[],
  from: number,
  set: ScoredMembers | undefined,
  form: Form,
  search: Search,
): void {
  for (let i = from; i < args.length; i++) {
    const left = args.length - i - 1;
    const name = option(args[i]);
    if (name === 'withdist') search.withDistance = true;
    else if (name === 'withhash') search.withHash = true;
    else if (name === 'withcoord') search.withPlace = true;
    else if (name === 'any') search.any = true;
    else if (name === 'asc' || name === 'desc') search.order = name;
    else if (name === 'count' && left >= 1) {
      search.count = integer(args[++i]);
      if (search.count <= 0) throw new ErrorReply('ERR COUNT must be > 0');
    } else if (form.isSearch) i += readSearchOption(args, i, set, form, search);
    else if (
      (name === 'store' || name === 'storedist') &&
      form.stores === 'by options' &&
      left >= 1
    ) {
      search.target = args[++i];
      search.storesDistance = name === 'storedist';
    } else throw syntaxError();
  }
}

/** An option of GEOSEARCH. @returns how many arguments it has */
function readSearchOption(
  args: readonly Bytes[],
  at: number,
  set: ScoredMembers | undefined,
  form: Form,
  search: Search,
): number {
  const left = args.length - at - 1;
  const name = option(args[at]);
  if (name === 'storedist' && form.stores === 'always') {
    search.storesDistance = true;
    return 0;
  }
  if (search.centre === undefined) {
    if (name === 'frommember' && left >= 1) {
      search.centre = placeOfMember(set, args[at + 1]);
      return 1;
    }
    if (name === 'fromlonlat' && left >= 2) {
      search.centre = parsePlace(args[at + 1], args[at + 2]);
      return 2;
    }
  }
  if (search.lengths === undefined) {
    if (name === 'byradius' && left >= 2) {
      search.lengths = parseRadius(args[at + 1], args[at + 2]);
      return 2;
    }
    if (name === 'bybox' && left >= 3) {
      search.lengths = parseBox(args[at + 1], args[at + 2], args[at + 3]);
      return 3;
    }
  }
  throw syntaxError();
}

/** @param name  as errors have it */
function checkOptions(search: Search, name: string, form: Form): void {
  const { withDistance, withHash, withPlace, any, count, centre, lengths, target } = search;
  if (target !== undefined && (withDistance || withHash || withPlace)) {
    const what = form.isSearch ? 'GEOSEARCHSTORE' : 'STORE option in GEORADIUS';
    throw new ErrorReply(
      `ERR ${what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options`,
    );
  }
  if (centre === undefined) {
    throw new ErrorReply(
      `ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ${name}`,
    );
  }
  if (lengths === undefined) {
    throw new ErrorReply(`ERR exactly one of BYRADIUS and BYBOX can be specified for ${name}`);
  }
  if (any && count === undefined) {
    throw new ErrorReply('ERR the ANY argument requires COUNT argument');
  }
}

/** @param limit  stops when so many are found */
function find(set: ScoredMembers, shape: Shape, limit: number): Found[] {
  const found: Found[] = [];
  for (const cell of cellsOf(shape)) {
    const [from, to] = scoresOf(cell);
    const last = set.countBelow(to, false);
    for (let rank = set.countBelow(from, false); rank < last; rank++) {
      if (found.length >= limit) return found;
      const [member, score] = set.at(rank);
      const place = placeOf(score);
      const metres = distanceInside(shape, place);
      if (metres !== undefined) found.push({ member, score, metres, place });
    }
  }
  return found;
}

function select(set: ScoredMembers, search: Search): Found[] {
  const { count, any, order } = search;
  const shape = { ...search.lengths!, centre: search.centre! };
  const found = find(set, shape, any ? count! : Infinity);
  if (order === 'desc') found.sort((a, b) => b.metres - a.metres);
  else if (order === 'asc' || (count !== undefined && !any)) {
    found.sort((a, b) => a.metres - b.metres);
  }
  return count === undefined ? found : found.slice(0, count);
}

function store(found: readonly Found[], search: Search, { keyspace }: Execution): Reply {
  const target = search.target!;
  const result = new ScoredMembers();
  const { unit } = search.lengths!;
  for (const { member, score, metres } of found) {
    result.set(member, search.storesDistance ? metres / unit : score);
  }
  if (result.size === 0) keyspace.delete(target);
  else keyspace.set(target, result);
  return result.size;
}

/** Scores need not come from GEOADD. */
function hashReply(score: number): Reply {
  if (Math.abs(score) >= 2 ** 63) return INTEGER_MIN;
  const integer = Math.trunc(score);
  return Number.isSafeInteger(integer) ? integer : BigInt(integer);
}

function reply(found: readonly Found[], search: Search): Reply {
  const { withDistance, withHash, withPlace, lengths } = search;
  if (!withDistance && !withHash && !withPlace) return found.map(({ member }) => member);
  return found.map(({ member, score, metres, place }) => {
    const parts: Reply[] = [member];
    if (withDistance) parts.push(distanceReply(metres / lengths!.unit));
    if (withHash) parts.push(hashReply(score));
    if (withPlace) parts.push(placeReply(place));
    return parts;
  });
}

function finish(set: ScoredMembers | undefined, search: Search, execution: Execution): Reply {
  const found = set === undefined ? [] : select(set, search);
  return search.target === undefined ? reply(found, search) : store(found, search, execution);
}

/** GEORADIUS: `key longitude latitude radius unit`, or GEORADIUSBYMEMBER: `key member radius unit`. */
function radius(byMember: boolean, stores: 'none' | 'by options'): Run {
  const form: Form = { isSearch: false, stores };
  return (args, execution) => {
    const set = execution.keyspace.read(args[0], 'zset');
    const search = newSearch();
    const from = byMember ? 2 : 3;
    search.centre = byMember ? placeOfMember(set, args[1]) : parsePlace(args[1], args[2]);
    // Redis does not look at the distance if there is no member to measure from.
    search.lengths =
      byMember && set === undefined
        ? { radius: 0, unit: 1 }
        : parseRadius(args[from], args[from + 1]);
    readOptions(args, from + 2, set, form, search);
    checkOptions(search, '', form);
    return finish(set, search, execution);
  };
}

function geosearch(args: readonly Bytes[], execution: Execution): Reply {
  const set = execution.keyspace.read(args[0], 'zset');
  const search = newSearch();
  const form: Form = { isSearch: true, stores: 'none' };
  readOptions(args, 1, set, form, search);
  checkOptions(search, 'geosearch', form);
  return finish(set, search, execution);
}

function geosearchstore(args: readonly Bytes[], execution: Execution): Reply {
  const set = execution.keyspace.read(args[1], 'zset');
  const search = newSearch();
  search.target = args[0];
  const form: Form = { isSearch: true, stores: 'always' };
  readOptions(args, 2, set, form, search);
  checkOptions(search, 'geosearchstore', form);
  return finish(set, search, execution);
}

/** The key, and those where the result is stored. @param from  the position of the first option */
function keysWithStores(from: number): (args: readonly Bytes[]) => readonly number[] {
  return (args) => {
    const positions = [0];
    for (let i = from; i + 1 < args.length; i++) {
      const name = option(args[i]);
      if (name === 'store' || name === 'storedist') positions.push(++i);
    }
    return positions;
  };
}

const SAME_DISTANCES = 'With COUNT, members at the same distance can be other ones.';

export const GEO_SEARCHES: readonly CommandSpec[] = [
  {
    name: 'geosearch',
    arity: -7,
    flags: ['readonly'],
    category: 'geo',
    since: '6.2.0',
    summary: 'Returns members inside a circle or a rectangle.',
    differs: SAME_DISTANCES,
    keys: ONE_KEY,
    run: geosearch,
  },
  {
    name: 'geosearchstore',
    arity: -8,
    flags: ['write', 'denyoom'],
    category: 'geo',
    since: '6.2.0',
    summary: 'Stores members inside a circle or a rectangle.',
    differs: SAME_DISTANCES,
    keys: TWO_KEYS,
    run: geosearchstore,
  },
  {
    name: 'georadius',
    arity: -6,
    flags: ['write', 'denyoom', 'movablekeys'],
    category: 'geo',
    since: '3.2.0',
    summary: 'Returns or stores members inside a circle around a place.',
    differs: SAME_DISTANCES,
    keys: ONE_KEY,
    findKeys: keysWithStores(5),
    run: radius(false, 'by options'),
  },
  {
    name: 'georadius_ro',
    arity: -6,
    flags: ['readonly'],
    category: 'geo',
    since: '3.2.10',
    summary: 'Returns members inside a circle around a place.',
    differs: SAME_DISTANCES,
    keys: ONE_KEY,
    run: radius(false, 'none'),
  },
  {
    name: 'georadiusbymember',
    arity: -5,
    flags: ['write', 'denyoom', 'movablekeys'],
    category: 'geo',
    since: '3.2.0',
    summary: 'Returns or stores members inside a circle around a member.',
    differs: SAME_DISTANCES,
    keys: ONE_KEY,
    findKeys: keysWithStores(4),
    run: radius(true, 'by options'),
  },
  {
    name: 'georadiusbymember_ro',
    arity: -5,
    flags: ['readonly'],
    category: 'geo',
    since: '3.2.10',
    summary: 'Returns members inside a circle around a member.',
    differs: SAME_DISTANCES,
    keys: ONE_KEY,
    run: radius(true, 'none'),
  },
];
