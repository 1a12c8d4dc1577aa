/** Parses options that are numbers. */
import { InvalidArgumentError } from 'commander';

export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Expected an integer from ${least} to ${most}.`);
  };
}

/** Does not check the range: `resolveConfig` does. */
export function anyNumber(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!Number.isNaN(value)) return value;
  throw new InvalidArgumentError('Expected a number.');
}

/** The longest that a timer can wait. */
export const milliseconds: (text: string) => number = integer(1, 2 ** 31 - 1);

/** A duration of a measurement. */
export function seconds(text: string): number {
  const value = Number(text);
  if (value > 0 && value <= 3600) return value;
  throw new InvalidArgumentError('Expected a number of seconds, more than 0.');
}
