/**
 * Numbers with 64 bits of precision, as C's `long double` is on x86: INCRBYFLOAT and HINCRBYFLOAT of Redis add in this form, and print 17
 * digits after the point. With doubles, 3.0 + 1.1 would not give 4.1.
 */

import type { Bytes } from '../resp/reply.js';

/** `mantissa` times 2 to the power of `exponent`. */
export interface LongDouble {
  readonly mantissa: bigint;
  readonly exponent: number;
}

const PRECISION = 64;
/** Of the smallest number above zero. */
const EXPONENT_MIN = -16_445;
/** All numbers are below 2 to the power of this. */
const EXPONENT_END = 16_384;
/** Decimal numbers beyond 10 to the power of this, or minus this, need not be looked at more closely. */
const DECIMAL_MAX = 5_000;

/** Redis reads no longer ones. */
const TEXT_MAX = 5_119;

const INFINITY: LongDouble = { mantissa: 1n, exponent: Infinity };
const DECIMAL = /^([+-]?)([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]+))?$/i;
const HEXADECIMAL = /^([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?[0-9]+))?$/i;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;

/** @returns undefined if it is not a number, or if it is too large or too small for this form */
export function parseLongDouble(text: Bytes): LongDouble | undefined {
  if (text.length > TEXT_MAX) return undefined;
  if (INFINITE.test(text)) return text[0] === '-' ? negated(INFINITY) : INFINITY;
  const decimal = DECIMAL.exec(text);
  const match = decimal ?? HEXADECIMAL.exec(text);
  if (match === null) return undefined;
  const [, sign, whole, fraction, power = '0'] = match;
  if (whole.length + fraction.length === 0) return undefined;
  const digits = `${whole}${fraction}`;
  const magnitude = decimal
    ? fromDecimal(BigInt(digits), Number(power) - fraction.length)
    : rounded(BigInt(`0x${digits}`), Number(power) - 4 * fraction.length, false);
  const isLost = magnitude.mantissa === 0n && /[1-9a-f]/i.test(digits);
  if (isLost || magnitude.exponent === Infinity) return undefined;
  return sign === '-' ? negated(magnitude) : magnitude;
}

/** @returns undefined if the sum is not finite */
export function sumOf(a: LongDouble, b: LongDouble): LongDouble | undefined {
  if (a.exponent === Infinity || b.exponent === Infinity) return undefined;
  const exponent = Math.min(a.exponent, b.exponent);
  const mantissa = aligned(a, exponent) + aligned(b, exponent);
  const magnitude = rounded(mantissa < 0n ? -mantissa : mantissa, exponent, false);
  if (magnitude.exponent === Infinity) return undefined;
  return mantissa < 0n ? negated(magnitude) : magnitude;
}

/** With up to 17 digits after the point, without zeros at the end. */
export function formatLongDouble({ mantissa, exponent }: LongDouble): Bytes {
  const magnitude = mantissa < 0n ? -mantissa : mantissa;
  const scaled = magnitude * 10n ** 17n;
  const units = exponent >= 0 ? scaled << BigInt(exponent) : halfToEven(scaled, -exponent, false);
  const digits = units.toString().padStart(18, '0');
  const text = `${digits.slice(0, -17)}.${digits.slice(-17)}`.replace(/\.?0+$/, '');
  return mantissa < 0n && text !== '0' ? `-${text}` : text;
}

function negated({ mantissa, exponent }: LongDouble): LongDouble {
  return { mantissa: -mantissa, exponent };
}

function aligned({ mantissa, exponent }: LongDouble, to: number): bigint {
  return mantissa << BigInt(exponent - to);
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

function fromDecimal(digits: bigint, power: number): LongDouble {
  if (digits === 0n) return { mantissa: 0n, exponent: 0 };
  const size = digits.toString().length + power;
  if (size > DECIMAL_MAX) return INFINITY;
  if (size < -DECIMAL_MAX) return { mantissa: 0n, exponent: 0 };
  if (power >= 0) return rounded(digits * 10n ** BigInt(power), 0, false);
  const divisor = 10n ** BigInt(-power);
  const shift = Math.max(0, PRECISION + 2 + bitLength(divisor) - bitLength(digits));
  const numerator = digits << BigInt(shift);
  return rounded(numerator / divisor, -shift, numerator % divisor !== 0n);
}

/** @param hasMore  whether the exact number is a little larger, by less than one unit */
function rounded(magnitude: bigint, exponent: number, hasMore: boolean): LongDouble {
  if (magnitude === 0n) return { mantissa: 0n, exponent: 0 };
  const end = bitLength(magnitude) + exponent;
  if (end > EXPONENT_END) return INFINITY;
  if (end < EXPONENT_MIN) return { mantissa: 0n, exponent: 0 };
  const drop = Math.max(bitLength(magnitude) - PRECISION, EXPONENT_MIN - exponent);
  const mantissa = drop <= 0 ? magnitude : halfToEven(magnitude, drop, hasMore);
  const atExponent = drop <= 0 ? exponent : exponent + drop;
  if (mantissa === 0n) return { mantissa, exponent: 0 };
  return bitLength(mantissa) + atExponent > EXPONENT_END
    ? INFINITY
    : { mantissa, exponent: atExponent };
}

/** Divides by 2 to the power of `bits`, and rounds: to the even one of two that are equally near. */
function halfToEven(value: bigint, bits: number, hasMore: boolean): bigint {
  const quotient = value >> BigInt(bits);
  const twice = (value - (quotient << BigInt(bits))) << 1n;
  const unit = 1n << BigInt(bits);
  const isAbove = twice > unit || (twice === unit && (hasMore || (quotient & 1n) === 1n));
  return isAbove ? quotient + 1n : quotient;
}
