/** The highest value that at least `count` of the values reach. */
export function reachedBy(values: Float64Array, count: number): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value <= highest) continue;
    let reaching = 0;
    for (let j = 0; j < values.length; j++) if (values[j] >= value) reaching++;
    if (reaching >= count) highest = value;
  }
  return highest;
}
