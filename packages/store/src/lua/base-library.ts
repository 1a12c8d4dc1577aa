/** The basic functions, and the libraries `table` and `math`. Nothing of them reaches outside of the script. */

import { type Arguments, library, type Native } from './arguments.js';
import { SyntaxProblem } from './lexer.js';
import { parseInteger, parseNumber } from './numbers.js';
import { isTrue, RESULTS_MAX, type Runtime, STRING_MAX, toText } from './runtime.js';
import { LuaError, LuaTable, type LuaValue, typeName } from './values.js';

/** What it costs to compile a chunk, and each of its bytes, in steps. */
const STEPS_PER_CHUNK = 1000;
const STEPS_PER_BYTE = 16;
const READONLY = 'Attempt to modify a readonly table';

function unpack(args: Arguments): readonly LuaValue[] {
  const table = args.table(1);
  const from = args.integer(2, 1);
  const to = args.integer(3, table.length);
  if (from > to) return [];
  if (to - from >= RESULTS_MAX) args.runtime.fail('too many results to unpack');
  args.runtime.spend((to - from) >>> 1);
  const values: LuaValue[] = [];
  for (let i = from; i <= to; i++) values.push(table.get(i));
  return values;
}

function load(args: Arguments, source: string, chunk: string): readonly LuaValue[] {
  args.runtime.spend(STEPS_PER_CHUNK + STEPS_PER_BYTE * source.length);
  try {
    return [args.runtime.load(source, chunk)];
  } catch (error) {
    if (error instanceof SyntaxProblem) return [undefined, error.message];
    throw error;
  }
}

function chunkName(name: string): string {
  if (name.startsWith('=') || name.startsWith('@')) return name.slice(1);
  const [line] = name.split('\n', 1);
  const short = line.length < name.length || line.length > 45 ? `${line.slice(0, 45)}...` : line;
  return `[string "${short}"]`;
}

const NEXT: Native = (args) => {
  const entry = args.table(1).next(args.at(2));
  args.runtime.spend(LuaTable.skipped >>> 3);
  return entry;
};

const BASE: Readonly<Record<string, Native>> = {
  assert: (args) => {
    if (isTrue(args.any(1))) return args.values;
    return args.runtime.fail(args.string(2, 'assertion failed!'));
  },
  collectgarbage: () => 0,
  error: (args) => {
    const value = args.at(1);
    const level = args.integer(2, 1);
    const text = level > 0 ? toText(value) : undefined;
    const located = text === undefined ? value : args.runtime.where(level) + text;
    throw new LuaError(located, args.runtime.line);
  },
  gcinfo: () => 0,
  getmetatable: (args) => {
    const metatable = args.runtime.metatableOf(args.any(1));
    return metatable?.get('__metatable') ?? metatable;
  },
  load: (args) => {
    const read = args.function(1);
    let source = '';
    for (;;) {
      const piece = toText(read()[0]);
      if (piece === undefined || piece === '') break;
      args.runtime.spend(piece.length);
      source += piece;
    }
    return load(args, source, chunkName(args.string(2, '=(load)')));
  },
  loadstring: (args) => {
    const source = args.string(1);
    args.runtime.spend(source.length);
    return load(args, source, chunkName(args.string(2, source)));
  },
  next: NEXT,
  pcall: (args) => {
    args.any(1);
    return args.runtime.protect(args.at(1), args.values.slice(1));
  },
  rawequal: (args) => args.any(1) === args.any(2),
  rawget: (args) => args.table(1).get(args.any(2)),
  rawset: (args) => {
    const table = args.table(1);
    if (table.isReadonly) args.runtime.failPlainly(READONLY);
    const key = args.any(2);
    if (key === undefined || Number.isNaN(key)) args.runtime.fail('table index is nil');
    args.runtime.setPriced(table, key, args.any(3));
    return table;
  },
  select: (args) => {
    if (args.at(1) === '#') return args.count - 1;
    const at = args.integer(1);
    if (at < 0 && -at > args.count - 1) args.fail(1, 'index out of range');
    if (at === 0) args.fail(1, 'index out of range');
    return at < 0 ? args.values.slice(at) : args.values.slice(at);
  },
  setmetatable: (args) => {
    const table = args.table(1);
    const metatable = args.at(2);
    if (metatable !== undefined && !(metatable instanceof LuaTable)) {
      return args.fail(2, 'nil or table expected');
    }
    if (table.isReadonly) args.runtime.failPlainly(READONLY);
    if (table.metatable?.get('__metatable') !== undefined) {
      args.runtime.fail('cannot change a protected metatable');
    }
    table.metatable = metatable;
    return table;
  },
  tonumber: (args) => {
    const value = args.any(1);
    const base = args.integer(2, 10);
    if (base === 10) {
      if (typeof value === 'number') return value;
      return typeof value === 'string' ? parseNumber(args.string(1)) : undefined;
    }
    if (base < 2 || base > 36) args.fail(2, 'base out of range');
    return parseInteger(args.string(1), base);
  },
  tostring: (args) => args.runtime.tostring(args.any(1)),
  type: (args) => typeName(args.any(1)),
  unpack,
  xpcall: (args) => {
    const [ok, ...results] = args.runtime.protect(args.at(1), []);
    return ok === true ? [ok, ...results] : [false, ...args.runtime.call(args.at(2), [results[0]])];
  },
};

const TABLE: Readonly<Record<string, Native>> = {
  concat: (args) => {
    const table = args.table(1);
    const separator = args.string(2, '');
    const from = args.integer(3, 1);
    const to = args.integer(4, table.length);
    const parts: string[] = [];
    let length = 0;
    for (let i = from; i <= to; i++) {
      const part = toText(table.get(i));
      if (part === undefined) {
        const type = typeName(table.get(i));
        return args.runtime.fail(`invalid value (${type}) at index ${i} in table for 'concat'`);
      }
      parts.push(part);
      length += part.length + separator.length;
    }
    args.runtime.spend(parts.length);
    if (length > STRING_MAX) args.runtime.fail('string length overflow');
    args.runtime.spend(length >>> 4);
    return parts.join(separator);
  },
  foreach: (args) => {
    const f = args.function(2);
    for (const [key, value] of args.runtime.entries(args.table(1))) {
      const [result] = f(key, value);
      if (result !== undefined) return result;
    }
    return [];
  },
  foreachi: (args) => {
    const table = args.table(1);
    const f = args.function(2);
    for (let i = 1; i <= table.length; i++) {
      args.runtime.spend(1);
      const [result] = f(i, table.get(i));
      if (result !== undefined) return result;
    }
    return [];
  },
  getn: (args) => args.table(1).length,
  insert: (args) => {
    const table = args.table(1);
    if (table.isReadonly) args.runtime.failPlainly(READONLY);
    if (args.count === 2) {
      table.set(table.length + 1, args.at(2));
      return [];
    }
    if (args.count !== 3) args.runtime.fail("wrong number of arguments to 'insert'");
    const at = args.integer(2);
    if (at >= 1 && at <= table.length && args.at(3) !== undefined) {
      args.runtime.spend(Math.ceil((table.length - at) / 100));
      table.array.splice(at - 1, 0, args.at(3));
      return [];
    }
    if (at <= table.length) args.runtime.spend(table.length - at);
    for (let i = table.length; i >= at; i--) table.set(i + 1, table.get(i));
    table.set(at, args.at(3));
    return [];
  },
  maxn: (args) => {
    let most = 0;
    for (const [key] of args.runtime.entries(args.table(1))) {
      if (typeof key === 'number' && key > most) most = key;
    }
    return most;
  },
  remove: (args) => {
    const table = args.table(1);
    if (table.isReadonly) args.runtime.failPlainly(READONLY);
    const { length } = table;
    const at = args.integer(2, length);
    if (at < 1 || at > length) return [];
    const value = table.get(at);
    args.runtime.spend(Math.ceil((length - at) / 100));
    for (let i = at; i < length; i++) table.array[i - 1] = table.array[i];
    table.set(length, undefined);
    return value;
  },
  sort: (args) => {
    const table = args.table(1);
    if (table.isReadonly) args.runtime.failPlainly(READONLY);
    const { runtime } = args;
    const compare = args.at(2) === undefined ? undefined : args.function(2);
    const isLess = (a: LuaValue, b: LuaValue): boolean => {
      runtime.spend(1);
      return compare === undefined ? runtime.isLess(a, b) : isTrue(compare(a, b)[0]);
    };
    // JavaScript would move nil to the end, without a comparison.
    if (table.array.includes(undefined)) isLess(undefined, table.array[0]);
    const sorted = [...table.array].sort((a, b) => (isLess(a, b) ? -1 : isLess(b, a) ? 1 : 0));
    for (let i = 0; i < sorted.length; i++) table.array[i] = sorted[i];
    return [];
  },
};

function ofNumber(f: (x: number) => number): Native {
  return (args) => f(args.number(1));
}

function extreme(isBetter: (a: number, b: number) => boolean): Native {
  return (args) => {
    let best = args.number(1);
    for (let i = 2; i <= args.count; i++) if (isBetter(args.number(i), best)) best = args.number(i);
    return best;
  };
}

function frexp(x: number): readonly LuaValue[] {
  if (x === 0 || !Number.isFinite(x)) return [x, 0];
  let exponent = Math.max(-1023, Math.floor(Math.log2(Math.abs(x))) + 1);
  let fraction = x * 2 ** -exponent;
  while (Math.abs(fraction) < 0.5) {
    fraction *= 2;
    exponent--;
  }
  while (Math.abs(fraction) >= 1) {
    fraction /= 2;
    exponent++;
  }
  return [fraction, exponent];
}

const MATH: Readonly<Record<string, Native>> = {
  abs: ofNumber(Math.abs),
  acos: ofNumber(Math.acos),
  asin: ofNumber(Math.asin),
  atan: ofNumber(Math.atan),
  atan2: (args) => Math.atan2(args.number(1), args.number(2)),
  ceil: ofNumber(Math.ceil),
  cos: ofNumber(Math.cos),
  cosh: ofNumber(Math.cosh),
  deg: ofNumber((x) => (x * 180) / Math.PI),
  exp: ofNumber(Math.exp),
  floor: ofNumber(Math.floor),
  fmod: (args) => args.number(1) % args.number(2),
  frexp: (args) => frexp(args.number(1)),
  ldexp: (args) => args.number(1) * 2 ** args.number(2),
  log: ofNumber(Math.log),
  log10: ofNumber(Math.log10),
  max: extreme((a, b) => a > b),
  min: extreme((a, b) => a < b),
  mod: (args) => args.number(1) % args.number(2),
  modf: (args) => {
    const x = args.number(1);
    const whole = Math.trunc(x);
    return [whole, Number.isFinite(x) ? x - whole : 0];
  },
  pow: (args) => args.number(1) ** args.number(2),
  rad: ofNumber((x) => (x * Math.PI) / 180),
  sin: ofNumber(Math.sin),
  sinh: ofNumber(Math.sinh),
  sqrt: ofNumber(Math.sqrt),
  tan: ofNumber(Math.tan),
  tanh: ofNumber(Math.tanh),
};

/** @param random  0 <= x < 1; scripts have no other randomness */
export function mathLibrary(
  runtime: Runtime,
  random: () => number,
  seed: (value: number) => void,
): LuaTable {
  const table = library(runtime, {
    ...MATH,
    random: (args) => {
      const x = random();
      if (args.count === 0) return x;
      const [from, to] =
        args.count === 1 ? [1, args.integer(1)] : [args.integer(1), args.integer(2)];
      if (from > to) args.fail(args.count === 1 ? 1 : 2, 'interval is empty');
      return Math.floor(x * (to - from + 1)) + from;
    },
    randomseed: (args) => {
      seed(args.number(1));
      return [];
    },
  });
  table.set('huge', Infinity);
  table.set('pi', Math.PI);
  return table;
}

/** The basic functions become globals. */
export function addBase(runtime: Runtime): void {
  const { globals } = runtime;
  const base = library(runtime, BASE);
  for (const [name, value] of base.entries()) globals.set(name, value);
  const next = base.get('next');
  const step = library(runtime, {
    ipairs: (args) => {
      const i = args.number(2) + 1;
      const value = runtime.index(args.at(1), i, { chunk: '', line: runtime.line });
      return value === undefined ? undefined : [i, value];
    },
  }).get('ipairs');
  const iterators = library(runtime, {
    ipairs: (args) => [step, args.table(1), 0],
    pairs: (args) => [next, args.table(1), undefined],
  });
  for (const [name, value] of iterators.entries()) globals.set(name, value);
  globals.set('table', library(runtime, TABLE));
  globals.set('_VERSION', 'Lua 5.1');
  globals.set('_G', globals);
}
