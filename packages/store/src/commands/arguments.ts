/** Arguments of commands as Redis reads them, and the errors that it has for them. */

import { type Bytes, ErrorReply } from '../resp/reply.js';

export const NOT_AN_INTEGER = 'ERR value is not an integer or out of range';
export const NOT_A_FLOAT = 'ERR value is not a valid float';
export const NO_SUCH_KEY = 'ERR no such key';
export const WOULD_OVERFLOW = 'ERR increment or decrement would overflow';
export const OUT_OF_RANGE = 'ERR value is out of range';

export const INTEGER_MAX = 2n ** 63n - 1n;
export const INTEGER_MIN = -(2n ** 63n);

export function syntaxError(): ErrorReply {
  return new ErrorReply('ERR syntax error');
}

/** @param name  as in the table: a subcommand is `object|encoding` */
export function wrongArity(name: string): ErrorReply {
  return new ErrorReply(`ERR wrong number of arguments for '${name}' command`);
}

/**
 * @param container  the command that has the subcommand, in upper case
 * @param subcommand  in lower case: neither shards nor handlers know how the client has written it
 */
export function badSubcommand(container: string, subcommand: string): ErrorReply {
  return new ErrorReply(
    `ERR unknown subcommand or wrong number of arguments for '${subcommand}'. Try ${container} HELP.`,
  );
}

/** No spaces, no plus sign, no zeros in front. */
const INTEGER = /^(?:0|-?[1-9][0-9]{0,18})$/;

/**
 * An integer of 64 bits. Beyond 2^53 it is a bigint.
 * @returns undefined if it is none
 */
export function parseInteger(arg: Bytes): number | bigint | undefined {
  if (!INTEGER.test(arg)) return undefined;
  const value = Number(arg);
  if (Number.isSafeInteger(value)) return value;
  const big = BigInt(arg);
  return big > INTEGER_MAX || big < INTEGER_MIN ? undefined : big;
}

/** As `parseInteger`, with an error if it is none. */
export function exactInteger(arg: Bytes, message = NOT_AN_INTEGER): number | bigint {
  const value = parseInteger(arg);
  if (value === undefined) throw new ErrorReply(message);
  return value;
}

/** For counts and positions: beyond 2^53 it is only nearly the integer. */
export function integer(arg: Bytes, message = NOT_AN_INTEGER): number {
  return Number(exactInteger(arg, message));
}

/** @returns a number if it is safe as one */
export function narrowed(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

const DECIMAL = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const INFINITE = /^[+-]?inf(?:inity)?$/i;
const HEXADECIMAL = /^([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?[0-9]+))?$/i;

/**
 * A double, as C's `strtod` reads it. What is too large for a double, or so small that it becomes zero, is none.
 * @returns undefined if it is none
 */
export function parseFloat64(arg: Bytes): number | undefined {
  if (DECIMAL.test(arg)) {
    const value = Number(arg);
    if (!Number.isFinite(value)) return undefined;
    return value === 0 && /^[^eE]*[1-9]/.test(arg) ? undefined : value;
  }
  if (INFINITE.test(arg)) return arg[0] === '-' ? -Infinity : Infinity;
  const hex = HEXADECIMAL.exec(arg);
  if (hex === null || hex[2].length + hex[3].length === 0) return undefined;
  const magnitude =
    Number(BigInt(`0x${hex[2]}${hex[3]}`)) * 2 ** (Number(hex[4] ?? 0) - 4 * hex[3].length);
  if (!Number.isFinite(magnitude)) return undefined;
  return hex[1] === '-' ? -magnitude : magnitude;
}

export function float(arg: Bytes, message = NOT_A_FLOAT): number {
  const value = parseFloat64(arg);
  if (value === undefined) throw new ErrorReply(message);
  return value;
}

/** An option in lower case. */
export function option(arg: Bytes): string {
  return arg.toLowerCase();
}

/** `[MATCH pattern] [COUNT count] [TYPE type]`, for SCAN and its relatives. */
export interface ScanOptions {
  readonly match: Bytes | undefined;
  readonly count: number;
  readonly type: Bytes | undefined;
}

/** @param from  the position of the first option */
export function scanOptions(args: readonly Bytes[], from: number, typed = false): ScanOptions {
  let match: Bytes | undefined;
  let count = 10;
  let type: Bytes | undefined;
  for (let i = from; i < args.length; i += 2) {
    const name = option(args[i]);
    if (i + 1 === args.length) throw syntaxError();
    if (name === 'match') match = args[i + 1];
    else if (name === 'count') {
      count = integer(args[i + 1]);
      if (count < 1) throw syntaxError();
    } else if (name === 'type' && typed) type = option(args[i + 1]);
    else throw syntaxError();
  }
  return { match, count, type };
}

/** The cursor of SCAN and its relatives: 64 bits, as C's `strtoul` reads them. */
export function scanCursor(arg: Bytes): bigint {
  const magnitude = /^(?:[+-]?[0-9]+)?$/.test(arg) ? BigInt(arg.replace(/^[+-]/, '')) : undefined;
  if (magnitude === undefined || magnitude >= 2n ** 64n) throw new ErrorReply('ERR invalid cursor');
  return BigInt.asUintN(64, arg[0] === '-' ? -magnitude : magnitude);
}

const OOM = "OOM command not allowed when used memory > 'maxmemory'.";

/** Memory is short. A transaction is refused as a whole. @param name  of the command */
export function outOfMemory(name: string): ErrorReply {
  const isTransaction = name === '.exec' || name === 'exec';
  return new ErrorReply(isTransaction ? `EXECABORT Transaction discarded because of: ${OOM}` : OOM);
}
