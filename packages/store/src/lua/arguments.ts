/** Arguments of functions that are written in JavaScript. */

import { type Runtime, toNumber, toText } from './runtime.js';
import { type LuaFunction, LuaTable, type LuaValue, typeName } from './values.js';

/** The arguments of one call. Positions count from 1, as messages do. */
export class Arguments {
  constructor(
    readonly runtime: Runtime,
    readonly name: string,
    readonly values: readonly LuaValue[],
  ) {}

  get count(): number {
    return this.values.length;
  }

  any(position: number): LuaValue {
    if (position > this.count) this.fail(position, 'value expected');
    return this.values[position - 1];
  }

  at(position: number): LuaValue {
    return this.values[position - 1];
  }

  number(position: number, missing?: number): number {
    const value = this.values[position - 1];
    if (value === undefined && missing !== undefined) return missing;
    return toNumber(value) ?? this.#wrongType(position, 'number');
  }

  /** Truncated towards zero; NaN is 0. */
  integer(position: number, missing?: number): number {
    return Math.trunc(this.number(position, missing)) || 0;
  }

  string(position: number, missing?: string): string {
    const value = this.values[position - 1];
    if (value === undefined && missing !== undefined) return missing;
    const text = toText(value) ?? this.#wrongType(position, 'string');
    // What is done with it takes longer if it is long.
    if (text.length > 64) this.runtime.spend(text.length >> 6);
    return text;
  }

  table(position: number): LuaTable {
    const value = this.values[position - 1];
    return value instanceof LuaTable ? value : this.#wrongType(position, 'table');
  }

  function(position: number): LuaFunction {
    const value = this.values[position - 1];
    return typeof value === 'function' ? value : this.#wrongType(position, 'function');
  }

  #wrongType(position: number, expected: string): never {
    const got = position > this.count ? 'no value' : typeName(this.values[position - 1]);
    return this.fail(position, `${expected} expected, got ${got}`);
  }

  fail(position: number, message: string): never {
    // The object of a method is not counted.
    const shown = this.runtime.isMethodCall ? position - 1 : position;
    if (shown === 0) this.runtime.fail(`calling '${this.name}' on bad self (${message})`);
    return this.runtime.fail(`bad argument #${shown} to '${this.name}' (${message})`);
  }
}

export type Native = (args: Arguments) => LuaValue | readonly LuaValue[];

/** Makes functions of Lua. One that returns an array returns several values. */
export function library(runtime: Runtime, natives: Readonly<Record<string, Native>>): LuaTable {
  const table = new LuaTable();
  for (const [name, native] of Object.entries(natives))
    table.set(name, toLua(runtime, name, native));
  return table;
}

export function toLua(runtime: Runtime, name: string, native: Native): LuaFunction {
  return (...values) => {
    runtime.enterNative();
    const result = native(new Arguments(runtime, name, values));
    runtime.leaveNative();
    return Array.isArray(result) ? (result as readonly LuaValue[]) : [result as LuaValue];
  };
}
