/** The position of a value on an axis, and the values that get a tick. */

export type ScaleKind = 'linear' | 'log';

export interface Scale {
  readonly ticks: readonly number[];
  /** Maps a value to a position on the page. */
  at(value: number): number;
}

export interface ScaleOptions {
  readonly kind: ScaleKind;
  /** The least and the greatest value to be shown. */
  readonly least: number;
  readonly greatest: number;
  /** The positions of both ends of the axis. */
  readonly from: number;
  readonly to: number;
  /** Replace the round numbers. The axis then ends at the values, not at ticks. */
  readonly ticks?: readonly number[];
}

const TICKS = 5;
/** An axis of more powers of ten has no ticks between them. */
const DECADES_MAX = 2;
/** Longer labels do not fit beside an axis. */
const COMPACT_FROM = 100_000;

export function scaleOf(options: ScaleOptions): Scale {
  return options.kind === 'log' ? logScale(options) : linearScale(options);
}

function linearScale({ least, greatest, from, to, ticks }: ScaleOptions): Scale {
  const chosen = ticks ?? roundTicks(least, greatest, TICKS);
  const low = ticks === undefined ? chosen[0] : least;
  const high = ticks === undefined ? chosen.at(-1)! : greatest;
  const place = (to - from) / (high - low || 1);
  return { ticks: chosen, at: (value) => from + (value - low) * place };
}

function logScale({ least, greatest, from, to, ticks }: ScaleOptions): Scale {
  const chosen = ticks ?? logTicks(least, greatest);
  const low = Math.log(ticks === undefined ? chosen[0] : least);
  const high = Math.log(ticks === undefined ? chosen.at(-1)! : greatest);
  const place = (to - from) / (high - low || 1);
  return { ticks: chosen, at: (value) => from + (Math.log(value) - low) * place };
}

/** About `count` ticks around both values, at multiples of 1, 2 or 5 times a power of ten. */
export function roundTicks(least: number, greatest: number, count: number): number[] {
  const span = greatest - least || Math.abs(greatest) || 1;
  const step = roundStep(span / count);
  const first = Math.floor(least / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(greatest / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => tidy((first + i) * step));
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= rough * (1 - 1e-9))!;
  return factor * power;
}

/** Powers of ten around both values. If there are few, also 2 and 5 times these, but no more than needed. */
export function logTicks(least: number, greatest: number): number[] {
  const first = Math.floor(Math.log10(least) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(greatest) - 1e-9));
  const powers = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  if (Math.log10(greatest / least) > DECADES_MAX) return powers.map(tidy);
  const all = powers.flatMap((power) => [power, 2 * power, 5 * power]).map(tidy);
  const low = all.findLastIndex((tick) => tick <= least * (1 + 1e-9));
  const high = all.findIndex((tick) => tick >= greatest * (1 - 1e-9));
  return all.slice(low, Math.max(high, low + 1) + 1);
}

/** Removes rounding errors of binary fractions. */
function tidy(value: number): number {
  return Number(value.toPrecision(12));
}

/** `1,500`, `0.05`, `12`, `40M` */
export function tickLabel(value: number): string {
  return value.toLocaleString('en', {
    maximumSignificantDigits: 6,
    notation: value >= COMPACT_FROM ? 'compact' : 'standard',
  });
}
