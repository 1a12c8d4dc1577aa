/**
 * How long something takes, counted in buckets: four for each power of two of microseconds. So a percentile is at most a quarter
 * greater than the true one, or 1 µs.
 */

/** Above 2^27 µs, which is two minutes, everything is in the last bucket. */
export const POWER_MAX = 27;
const US_MAX = 2 ** POWER_MAX;

export class Latencies {
  count = 0;
  sumUs = 0;
  #maxUs = 0;
  /** Bucket 0 counts latencies of at most 1 µs; each other bucket, those between the bound of the previous bucket and its own. */
  readonly #buckets = new Float64Array(4 * (POWER_MAX - 1));

  record(us: number): void {
    this.count++;
    this.sumUs += us;
    if (us > this.#maxUs) this.#maxUs = us;
    this.#buckets[bucketOf(us)]++;
  }

  /** How many took at most 2^`power` µs, for a power of at least 2. */
  countUpTo(power: number): number {
    const end = Math.min(4 * (power - 1), this.#buckets.length);
    let count = 0;
    for (let i = 0; i < end; i++) count += this.#buckets[i];
    return count;
  }

  /** An upper bound in microseconds of this percentile; 0 if nothing was counted. */
  percentileUs(percent: number): number {
    const wanted = (this.count * percent) / 100;
    let count = 0;
    for (let i = 0; i < this.#buckets.length; i++) {
      count += this.#buckets[i];
      if (count > 0 && count >= wanted) return Math.min(boundOf(i), this.#maxUs);
    }
    return 0;
  }
}

function bucketOf(us: number): number {
  const below = Math.max(0, Math.min(Math.ceil(us), US_MAX) - 1);
  if (below < 4) return below;
  const octave = 31 - Math.clz32(below);
  return 4 * (octave - 1) + ((below >> (octave - 2)) & 3);
}

function boundOf(bucket: number): number {
  return bucket < 4 ? bucket + 1 : (5 + (bucket & 3)) * 2 ** ((bucket >> 2) - 1);
}
