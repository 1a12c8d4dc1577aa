/** Numbers as texts: what C's printf and strtod do. */

/** As `%.<precision>g`. */
export function formatG(value: number, precision: number, keepsZeros = false): string {
  const special = formatSpecial(value);
  if (special !== undefined) return special;
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const digits = Math.max(precision, 1);
  const [mantissa, exponent] = value.toExponential(digits - 1).split('e');
  const e = Number(exponent);
  const trim = (text: string): string =>
    keepsZeros || !text.includes('.') ? text : text.replace(/\.?0+$/, '');
  if (e < -4 || e >= digits) return `${trim(mantissa)}e${exponentText(e)}`;
  // More digits than `toFixed` knows would be zeros, which no double has so far behind its first digit.
  return trim(value.toFixed(Math.min(100, Math.max(0, digits - 1 - e))));
}

/** As `%.<precision>e`. */
export function formatE(value: number, precision: number): string {
  const special = formatSpecial(value);
  if (special !== undefined) return special;
  const [mantissa, exponent] = value.toExponential(precision).split('e');
  const sign = Object.is(value, -0) ? '-' : '';
  return `${sign}${mantissa}e${exponentText(Number(exponent))}`;
}

/** As `%.<precision>f`. */
export function formatF(value: number, precision: number): string {
  const special = formatSpecial(value);
  if (special !== undefined) return special;
  if (Math.abs(value) >= 1e21) {
    const integer = BigInt(value).toString();
    return precision > 0 ? `${integer}.${'0'.repeat(precision)}` : integer;
  }
  const text = tied(value, precision).toFixed(precision);
  return Object.is(value, -0) || (value < 0 && !text.startsWith('-')) ? `-${text}` : text;
}

/** What is exactly between two texts goes to the even one; `toFixed` would take the larger one. */
function tied(value: number, precision: number): number {
  const factor = 10 ** precision;
  const scaled = value * factor;
  if (Math.abs(scaled) > 2 ** 51 || Math.abs(scaled % 1) !== 0.5 || scaled / factor !== value) {
    return value;
  }
  const floor = Math.floor(scaled);
  return (floor % 2 === 0 ? floor : floor + 1) / factor;
}

function formatSpecial(value: number): string | undefined {
  // Where scripts get it from, 0/0, it has a sign.
  if (Number.isNaN(value)) return '-nan';
  if (value === Infinity) return 'inf';
  return value === -Infinity ? '-inf' : undefined;
}

function exponentText(exponent: number): string {
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  return `${exponent < 0 ? '-' : '+'}${digits}`;
}

export function numberToString(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e14) return value === 0 ? '0' : String(value);
  return formatG(value, 14);
}

// In one way only: otherwise a long text that is no number would take quadratic time.
const DECIMAL = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;
const HEXADECIMAL = /^([-+]?)0[xX]([0-9a-fA-F]+)$/;
const SPACES = ' \t\n\v\f\r';
const WORD = /^([-+]?)(inf|infinity|nan)$/i;

/** @returns undefined if it is not a number */
export function parseNumber(text: string): number | undefined {
  let from = 0;
  let to = text.length;
  while (from < to && SPACES.includes(text[from])) from++;
  while (to > from && SPACES.includes(text[to - 1])) to--;
  const trimmed = text.slice(from, to);
  if (DECIMAL.test(trimmed)) return Number(trimmed);
  const hexadecimal = HEXADECIMAL.exec(trimmed);
  if (hexadecimal !== null) {
    const value = Number(`0x${hexadecimal[2]}`);
    return hexadecimal[1] === '-' ? -value : value;
  }
  const word = WORD.exec(trimmed);
  if (word === null) return undefined;
  if (word[2].toLowerCase() === 'nan') return NaN;
  return word[1] === '-' ? -Infinity : Infinity;
}

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';

/** For `tonumber` with a base. */
export function parseInteger(text: string, base: number): number | undefined {
  const match = /^[ \t\n\v\f\r]*([-+]?)([0-9a-z]+)[ \t\n\v\f\r]*$/i.exec(text);
  if (match === null) return undefined;
  const digits = base === 16 ? match[2].replace(/^0x(?=.)/i, '') : match[2];
  let value = 0;
  for (const character of digits.toLowerCase()) {
    const digit = DIGITS.indexOf(character);
    if (digit >= base) return undefined;
    value = value * base + digit;
  }
  return match[1] === '-' ? -value : value;
}
