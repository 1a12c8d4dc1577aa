/**
 * A latency histogram in shared words. One thread records; any thread or process that maps the words can read at
 * the same time. Hosts record into histograms of the arena; tools read, merge and subtract them.
 *
 *   bucket    0 … 31      32 … 47      48 … 63      64 … 79           608 … 623
 *   width     1 ns        2 ns         4 ns         8 ns        …     2³⁷ ns
 *   from      0 ns        32 ns        64 ns        128 ns            2⁴¹ ns (37 minutes; until 73)
 *
 * The state is one count for each bucket. Count, mean, percentiles and maximum are derived from these counts, so
 * they agree with each other even if they are read while values arrive. A value is reported as the middle of its
 * bucket: at most 1/32 (3.2 %) off, and exact below 32 ns.
 *
 * Invariants: a bucket's count takes two words, and neither it nor a sum of them can overflow before
 * 2⁵³. `low` is the count modulo 2³², `high` is the count divided by 2³¹: the one bit that they share
 * tells a reader that came between the two stores that `high` is behind.
 */

/** Buckets for each doubling of the value, and the power of two that this is. */
const PER_DOUBLING = 16;
const PER_DOUBLING_BITS = 4;

/** Values of 73 minutes and more all count into the last bucket. */
const LIMIT_NS = 2 ** 42;
const BUCKETS = PER_DOUBLING * (42 - PER_DOUBLING_BITS + 1);

/** A larger value does not fit into a signed word, so it is first shifted right by this many bits. */
const WORD_LIMIT = 2 ** 31;
const SHIFT_BITS = 16;

const HALF = 2 ** 31;
const BELOW_HALF = HALF - 1;

export class Histogram {
  /** The size of a histogram in words: a multiple of a cache line. */
  static readonly words: number = 2 * BUCKETS;

  /** A private histogram: a target of `add`, or a difference. */
  static empty(): Histogram {
    return new Histogram(new Int32Array(Histogram.words), 0);
  }

  private readonly highs: number;

  /** A view of words that are zero or already hold a histogram. */
  constructor(
    private readonly memory: Int32Array,
    private readonly at: number,
  ) {
    if (at < 0 || at + Histogram.words > memory.length) {
      throw new RangeError(
        `a histogram takes ${Histogram.words} words: there is no room for it at ${at} of ${memory.length}`,
      );
    }
    this.highs = at + BUCKETS;
  }

  /** Records one value. Negative values (clocks of two cores may differ slightly) and NaN count as 0. */
  record(valueNs: number): void {
    const bucket = bucketOf(valueNs);
    const place = this.at + bucket;
    const low = (this.memory[place] + 1) | 0;
    this.memory[place] = low;
    if ((low & BELOW_HALF) === 0) this.carry(bucket);
  }

  /** How many values have been recorded. */
  get count(): number {
    let count = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) count += this.countOf(bucket);
    return count;
  }

  /** NaN if there are no values. */
  get mean(): number {
    let count = 0;
    let sum = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const here = this.countOf(bucket);
      count += here;
      sum += here * middleOf(bucket);
    }
    return sum / count;
  }

  /** NaN if there are no values. */
  get max(): number {
    for (let bucket = BUCKETS - 1; bucket >= 0; bucket--) {
      if (this.countOf(bucket) > 0) return middleOf(bucket);
    }
    return Number.NaN;
  }

  /**
   * The smallest value that at least `percent` % of all values do not exceed. NaN if there are no values.
   * @param percent  0 to 100
   */
  percentile(percent: number): number {
    const rank = Math.max(1, Math.ceil((this.count * percent) / 100));
    let below = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      below += this.countOf(bucket);
      if (below >= rank) return middleOf(bucket);
    }
    // There are no values, or the writer reset them after they were counted.
    return this.max;
  }

  /** Adds the values of another histogram. Nobody else may read this one meanwhile. */
  add(other: Histogram): void {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const more = other.countOf(bucket);
      if (more > 0) this.set(bucket, this.countOf(bucket) + more);
    }
  }

  /** A private copy of the values recorded so far. */
  snapshot(): Histogram {
    const copy = Histogram.empty();
    copy.add(this);
    return copy;
  }

  /**
   * The values recorded since `earlier`, a snapshot of the same words. After a reset: the values since the reset.
   */
  since(earlier: Histogram): Histogram {
    const now = this.snapshot();
    const difference = Histogram.empty();
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const more = now.countOf(bucket) - earlier.countOf(bucket);
      if (more < 0) return now;
      if (more > 0) difference.set(bucket, more);
    }
    return difference;
  }

  /** Forgets all values. Only the recording thread may call it; readers use `since`. */
  reset(): void {
    this.memory.fill(0, this.at, this.at + Histogram.words);
  }

  private countOf(bucket: number): number {
    // The high word is stored first, so it lags behind the low word by at most one and is never ahead.
    const high = Atomics.load(this.memory, this.highs + bucket);
    const low = Atomics.load(this.memory, this.at + bucket);
    const isBehind = (high & 1) !== low >>> 31;
    return (isBehind ? high + 1 : high) * HALF + (low & BELOW_HALF);
  }

  private set(bucket: number, count: number): void {
    this.memory[this.at + bucket] = count | 0;
    this.memory[this.highs + bucket] = Math.floor(count / HALF);
  }

  /** The low word has crossed 2³¹ or 2³². */
  private carry(bucket: number): void {
    Atomics.add(this.memory, this.highs + bucket, 1);
  }
}

function bucketOf(valueNs: number): number {
  if (valueNs < WORD_LIMIT) return valueNs > 0 ? bucketOfWord(valueNs | 0) : 0;
  if (valueNs < LIMIT_NS) {
    return bucketOfWord((valueNs / 2 ** SHIFT_BITS) | 0) + SHIFT_BITS * PER_DOUBLING;
  }
  return valueNs >= LIMIT_NS ? BUCKETS - 1 : 0;
}

/** The leading five bits choose the bucket: where the highest is, and the four behind it. */
function bucketOfWord(value: number): number {
  if (value < 2 * PER_DOUBLING) return value;
  const shift = 31 - PER_DOUBLING_BITS - Math.clz32(value);
  return shift * PER_DOUBLING + (value >>> shift);
}

function middleOf(bucket: number): number {
  if (bucket < 2 * PER_DOUBLING) return bucket;
  const doublings = Math.floor(bucket / PER_DOUBLING) - 1;
  const width = 2 ** doublings;
  return (PER_DOUBLING + (bucket % PER_DOUBLING)) * width + width / 2 - 1;
}
