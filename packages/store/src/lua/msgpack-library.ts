/** The library `cmsgpack`. */

import { type Arguments, library } from './arguments.js';
import { RESULTS_MAX, type Runtime } from './runtime.js';
import { LuaTable, type LuaValue } from './values.js';

/** Deeper tables become nil. */
const DEPTH_MAX = 16;
/** How deep what is unpacked may be. */
const NESTING_MAX = 200;

function bytes(size: number, write: (buffer: Buffer) => void): string {
  const buffer = Buffer.alloc(size);
  write(buffer);
  return buffer.toString('latin1');
}

function packNumber(value: number): string {
  // The bits of NaN are not the same everywhere.
  if (Number.isNaN(value)) return '\xcb\xff\xf8\0\0\0\0\0\0';
  if (!Number.isInteger(value) || Math.abs(value) >= 2 ** 63) {
    if (Math.fround(value) === value) return `\xca${bytes(4, (b) => b.writeFloatBE(value))}`;
    return `\xcb${bytes(8, (b) => b.writeDoubleBE(value))}`;
  }
  if (value >= 0) {
    if (value <= 0x7f) return String.fromCharCode(value);
    if (value <= 0xff) return `\xcc${bytes(1, (b) => b.writeUInt8(value))}`;
    if (value <= 0xffff) return `\xcd${bytes(2, (b) => b.writeUInt16BE(value))}`;
    if (value <= 0xffffffff) return `\xce${bytes(4, (b) => b.writeUInt32BE(value))}`;
    return `\xcf${bytes(8, (b) => b.writeBigUInt64BE(BigInt(value)))}`;
  }
  if (value >= -32) return String.fromCharCode(256 + value);
  if (value >= -128) return `\xd0${bytes(1, (b) => b.writeInt8(value))}`;
  if (value >= -32768) return `\xd1${bytes(2, (b) => b.writeInt16BE(value))}`;
  if (value >= -(2 ** 31)) return `\xd2${bytes(4, (b) => b.writeInt32BE(value))}`;
  return `\xd3${bytes(8, (b) => b.writeBigInt64BE(BigInt(value)))}`;
}

/** @param codes  for up to `small` elements, 8 bits (if there is one), 16 bits and 32 bits */
function header(
  count: number,
  codes: readonly [number, number, number?, number?, number?],
): string {
  const [fixed, small, code8, code16 = 0, code32 = 0] = codes;
  if (count < small) return String.fromCharCode(fixed | count);
  if (code8 !== undefined && code8 > 0 && count <= 0xff) return String.fromCharCode(code8, count);
  if (count <= 0xffff) {
    return String.fromCharCode(code16) + bytes(2, (b) => b.writeUInt16BE(count));
  }
  return String.fromCharCode(code32) + bytes(4, (b) => b.writeUInt32BE(count));
}

function isArray(entries: readonly (readonly [LuaValue, LuaValue])[]): boolean {
  let count = 0;
  let most = 0;
  for (const [key] of entries) {
    if (typeof key !== 'number' || key < 1 || !Number.isInteger(key)) return false;
    most = Math.max(most, key);
    count++;
  }
  return most === count;
}

function pack(runtime: Runtime, value: LuaValue, depth: number): string {
  runtime.spend(1);
  if (typeof value === 'string') {
    runtime.spendOn(value.length);
    return header(value.length, [0xa0, 32, 0xd9, 0xda, 0xdb]) + value;
  }
  if (typeof value === 'number') return packNumber(value);
  if (typeof value === 'boolean') return value ? '\xc3' : '\xc2';
  if (!(value instanceof LuaTable) || depth === DEPTH_MAX) return '\xc0';
  runtime.spend(10);
  const entries = [...runtime.entries(value)];
  const parts = isArray(entries)
    ? [
        header(entries.length, [0x90, 16, 0, 0xdc, 0xdd]),
        ...entries.map(([, item]) => pack(runtime, item, depth + 1)),
      ]
    : [
        header(entries.length, [0x80, 16, 0, 0xde, 0xdf]),
        ...entries.flat().map((item) => pack(runtime, item, depth + 1)),
      ];
  return parts.join('');
}

class Unpacker {
  readonly #buffer: Buffer;
  #nesting = 0;

  constructor(
    private readonly runtime: Runtime,
    text: string,
    public at: number,
  ) {
    this.#buffer = Buffer.from(text, 'latin1');
  }

  get isAtEnd(): boolean {
    return this.at >= this.#buffer.length;
  }

  #take(count: number): Buffer {
    if (this.at + count > this.#buffer.length) this.runtime.fail('Missing bytes in input.');
    this.at += count;
    return this.#buffer.subarray(this.at - count, this.at);
  }

  #size(bytes: number): number {
    return this.#take(bytes).readUIntBE(0, bytes);
  }

  next(): LuaValue {
    this.runtime.spend(1);
    const code = this.#take(1)[0];
    if (code <= 0x7f) return code;
    if (code >= 0xe0) return code - 256;
    if (++this.#nesting > NESTING_MAX)
      this.runtime.fail('Too many nested data structures in input.');
    const value = this.#value(code);
    this.#nesting--;
    return value;
  }

  #value(code: number): LuaValue {
    if (code <= 0x8f) return this.#map(code & 15);
    if (code <= 0x9f) return this.#array(code & 15);
    if (code <= 0xbf) return this.#take(code & 31).toString('latin1');
    return this.#long(code);
  }

  #long(code: number): LuaValue {
    switch (code) {
      case 0xc0:
        return undefined;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return this.#take(4).readFloatBE();
      case 0xcb:
        return this.#take(8).readDoubleBE();
      case 0xcc:
        return this.#size(1);
      case 0xcd:
        return this.#size(2);
      case 0xce:
        return this.#size(4);
      case 0xcf:
        return Number(this.#take(8).readBigUInt64BE());
      case 0xd0:
        return this.#take(1).readInt8();
      case 0xd1:
        return this.#take(2).readInt16BE();
      case 0xd2:
        return this.#take(4).readInt32BE();
      case 0xd3:
        return Number(this.#take(8).readBigInt64BE());
      case 0xc4:
      case 0xd9:
        return this.#take(this.#size(1)).toString('latin1');
      case 0xc5:
      case 0xda:
        return this.#take(this.#size(2)).toString('latin1');
      case 0xc6:
      case 0xdb:
        return this.#take(this.#size(4)).toString('latin1');
      case 0xdc:
        return this.#array(this.#size(2));
      case 0xdd:
        return this.#array(this.#size(4));
      case 0xde:
        return this.#map(this.#size(2));
      case 0xdf:
        return this.#map(this.#size(4));
      default:
        return this.runtime.fail('Bad data format in input.');
    }
  }

  #array(count: number): LuaTable {
    const items: LuaValue[] = [];
    for (let i = 0; i < count; i++) items.push(this.next());
    return LuaTable.of(items);
  }

  #map(count: number): LuaTable {
    const table = new LuaTable();
    for (let i = 0; i < count; i++) {
      const key = this.next();
      const value = this.next();
      if (key !== undefined && !Number.isNaN(key)) table.set(key, value);
    }
    return table;
  }
}

/** @param limit  how many values; 0: all */
function unpackSome(args: Arguments, limit: number, from: number): readonly LuaValue[] {
  const text = args.string(1);
  if (limit < 0 || from < 0)
    args.runtime.fail(`Invalid request to unpack with offset of ${from} and limit of ${limit}.`);
  if (from > text.length) {
    args.runtime.fail(`Start offset ${from} greater than input length ${text.length}.`);
  }
  const unpacker = new Unpacker(args.runtime, text, from);
  const values: LuaValue[] = [];
  while (!unpacker.isAtEnd && (limit === 0 || values.length < limit)) {
    if (values.length >= RESULTS_MAX) args.runtime.fail('too many results to unpack');
    values.push(unpacker.next());
  }
  return limit === 0 ? values : [unpacker.isAtEnd ? -1 : unpacker.at, ...values];
}

export function msgpackLibrary(runtime: Runtime): LuaTable {
  return library(runtime, {
    pack: (args) => {
      if (args.count === 0) args.fail(0, 'MessagePack pack needs input.');
      return args.values.map((value) => pack(runtime, value, 0)).join('');
    },
    unpack: (args) => unpackSome(args, 0, 0),
    unpack_one: (args) => unpackSome(args, 1, args.integer(2, 0)),
    unpack_limit: (args) => unpackSome(args, args.integer(2), args.integer(3, 0)),
  });
}
