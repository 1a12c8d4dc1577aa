/** The library `bit`: operations on 32 bits. */

import { type Arguments, library, type Native } from './arguments.js';
import type { Runtime } from './runtime.js';
import type { LuaTable } from './values.js';

/** Numbers beyond 32 bits lose the upper ones. */
function bits(args: Arguments, position: number): number {
  const value = args.number(position);
  if (Math.abs(value) < 2 ** 31) return Math.round(value) | 0;
  // Rounded to the nearest even number, as the processor does.
  const floor = Math.floor(value);
  const isUp = value - floor > 0.5 || (value - floor === 0.5 && floor % 2 !== 0);
  return Number.isFinite(value) ? Number(BigInt.asIntN(32, BigInt(isUp ? floor + 1 : floor))) : 0;
}

function all(combine: (a: number, b: number) => number): Native {
  return (args) => {
    let result = bits(args, 1);
    for (let i = 2; i <= args.count; i++) result = combine(result, bits(args, i));
    return result;
  };
}

function shift(move: (value: number, count: number) => number): Native {
  return (args) => move(bits(args, 1), bits(args, 2) & 31) | 0;
}

export function bitLibrary(runtime: Runtime): LuaTable {
  return library(runtime, {
    arshift: shift((value, count) => value >> count),
    band: all((a, b) => a & b),
    bnot: (args) => ~bits(args, 1),
    bor: all((a, b) => a | b),
    bswap: (args) => {
      const value = bits(args, 1);
      return (value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24);
    },
    bxor: all((a, b) => a ^ b),
    lshift: shift((value, count) => value << count),
    rol: shift((value, count) => (value << count) | (value >>> (32 - count || 32))),
    ror: shift((value, count) => (value >>> count) | (value << (32 - count || 32))),
    rshift: shift((value, count) => value >>> count),
    tobit: (args) => bits(args, 1),
    tohex: (args) => {
      const digits = bits(args, 1) >>> 0;
      const wanted = args.at(2) === undefined ? 8 : bits(args, 2);
      const count = Math.min(8, Math.abs(wanted));
      const text = digits
        .toString(16)
        .padStart(8, '0')
        .slice(8 - count);
      return wanted < 0 ? text.toUpperCase() : text;
    },
  });
}
