/** The highest value that at least `count` of the values reach. */
export function reachedBy(values: Float64Array, count: number): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value <= highest) continue;
    let reaching = 0;
    for (const other of values) if (other >= value) reaching++;
    if (reaching >= count) highest = value;
  }
  return highest;
}
