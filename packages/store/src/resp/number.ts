/** Floating-point numbers as Redis 7.0 prints them: with 17 digits, as `%.17g` of C does. */

export function formatDouble(value: number): string {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? '-0' : `${value}`;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const [digits, exponent] = value.toExponential(16).split('e');
  const power = Number(exponent);
  if (power < -4 || power >= 17) {
    const sign = power < 0 ? '-' : '+';
    return `${withoutZeros(digits)}e${sign}${`${Math.abs(power)}`.padStart(2, '0')}`;
  }
  return withoutZeros(value.toFixed(16 - power));
}

/** Without zeros at the end of the fraction. */
function withoutZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** As `formatDouble` prints it, or any client. */
export function parseDouble(text: string): number {
  if (/^[+-]?inf$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return /^-?nan$/i.test(text) ? Number.NaN : Number(text);
}
