/** What compiled scripts call: the operations of Lua, and how far a script may go. */

import { compile } from './compiler.js';
import type { Site } from './expressions.js';
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
/** To catch an error takes as long as so many rounds of a loop. */
const STEPS_PER_CATCH = 100;
/** And a table takes as much memory as so many rounds would be worth. */
const STEPS_PER_TABLE = 30;
const STRING_MAX = 512 * 1024 * 1024;
const JSON_PRECISION = 14;
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
}

export class Runtime {
  readonly #state: State = { fuel: 0 };
  readonly #calls: Site[] = [];
  #depth = 0;
  /** Where a function was called last. */
  #site = NOWHERE;
  /** What all strings have: `("x"):len()`. */
  stringMethods = new LuaTable();
  readonly globals = new LuaTable();
  /** How many digits `cjson` writes. A script may change it for itself. */
  jsonPrecision = JSON_PRECISION;
  readonly #operations = this.#newOperations();

  /** @throws SyntaxProblem */
  load(source: string, chunk: string): LuaFunction {
    const { code, sites } = compile(source, chunk);
    const names = Object.keys(this.#operations).join(', ');
    const make = new Function('R', 'L', `'use strict'; const { ${names} } = R; return ${code};`);
    return make(this.#operations, sites) as LuaFunction;
  }

  /** Runs a function from outside. @param steps  how many rounds of loops and calls it may take */
  start(steps: number, f: LuaFunction, args: readonly LuaValue[]): readonly LuaValue[] {
    this.#state.fuel = steps;
    this.#depth = 0;
    this.#site = NOWHERE;
    this.jsonPrecision = JSON_PRECISION;
    return f(...args);
  }

  /** For functions that take long. */
  spend(steps: number): void {
    this.#state.fuel -= steps;
    if (this.#state.fuel < 0) throw new Exhausted(this.#site.line);
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
  call(f: LuaValue, ...args: LuaValue[]): readonly LuaValue[] {
    const site = this.#site;
    const callable = this.callable(f, site);
    this.#site = NOWHERE;
    const results = callable(...args);
    this.#site = site;
    return results;
  }

  /** Catches errors. @returns what `pcall` does */
  protect(f: LuaValue, args: readonly LuaValue[]): readonly LuaValue[] {
    this.spend(STEPS_PER_CATCH);
    const depth = this.#depth;
    const site = this.#site;
    try {
      return [true, ...this.call(f, ...args)];
    } catch (error) {
      this.#depth = depth;
      this.#site = site;
      if (error instanceof LuaError) return [false, error.value];
      if (error instanceof RangeError) return [false, 'stack overflow'];
      throw error;
    }
  }

  callable(f: LuaValue, site: Site): LuaFunction {
    if (typeof f === 'function') return f;
    const handler = this.metamethod(f, '__call');
    if (typeof handler !== 'function') {
      this.#failAt(site, `attempt to call ${described(f, site.first)}`);
    }
    return (...args) => handler(f, ...args);
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
    table.set(key, value);
  }

  arithmetic(
    event: string,
    a: LuaValue,
    b: LuaValue,
    site: Site,
    compute: (a: number, b: number) => number,
  ): LuaValue {
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
      if (x.length + y.length > STRING_MAX) this.#failAt(site, 'string length overflow');
      return x + y;
    }
    const handler = this.metamethod(a, '__concat') ?? this.metamethod(b, '__concat');
    if (handler !== undefined) return this.callable(handler, site)(a, b)[0];
    const [wrong, name] = x === undefined ? [a, site.first] : [b, site.second];
    return this.#failAt(site, `attempt to concatenate ${described(wrong, name)}`);
  }

  equal(a: LuaValue, b: LuaValue): boolean {
    if (a === b) return true;
    if (!(a instanceof LuaTable && b instanceof LuaTable)) return false;
    const handler = a.metatable?.get('__eq');
    if (handler === undefined || handler !== b.metatable?.get('__eq')) return false;
    return isTrue(this.call(handler, a, b)[0]);
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
    if (typeof a === 'string' && typeof b === 'string') return compare(a, b);
    const handler = this.metamethod(a, name);
    if (handler !== undefined && handler === this.metamethod(b, name)) {
      return isTrue(this.call(handler, a, b)[0]);
    }
    // Without "less or equal", Lua takes "not greater".
    const less = name === '__le' ? this.metamethod(a, '__lt') : undefined;
    if (less !== undefined && less === this.metamethod(b, '__lt')) {
      return !isTrue(this.call(less, b, a)[0]);
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
      const text = this.call(handler, value)[0];
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
      enter: (): void => {
        this.#calls[this.#depth] = this.#site;
        if (++this.#depth > CALLS_MAX) {
          // An error takes its time to pass so many calls.
          state.fuel -= CALLS_MAX * STEPS_PER_CATCH;
          this.#failAt(this.#site, 'stack overflow');
        }
        if (--state.fuel < 0) throw new Exhausted(this.#site.line);
      },
      leave: (values: readonly LuaValue[]): readonly LuaValue[] => {
        this.#depth--;
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
