/** Formats keys, numbers and times for the output of the import. */

import type { Bytes } from '../resp/reply.js';

const SHOWN_MAX = 80;

/** A key, in quotes. Bytes that cannot be printed are escaped, and what is too long is cut off. */
export function shown(key: Bytes): string {
  const text = Buffer.from(key.slice(0, SHOWN_MAX), 'latin1').toString('utf8');
  // Where the key was cut, or where it is not UTF-8.
  const printable = text.includes('\ufffd') ? key.slice(0, SHOWN_MAX) : text;
  const escaped = JSON.stringify(printable).replace(
    /[\x7f-\x9f]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16)}`,
  );
  return key.length > SHOWN_MAX ? `${escaped} …` : escaped;
}

/** `1 key`, `2,000 keys`. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

export function size(bytes: number): string {
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${UNITS[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
