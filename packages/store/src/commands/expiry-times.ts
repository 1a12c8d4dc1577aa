/** Expiry times in arguments: in seconds or milliseconds, from now or since 1970. */

import { type Bytes, ErrorReply } from '../resp/reply.js';
import { exactInteger, INTEGER_MAX, INTEGER_MIN } from './arguments.js';

export interface TimeForm {
  readonly unitMs: 1 | 1000;
  readonly isRelative: boolean;
}

/** The forms, by the options of SET and GETEX. */
export const TIME_FORMS: Readonly<Record<string, TimeForm | undefined>> = {
  ex: { unitMs: 1000, isRelative: true },
  px: { unitMs: 1, isRelative: true },
  exat: { unitMs: 1000, isRelative: false },
  pxat: { unitMs: 1, isRelative: false },
};

/** Up to here, sums and products of times are exact as numbers. */
const SMALL = 2 ** 42;

/** @returns milliseconds since 1970 */
export function expiryTime(arg: Bytes, form: TimeForm, nowMs: number, command: string): number {
  const time = exactInteger(arg);
  const baseMs = form.isRelative ? nowMs : 0;
  if (typeof time === 'number' && Math.abs(time) < SMALL) return time * form.unitMs + baseMs;
  const unitless = BigInt(time) * BigInt(form.unitMs);
  const timeMs = unitless + BigInt(baseMs);
  if (unitless < INTEGER_MIN || unitless > INTEGER_MAX || timeMs > INTEGER_MAX) {
    throw invalidExpireTime(command);
  }
  return Number(timeMs);
}

/** As `expiryTime`, for commands that need a time above 0. */
export function positiveExpiryTime(
  arg: Bytes,
  form: TimeForm,
  nowMs: number,
  command: string,
): number {
  if (exactInteger(arg) <= 0) throw invalidExpireTime(command);
  return expiryTime(arg, form, nowMs, command);
}

function invalidExpireTime(command: string): ErrorReply {
  return new ErrorReply(`ERR invalid expire time in '${command}' command`);
}
