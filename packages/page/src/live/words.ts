/** Numbers and times as the page shows them. */

const DIGITS = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const PERCENT = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 0 });

export function count(value: number): string {
  return DIGITS.format(value);
}

export function percent(part: number): string {
  return PERCENT.format(part);
}

/** `45 µs` */
export function duration(ns: number): string {
  if (ns < 1000) return `${ns} ns`;
  if (ns < 1e6) return `${figures(ns / 1000)} µs`;
  return ns < 1e9 ? `${figures(ns / 1e6)} ms` : `${figures(ns / 1e9)} s`;
}

function figures(value: number): string {
  return value < 10 ? value.toFixed(1) : count(value);
}

/** `12:31:05` */
export function clock(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** `1 group`, `2 groups` */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}
