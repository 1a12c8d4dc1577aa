/** Numbers and lists in sentences. A non-breaking space separates a number and its unit. */

import type { Rung } from '../load/saturation.js';

const SPACE = '\u00a0';

/** `3.4×`, `0.52×`, `120×` */
export function times(ratio: number): string {
  const digits = ratio >= 10 ? 0 : ratio >= 1 ? 1 : 2;
  return `${ratio.toFixed(digits)}×`;
}

/** `2.1 µs` */
export function duration(ns: number): string {
  if (ns >= 1e6) return `${significant(ns / 1e6)}${SPACE}ms`;
  return ns >= 1000 ? `${significant(ns / 1000)}${SPACE}µs` : `${significant(ns)}${SPACE}ns`;
}

/** `210 k/s` */
export function rate(perSecond: number): string {
  if (perSecond >= 1e6) return `${significant(perSecond / 1e6)}${SPACE}M/s`;
  return perSecond >= 1000
    ? `${significant(perSecond / 1000)}${SPACE}k/s`
    : `${significant(perSecond)}/s`;
}

export function significant(value: number): string {
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString('en', { maximumFractionDigits: 3 });
}

/** `32 B`, `4 KiB` */
export function bytes(count: number): string {
  return count >= 1024 ? `${count / 1024}${SPACE}KiB` : `${count}${SPACE}B`;
}

/** `4 × 512` */
export function loadOf({ clients, outstanding }: Rung): string {
  return [clients, '×', outstanding].join(SPACE);
}

/** `1`, `1 and 2`, `1, 2 and 4` */
export function listed(items: readonly (string | number)[]): string {
  return items.length < 2
    ? items.join('')
    : `${items.slice(0, -1).join(', ')} and ${items[items.length - 1]}`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** With a capital first letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
