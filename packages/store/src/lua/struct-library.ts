/** The library `struct`: values as C lays them out. */

import { type Arguments, library } from './arguments.js';
import { RESULTS_MAX, type Runtime } from './runtime.js';
import type { LuaTable, LuaValue } from './values.js';

const INTEGER_SIZES: Readonly<Record<string, number>> = { b: 1, h: 2, l: 8, t: 8, i: 4 };
const INTEGER_MAX = 32;

interface Item {
  readonly option: string;
  readonly size: number;
  readonly isLittle: boolean;
  /** How many bytes go before, so that it is aligned. */
  readonly padding: number;
}

/** The items of a format, as far as their sizes are known from it. */
class Format {
  #at = 0;
  #isLittle = true;
  #alignment = 1;

  constructor(
    private readonly args: Arguments,
    private readonly text: string,
  ) {}

  /** @param total  how many bytes were before */
  next(total: number): Item | undefined {
    for (;;) {
      const option = this.text[this.#at++];
      if (option === undefined) return undefined;
      if (option === ' ') continue;
      if (option === '<' || option === '>' || option === '=') this.#isLittle = option !== '>';
      else if (option === '!') this.#alignment = this.#number(8);
      else return this.#item(option, total);
    }
  }

  #item(option: string, total: number): Item {
    const size = this.#size(option);
    const isNumber = 'bBhHlLTiIfd'.includes(option);
    const align = isNumber ? Math.min(size, this.#alignment) : 1;
    const padding = align > 1 ? (align - (total & (align - 1))) & (align - 1) : 0;
    return { option, size, isLittle: this.#isLittle, padding };
  }

  #size(option: string): number {
    if (option === 'x') return 1;
    if (option === 'f') return 4;
    if (option === 'd') return 8;
    if (option === 's') return 0;
    if (option === 'c') return this.#number(1);
    const size = INTEGER_SIZES[option.toLowerCase()];
    if (size === undefined) return this.args.fail(1, `invalid format option '${option}'`);
    if (option !== 'i' && option !== 'I') return size;
    const given = this.#number(size);
    if (given > INTEGER_MAX) {
      this.args.runtime.fail(`integral size ${given} is larger than limit of ${INTEGER_MAX}`);
    }
    return given;
  }

  #number(missing: number): number {
    const digits = /^\d+/.exec(this.text.slice(this.#at))?.[0];
    if (digits === undefined) return missing;
    this.#at += digits.length;
    if (Number(digits) > 2 ** 31 - 1) this.args.runtime.fail('integral size overflow');
    return Number(digits);
  }
}

function packInteger(value: number, { size, isLittle }: Item): string {
  const rest = Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  let bits = BigInt.asUintN(8 * size, rest);
  const bytes: number[] = [];
  for (let i = 0; i < size; i++) {
    bytes.push(Number(bits & 255n));
    bits >>= 8n;
  }
  if (!isLittle) bytes.reverse();
  return String.fromCharCode(...bytes);
}

function packFloat(value: number, { size, isLittle }: Item): string {
  const buffer = Buffer.alloc(size);
  // The bits of NaN are not the same everywhere.
  if (Number.isNaN(value)) buffer.set(size === 4 ? [0xc0, 0xff] : [0xf8, 0xff], size - 2);
  else if (size === 4) buffer.writeFloatLE(value);
  else buffer.writeDoubleLE(value);
  if (!isLittle) buffer.reverse();
  return buffer.toString('latin1');
}

function pack(args: Arguments): string {
  const format = new Format(args, args.string(1));
  let result = '';
  let position = 1;
  for (let item = format.next(0); item !== undefined; item = format.next(result.length)) {
    args.runtime.spend(1);
    result += '\0'.repeat(item.padding);
    if (item.option === 'x') result += '\0';
    else if (item.option === 's') result += `${args.string(++position)}\0`;
    else if (item.option === 'c') {
      const text = args.string(++position);
      const size = item.size === 0 ? text.length : item.size;
      if (text.length < size) args.fail(position, 'string too short');
      result += text.slice(0, size);
    } else if (item.option === 'f' || item.option === 'd') {
      result += packFloat(args.number(++position), item);
    } else result += packInteger(args.number(++position), item);
  }
  return result;
}

function unpackNumber(bytes: Buffer, { option, size, isLittle }: Item): number {
  const little = Buffer.from(bytes);
  if (!isLittle) little.reverse();
  if (option === 'f') return little.readFloatLE();
  if (option === 'd') return little.readDoubleLE();
  let value = 0n;
  for (let i = size - 1; i >= 0; i--) value = (value << 8n) | BigInt(little[i]);
  const bits = 8 * Math.min(size, 8);
  const isSigned = option === option.toLowerCase();
  return Number(isSigned ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value));
}

function unpack(args: Arguments): readonly LuaValue[] {
  const { runtime } = args;
  const format = new Format(args, args.string(1));
  const data = Buffer.from(args.string(2), 'latin1');
  let at = args.integer(3, 1) - 1;
  if (at < 0) args.fail(3, 'offset must be 1 or greater');
  const values: LuaValue[] = [];
  for (let item = format.next(at); item !== undefined; item = format.next(at)) {
    runtime.spend(1);
    if (values.length >= RESULTS_MAX) runtime.fail('too many results to unpack');
    at += item.padding;
    let { size } = item;
    if (item.option === 'c' && size === 0) {
      const length = values.pop();
      if (typeof length !== 'number') return runtime.fail("format 'c0' needs a previous size");
      if (!Number.isInteger(length) || length < 0) args.fail(2, 'data string too short');
      size = length;
    }
    if (item.option === 's') {
      const end = data.indexOf(0, at);
      if (end < 0) runtime.fail('unfinished string in data');
      values.push(data.toString('latin1', at, end));
      at = end + 1;
      continue;
    }
    if (at + size > data.length) args.fail(2, 'data string too short');
    const bytes = data.subarray(at, at + size);
    at += size;
    if (item.option === 'c') values.push(bytes.toString('latin1'));
    else if (item.option !== 'x') values.push(unpackNumber(bytes, item));
  }
  return [...values, at + 1];
}

function size(args: Arguments): number {
  const format = new Format(args, args.string(1));
  let total = 0;
  for (let item = format.next(0); item !== undefined; item = format.next(total)) {
    args.runtime.spend(1);
    if (item.option === 's') args.fail(1, 'variable-size format in struct.size');
    if (item.option === 'c' && item.size === 0) {
      args.fail(1, 'variable-length format in struct.size');
    }
    total += item.padding + item.size;
  }
  return total;
}

export function structLibrary(runtime: Runtime): LuaTable {
  return library(runtime, { pack, unpack, size });
}
