/** What compiled scripts call: the operations of Lua, and how far a script may go. */

import { compile } from './compiler.js';
import type { Site } from './expressions.js';
import { JSON_DEFAULTS } from './json-settings.js';
import { SyntaxProblem } from './lexer.js';
import { numberToString, parseNumber } from './numbers.js';
import {
  Exhausted,
  LuaError,
  type LuaFunction,
  LuaTable,
  type LuaValue,
  typeName,
} from './values.js';

/** How deep functions may call each other. It is the same at all replicas, and less than their stacks allow. */
const CALLS_MAX = 1000;
/** How deep functions of the libraries may call each other, directly or through functions of the script. */
const NATIVES_MAX = 200;
/**
 * How many words of the stack they may take, as the compiler estimates them. Where the stack of JavaScript ends depends on the thread
 * and on what is optimised, so a script must never get there: replicas would differ.
 */
const STACK_MAX = 60_000;
/** How many words a call takes, besides the variables of the function. */
const WORDS_PER_CALL = 30;
const WORDS_PER_NATIVE = 100;
/** The cost of catching an error, in steps. */
const STEPS_PER_CATCH = 100;
/** The cost of a new table, in steps, for its memory. */
const STEPS_PER_TABLE = 30;
const STEPS_PER_SLOT = 8;
/** The greatest length of a chunk of code. It takes a second, and 300 times its length of memory, to compile one. */
const CHUNK_MAX = 2 ** 20;
/** The greatest length of a string in JavaScript. */
export const STRING_MAX = 2 ** 29 - 24;
/** How many values a function of the libraries may return. */
export const RESULTS_MAX = 8000;
const NONE: readonly LuaValue[] = [];
const NOWHERE: Site = { chunk: '?', line: 0 };

/** A field with a key in the constructor of a table. */
class Field {
  constructor(
    readonly key: LuaValue,
    readonly value: LuaValue,
  ) {}
}

interface State {
  /** How many rounds of loops and calls are left. */
  fuel: number;
  /** How many words of the stack are in use. */
  stack: number;
}

export class Runtime {
  readonly #state: State = { fuel: 0, stack: 0 };
  readonly #calls: Site[] = [];
  #depth = 0;
  #natives = 0;
  /** Where the last function call was. */
  #site = NOWHERE;
  /** The methods of strings: `("x"):len()`. */
  stringMethods = new LuaTable();
  globals = new LuaTable();
  /** How `cjson` works. A script may change it for itself. */
  json = JSON_DEFAULTS;
  readonly #operations = this.#newOperations();

  /** @throws SyntaxProblem */
  load(source: string, chunk: string): LuaFunction {
    if (source.length > CHUNK_MAX) {
      throw new SyntaxProblem(`${chunk}: chunk has more than ${CHUNK_MAX} bytes`);
    }
    const { code, sites } = compile(source, chunk);
    const names = Object.keys(this.#operations).join(', ');
    const body = `'use strict'; const { ${names} } = R; return ${code};`;
    try {
      return new Function('R', 'L', body)(this.#operations, sites) as LuaFunction;
    } catch (error) {
      // The script exceeds a limit of JavaScript, such as the number of variables.
      if (error instanceof SyntaxError) throw new SyntaxProblem(`${chunk}: chunk is too complex`);
      throw error;
    }
  }

  /** Runs a function from outside. @param steps  how many rounds of loops and calls it may take */
  start(steps: number, f: LuaFunction, args: readonly LuaValue[]): readonly LuaValue[] {
    this.#state.fuel = steps;
    this.#depth = 0;
    this.#natives = 0;
    this.#state.stack = 0;
    this.#site = NOWHERE;
    this.json = JSON_DEFAULTS;
    return f(...args);
  }

  /** Spends steps for a function that takes long. */
  spend(steps: number): void {
    this.#state.fuel -= steps;
    // NaN counts as too few steps.
    if (!(this.#state.fuel >= 0)) throw new Exhausted(this.#site.line);
  }

  /** Spends steps for a function that reads or makes a string of this length. */
  spendOn(length: number): void {
    if (length > 64) this.spend(length >>> 6);
  }

  /** Iterates over the entries of a table, and spends steps for them. */
  *entries(table: LuaTable): Iterable<readonly [LuaValue, LuaValue]> {
    for (let entry = table.next(undefined); ; entry = table.next(entry[0])) {
      this.spend(1 + (LuaTable.skipped >>> 3));
      if (entry === undefined) return;
      yield entry;
    }
  }

  /** Sets a field, and spends steps for it. @param key  neither nil nor NaN */
  setPriced(table: LuaTable, key: LuaValue, value: LuaValue): void {
    // V8 flattens and keeps a concatenated string that becomes a key.
    if (typeof key === 'string' && key.length > 64) this.spend(key.length >>> 3);
    if (table.set(key, value)) this.#state.fuel -= STEPS_PER_SLOT;
  }

  /** Counts a call of a library function, so that none calls itself until the stack of JavaScript overflows. */
  enterNative(): void {
    this.spend(1);
    if (++this.#natives > NATIVES_MAX) this.fail('C stack overflow');
    this.#push(WORDS_PER_NATIVE);
  }

  leaveNative(): void {
    this.#natives--;
    this.#state.stack -= WORDS_PER_NATIVE;
  }

  #push(words: number): void {
    this.#state.stack += words;
    if (this.#state.stack > STACK_MAX) this.#overflow();
  }

  #overflow(): never {
    // Unwinding so many calls takes time.
    this.#state.fuel -= CALLS_MAX * STEPS_PER_CATCH;
    return this.fail('stack overflow');
  }

  /** Calls with arguments that may be many. They are on the stack while the function runs. */
  #apply(f: LuaFunction, args: readonly LuaValue[]): readonly LuaValue[] {
    this.#push(args.length);
    const results = f(...args);
    this.#state.stack -= args.length;
    return results;
  }

  get line(): number {
    return this.#site.line;
  }

  /** "chunk:line:" of a caller: 1 is the one that called the function that runs now. */
  where(level: number): string {
    const site = level <= 1 ? this.#site : this.#calls[this.#depth - level + 1];
    return site === undefined || site.line === 0 ? '' : `${site.chunk}:${site.line}: `;
  }

  /** Whether the function that runs was called as `object:name()`. */
  get isMethodCall(): boolean {
    return this.#site.first?.startsWith('method ') ?? false;
  }

  /** An error without its place. */
  failPlainly(message: string): never {
    throw new LuaError(message, this.#site.line);
  }

  /** An error of a function that the script has called. */
  fail(message: string): never {
    throw new LuaError(this.where(1) + message, this.#site.line);
  }

  #failAt(site: Site, message: string): never {
    throw new LuaError(`${site.chunk}:${site.line}: ${message}`, site.line);
  }

  /** Calls a function from one that is not written in Lua, and so has no lines. */
  call(f: LuaValue, args: readonly LuaValue[]): readonly LuaValue[] {
    const site = this.#site;
    const callable = this.callable(f, site);
    this.#site = NOWHERE;
    const results = this.#apply(callable, args);
    this.#site = site;
    return results;
  }

  /** Catches errors. @returns what `pcall` does */
  protect(f: LuaValue, args: readonly LuaValue[]): readonly LuaValue[] {
    this.spend(STEPS_PER_CATCH);
    const depth = this.#depth;
    const natives = this.#natives;
    const { stack } = this.#state;
    const site = this.#site;
    try {
      return [true, ...this.call(f, args)];
    } catch (error) {
      this.#depth = depth;
      this.#natives = natives;
      this.#state.stack = stack;
      this.#site = site;
      if (error instanceof LuaError) return [false, error.value];
      // A string or a table is larger than JavaScript allows.
      if (error instanceof RangeError) return [false, 'not enough memory'];
      throw error;
    }
  }

  callable(f: LuaValue, site: Site): LuaFunction {
    if (typeof f === 'function') return f;
    const handler = this.metamethod(f, '__call');
    if (typeof handler !== 'function') {
      this.#failAt(site, `attempt to call ${described(f, site.first)}`);
    }
    return (...args) => this.#apply(handler, [f, ...args]);
  }

  metatableOf(value: LuaValue): LuaTable | undefined {
    return value instanceof LuaTable ? value.metatable : undefined;
  }

  metamethod(value: LuaValue, name: string): LuaValue {
    return this.metatableOf(value)?.get(name);
  }

  index(object: LuaValue, key: LuaValue, site: Site): LuaValue {
    let at = object;
    for (let i = 0; i < 100; i++) {
      let handler: LuaValue;
      if (at instanceof LuaTable) {
        const value = at.get(key);
        if (value !== undefined || at.metatable === undefined) return value;
        handler = at.metatable.get('__index');
        if (handler === undefined) return undefined;
      } else if (typeof at === 'string') {
        handler = this.stringMethods;
      } else {
        return this.#failAt(site, `attempt to index ${described(at, site.first)}`);
      }
      if (typeof handler === 'function') return handler(at, key)[0];
      at = handler;
    }
    return this.#failAt(site, 'loop in gettable');
  }

  setIndex(object: LuaValue, key: LuaValue, value: LuaValue, site: Site): void {
    let at = object;
    for (let i = 0; i < 100; i++) {
      if (!(at instanceof LuaTable)) {
        this.#failAt(site, `attempt to index ${described(at, site.first)}`);
      }
      const handler = at.metatable?.get('__newindex');
      if (handler === undefined || at.get(key) !== undefined) {
        this.#setField(at, key, value, site);
        return;
      }
      if (typeof handler === 'function') {
        handler(at, key, value);
        return;
      }
      at = handler;
    }
    this.#failAt(site, 'loop in settable');
  }

  #setField(table: LuaTable, key: LuaValue, value: LuaValue, site: Site): void {
    if (table.isReadonly) this.#failAt(site, 'Attempt to modify a readonly table');
    if (key === undefined) this.#failAt(site, 'table index is nil');
    if (Number.isNaN(key)) this.#failAt(site, 'table index is NaN');
    this.#state.fuel--;
    this.setPriced(table, key, value);
  }

  arithmetic(
    event: string,
    a: LuaValue,
    b: LuaValue,
    site: Site,
    compute: (a: number, b: number) => number,
  ): LuaValue {
    if (typeof a === 'string') this.spendOn(a.length);
    if (typeof b === 'string') this.spendOn(b.length);
    const x = toNumber(a);
    const y = toNumber(b);
    if (x !== undefined && y !== undefined) return compute(x, y);
    const handler = this.metamethod(a, event) ?? this.metamethod(b, event);
    if (handler !== undefined) return this.callable(handler, site)(a, b)[0];
    const [wrong, name] = x === undefined ? [a, site.first] : [b, site.second];
    return this.#failAt(site, `attempt to perform arithmetic on ${described(wrong, name)}`);
  }

  concat(a: LuaValue, b: LuaValue, site: Site): LuaValue {
    const x = toText(a);
    const y = toText(b);
    if (x !== undefined && y !== undefined) {
      const length = x.length + y.length;
      if (length > STRING_MAX) this.#failAt(site, 'string length overflow');
      // The string is copied later, if at all.
      this.#state.fuel -= length >>> 10;
      return x + y;
    }
    const handler = this.metamethod(a, '__concat') ?? this.metamethod(b, '__concat');
    if (handler !== undefined) return this.callable(handler, site)(a, b)[0];
    const [wrong, name] = x === undefined ? [a, site.first] : [b, site.second];
    return this.#failAt(site, `attempt to concatenate ${described(wrong, name)}`);
  }

  equal(a: LuaValue, b: LuaValue): boolean {
    if (typeof a === 'string' && typeof b === 'string' && a.length === b.length) {
      this.spendOn(a.length);
    }
    if (a === b) return true;
    if (!(a instanceof LuaTable && b instanceof LuaTable)) return false;
    const handler = a.metatable?.get('__eq');
    if (handler === undefined || handler !== b.metatable?.get('__eq')) return false;
    return isTrue(this.call(handler, [a, b])[0]);
  }

  /** @param name  of the metamethod */
  compare(
    a: LuaValue,
    b: LuaValue,
    site: Site,
    name: '__lt' | '__le',
    compare: (a: number | string, b: number | string) => boolean,
  ): boolean {
    if (typeof a === 'number' && typeof b === 'number') return compare(a, b);
    if (typeof a === 'string' && typeof b === 'string') {
      this.spendOn(Math.min(a.length, b.length));
      return compare(a, b);
    }
    const handler = this.metamethod(a, name);
    if (handler !== undefined && handler === this.metamethod(b, name)) {
      return isTrue(this.call(handler, [a, b])[0]);
    }
    // Without "less or equal", Lua takes "not greater".
    const less = name === '__le' ? this.metamethod(a, '__lt') : undefined;
    if (less !== undefined && less === this.metamethod(b, '__lt')) {
      return !isTrue(this.call(less, [b, a])[0]);
    }
    const [x, y] = [typeName(a), typeName(b)];
    return this.#failAt(
      site,
      x === y ? `attempt to compare two ${x} values` : `attempt to compare ${x} with ${y}`,
    );
  }

  /** As the functions of the library compare. */
  isLess(a: LuaValue, b: LuaValue): boolean {
    return this.compare(a, b, this.#site, '__lt', (x, y) => x < y);
  }

  tostring(value: LuaValue): string {
    const handler = this.metamethod(value, '__tostring');
    if (handler !== undefined) {
      const text = this.call(handler, [value])[0];
      return toText(text) ?? this.fail("'tostring' must return a string to 'print'");
    }
    const text = toText(value);
    if (text !== undefined) return text;
    if (value === undefined) return 'nil';
    // An address would not be the same at all replicas.
    return typeof value === 'boolean' ? String(value) : `${typeName(value)}: 0x0`;
  }

  #newOperations() {
    const state = this.#state;
    const index = (object: LuaValue, key: LuaValue, site: Site): LuaValue => {
      if (object instanceof LuaTable) {
        const value = object.get(key);
        if (value !== undefined || object.metatable === undefined) return value;
      }
      this.#site = site;
      return this.index(object, key, site);
    };
    const fn = (f: LuaValue, site: Site): LuaFunction => {
      this.#site = site;
      return typeof f === 'function' ? f : this.callable(f, site);
    };
    const lt = (a: LuaValue, b: LuaValue, site: Site): boolean =>
      typeof a === 'number' && typeof b === 'number'
        ? a < b
        : this.compare(a, b, site, '__lt', (x, y) => x < y);
    const le = (a: LuaValue, b: LuaValue, site: Site): boolean =>
      typeof a === 'number' && typeof b === 'number'
        ? a <= b
        : this.compare(a, b, site, '__le', (x, y) => x <= y);
    const arithmetic =
      (event: string, compute: (a: number, b: number) => number) =>
      (a: LuaValue, b: LuaValue, site: Site): LuaValue =>
        typeof a === 'number' && typeof b === 'number'
          ? compute(a, b)
          : this.arithmetic(event, a, b, site, compute);
    return {
      S: state,
      NONE,
      Field,
      newTable: (): LuaTable => {
        state.fuel -= STEPS_PER_TABLE;
        return new LuaTable();
      },
      listOf: (elements: readonly LuaValue[]): LuaTable => {
        state.fuel -= STEPS_PER_TABLE + elements.length;
        return LuaTable.of(elements);
      },
      is: isTrue,
      index,
      fn,
      lt,
      le,
      gt: (a: LuaValue, b: LuaValue, site: Site): boolean => lt(b, a, site),
      ge: (a: LuaValue, b: LuaValue, site: Site): boolean => le(b, a, site),
      eq: (a: LuaValue, b: LuaValue): boolean => this.equal(a, b),
      add: arithmetic('__add', (a, b) => a + b),
      sub: arithmetic('__sub', (a, b) => a - b),
      mul: arithmetic('__mul', (a, b) => a * b),
      div: arithmetic('__div', (a, b) => a / b),
      mod: arithmetic('__mod', (a, b) => a - Math.floor(a / b) * b),
      pow: arithmetic('__pow', (a, b) => a ** b),
      unm: (a: LuaValue, site: Site): LuaValue => this.arithmetic('__unm', a, a, site, (x) => -x),
      concat: (a: LuaValue, b: LuaValue, site: Site): LuaValue => this.concat(a, b, site),
      len: (value: LuaValue, site: Site): LuaValue => {
        if (typeof value === 'string' || value instanceof LuaTable) return value.length;
        return this.#failAt(site, `attempt to get length of ${described(value, site.first)}`);
      },
      method: (object: LuaValue, name: string, field: Site, site: Site): LuaFunction =>
        fn(index(object, name, field), site),
      setIndex: (object: LuaValue, key: LuaValue, value: LuaValue, site: Site): void =>
        this.setIndex(object, key, value, site),
      global: (name: string, site: Site): LuaValue => index(this.globals, name, site),
      setGlobal: (name: string, value: LuaValue, site: Site): void =>
        this.setIndex(this.globals, name, value, site),
      tableOf: (items: readonly (LuaValue | Field)[], site: Site): LuaTable => {
        state.fuel -= STEPS_PER_TABLE + items.length;
        const elements = items.filter((item): item is LuaValue => !(item instanceof Field));
        const table = LuaTable.of(elements);
        for (const item of items) {
          if (!(item instanceof Field)) continue;
          // An element without a key comes after those that have one.
          const { key, value } = item;
          const isElement = typeof key === 'number' && key >= 1 && key <= elements.length;
          if (!isElement || !Number.isInteger(key)) this.#setField(table, key, value, site);
        }
        return table;
      },
      forLimits: (first: LuaValue, limit: LuaValue, step: LuaValue, site: Site): number[] =>
        [first, limit, step].map((value, i) => {
          const what = ['initial value', 'limit', 'step'][i];
          return toNumber(value) ?? this.#failAt(site, `'for' ${what} must be a number`);
        }),
      /** Values that are copied. */
      many: (values: readonly LuaValue[]): readonly LuaValue[] => {
        state.fuel -= values.length >>> 1;
        return values;
      },
      apply: (f: LuaFunction, args: readonly LuaValue[]) => this.#apply(f, args),
      enter: (words: number): void => {
        this.#calls[this.#depth] = this.#site;
        state.stack += WORDS_PER_CALL + words;
        if (++this.#depth > CALLS_MAX || state.stack > STACK_MAX) this.#overflow();
        if (--state.fuel < 0) throw new Exhausted(this.#site.line);
      },
      leave: (values: readonly LuaValue[], words: number): readonly LuaValue[] => {
        this.#depth--;
        state.stack -= WORDS_PER_CALL + words;
        return values;
      },
      exhausted: (site: Site): never => {
        throw new Exhausted(site.line);
      },
    };
  }
}

export function isTrue(value: LuaValue): boolean {
  return value !== undefined && value !== false;
}

/** Strings that look like numbers are numbers in arithmetic. */
export function toNumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? parseNumber(value) : undefined;
}

/** Numbers are strings where strings are expected. */
export function toText(value: LuaValue): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? numberToString(value) : undefined;
}

function described(value: LuaValue, name: string | undefined): string {
  const type = typeName(value);
  return name === undefined ? `a ${type} value` : `${name} (a ${type} value)`;
}
