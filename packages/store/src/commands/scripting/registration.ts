/** What a library of functions registers while FUNCTION LOAD runs its code. */

import type { Arguments } from '../../lua/arguments.js';
import { toText } from '../../lua/runtime.js';
import { type LuaFunction, LuaTable, type LuaValue } from '../../lua/values.js';
import { FLAGS } from './shebang.js';

/** What FUNCTION LIST says of a function. */
export interface FunctionSpec {
  readonly name: string;
  readonly flags: readonly string[];
  readonly description: string | undefined;
}

/** A function that a library registers. */
export interface Registered extends FunctionSpec {
  readonly callback: LuaFunction;
}

/** Ends the script with an error. */
export type Fail = (text: string) => never;

/** @returns what `redis.register_function` was called with */
export function readRegistration(args: Arguments, fail: Fail): Registered {
  const read = args.count === 1 ? readNamed(args.at(1), fail) : readPositional(args, fail);
  if (!/^\w+$/.test(read.name)) {
    fail(
      'Library names can only contain letters, numbers, or underscores(_) and must be at least one character long',
    );
  }
  return read;
}

function readPositional(args: Arguments, fail: Fail): Registered {
  if (args.count !== 2) fail('wrong number of arguments to redis.register_function');
  const name = toText(args.at(1));
  const callback = args.at(2);
  if (name === undefined) {
    return fail('first argument to redis.register_function must be a string');
  }
  if (typeof callback !== 'function') {
    return fail('second argument to redis.register_function must be a function');
  }
  return { name, callback, flags: [], description: undefined };
}

function readNamed(table: LuaValue, fail: Fail): Registered {
  if (!(table instanceof LuaTable)) {
    return fail(
      'calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).',
    );
  }
  let name: string | undefined;
  let description: string | undefined;
  let callback: LuaFunction | undefined;
  let flags: readonly string[] = [];
  const text = (key: string, value: LuaValue): string =>
    toText(value) ?? fail(`${key} argument given to redis.register_function must be a string`);
  for (const [key, value] of table.entries()) {
    const word = toText(key)?.toLowerCase();
    if (word === undefined) {
      fail('named argument key given to redis.register_function is not a string');
    } else if (word === 'function_name') name = text(word, value);
    else if (word === 'description') description = text(word, value);
    else if (word === 'callback') {
      if (typeof value !== 'function') {
        return fail('callback argument given to redis.register_function must be a function');
      }
      callback = value;
    } else if (word === 'flags') flags = readFlags(value, fail);
    else fail('unknown argument given to redis.register_function');
  }
  if (name === undefined) {
    return fail('redis.register_function must get a function name argument');
  }
  if (callback === undefined) {
    return fail('redis.register_function must get a callback argument');
  }
  return { name, callback, flags, description };
}

function readFlags(table: LuaValue, fail: Fail): readonly string[] {
  if (!(table instanceof LuaTable)) {
    return fail(
      'flags argument to redis.register_function must be a table representing function flags',
    );
  }
  const given = new Set<string>();
  for (let i = 1; table.get(i) !== undefined; i++) {
    const flag = toText(table.get(i))?.toLowerCase();
    if (flag === undefined || !FLAGS.includes(flag)) return fail('unknown flag given');
    given.add(flag);
  }
  return FLAGS.filter((flag) => given.has(flag));
}
