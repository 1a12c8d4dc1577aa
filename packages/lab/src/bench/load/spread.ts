/** Median, least and greatest value of several rounds of a measurement. */

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly greatest: number;
  readonly rounds: number;
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return {
    median: sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2,
    least: sorted[0],
    greatest: sorted.at(-1)!,
    rounds: sorted.length,
  };
}
