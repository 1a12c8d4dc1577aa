/** Histograms against a sorted array, against Node's own, and read by one thread while another records. */
import { createHistogram } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Histogram } from '../../src/hosting/histogram.js';

const BUCKETS = Histogram.words / 2;
/** What the histogram promises, as a fraction of the value; we also said: below 4 %. */
const ERROR = 1 / 32;
const HOUR_NS = 3600e9;
const LIMIT_NS = 2 ** 42;
const PERCENTS = [0, 0.1, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99, 100];

/** Spread over all magnitudes, as latencies are. */
const latencies = fc
  .tuple(fc.integer({ min: 0, max: 41 }), fc.maxSafeNat())
  .map(([bits, random]) => 2 ** bits + (random % 2 ** bits));
const samples = fc.array(latencies, { minLength: 1, maxLength: 300 });
const percents = fc.oneof(
  fc.constantFrom(...PERCENTS),
  fc.double({ min: 0, max: 100, noNaN: true }),
);

function histogramOf(values: Iterable<number>): Histogram {
  const histogram = Histogram.empty();
  for (const value of values) histogram.record(value);
  return histogram;
}

/** The twin: the value of nearest rank in the sorted sample. */
function percentileOf(sample: readonly number[], percent: number): number {
  const sorted = [...sample].sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil((sorted.length * percent) / 100)) - 1];
}

function expectNear(actual: number, exact: number): void {
  expect(Math.abs(actual - exact)).toBeLessThanOrEqual(exact * ERROR);
}

function figuresOf(histogram: Histogram): number[] {
  return [
    histogram.count,
    histogram.mean,
    histogram.max,
    ...PERCENTS.map((p) => histogram.percentile(p)),
  ];
}

describe('one value', () => {
  test('is told to within 1/32, whatever its magnitude', () => {
    fc.assert(
      fc.property(latencies, (value) => {
        const histogram = histogramOf([value]);
        expect(histogram.count).toBe(1);
        for (const told of [histogram.mean, histogram.max, histogram.percentile(50)]) {
          expectNear(told, value);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('is exact below 32 ns, and over an hour is still told', () => {
    for (let value = 0; value < 32; value++) expect(histogramOf([value]).max).toBe(value);
    expectNear(histogramOf([HOUR_NS]).max, HOUR_NS);
    expectNear(histogramOf([LIMIT_NS - 1]).max, LIMIT_NS - 1);
  });

  test('never goes into a lower bucket than a smaller one; all buckets are used', () => {
    const edges = new Set<number>();
    for (let bits = 0; bits < 42; bits++) {
      for (let part = 0; part < 64; part++) edges.add(Math.floor(2 ** bits * (1 + part / 64)));
    }
    const told = [...edges].sort((a, b) => a - b).map((value) => histogramOf([value]).max);
    for (let i = 1; i < told.length; i++) expect(told[i]).toBeGreaterThanOrEqual(told[i - 1]);
    expect(new Set([0, ...told]).size).toBe(BUCKETS);
  });

  test('beyond every bucket counts as the greatest; what is none counts as zero', () => {
    for (const value of [LIMIT_NS, 1e300, Number.POSITIVE_INFINITY]) {
      expect(histogramOf([value]).max).toBe(histogramOf([LIMIT_NS - 1]).max);
    }
    for (const value of [0, -0, 0.9, -1, -1e300, Number.NEGATIVE_INFINITY, Number.NaN]) {
      expect(histogramOf([value]).max).toBe(0);
    }
  });
});

describe('many values', () => {
  test('agree with a sorted array', () => {
    fc.assert(
      fc.property(samples, percents, (sample, percent) => {
        const histogram = histogramOf(sample);
        expect(histogram.count).toBe(sample.length);
        expectNear(histogram.percentile(percent), percentileOf(sample, percent));
        expectNear(histogram.max, Math.max(...sample));
        expectNear(histogram.mean, sample.reduce((a, b) => a + b) / sample.length);
      }),
      { numRuns: 1000 },
    );
  });

  test("agree with Node's own", () => {
    const histogram = Histogram.empty();
    const oracle = createHistogram({ lowest: 1, highest: LIMIT_NS, figures: 3 });
    let random = 1;
    for (let i = 0; i < 100_000; i++) {
      random = Math.imul(random, 48271) >>> 1 || 1;
      // A bulk around 2 µs with a long tail, as latencies are.
      const value = Math.round(2000 * Math.exp(((random % 20_000) - 10_000) / 4000));
      const far = i % 1000 === 0 ? value * 1e4 : value;
      histogram.record(far);
      oracle.record(far);
    }
    expect(histogram.count).toBe(oracle.count);
    // The oracle errs by up to 0.1 % of its own.
    const near = (actual: number, exact: number): void =>
      expect(Math.abs(actual / exact - 1)).toBeLessThan(0.035);
    for (const percent of PERCENTS.slice(1)) {
      near(histogram.percentile(percent), oracle.percentile(percent));
    }
    near(histogram.mean, oracle.mean);
    near(histogram.max, oracle.max);
  });

  test('none: there is nothing to tell', () => {
    const [count, ...rest] = figuresOf(Histogram.empty());
    expect(count).toBe(0);
    for (const figure of rest) expect(figure).toBeNaN();
  });
});

describe('several histograms', () => {
  test('merged are the histogram of all values', () => {
    fc.assert(
      fc.property(samples, samples, (first, second) => {
        const merged = histogramOf(first);
        merged.add(histogramOf(second));
        expect(figuresOf(merged)).toEqual(figuresOf(histogramOf([...first, ...second])));
      }),
    );
  });

  test('a difference is the histogram of what came in between', () => {
    fc.assert(
      fc.property(samples, fc.array(latencies), (first, second) => {
        const histogram = histogramOf(first);
        const earlier = histogram.snapshot();
        for (const value of second) histogram.record(value);
        expect(figuresOf(earlier)).toEqual(figuresOf(histogramOf(first)));
        expect(figuresOf(histogram.since(earlier))).toEqual(figuresOf(histogramOf(second)));
      }),
    );
  });

  test('a difference across a reset is what came after the reset', () => {
    const histogram = histogramOf([5, 5, 1000]);
    const earlier = histogram.snapshot();
    histogram.reset();
    expect(histogram.count).toBe(0);
    histogram.record(5);
    histogram.record(7);
    expect(figuresOf(histogram.since(earlier))).toEqual(figuresOf(histogramOf([5, 7])));
  });

  test('side by side in one array leave each other alone, and every view sees the same', () => {
    const words = new Int32Array(3 * Histogram.words);
    const views = [0, 1, 2].map((i) => new Histogram(words, i * Histogram.words));
    views[0].record(1e15);
    views[1].record(0);
    views[1].record(1e15);
    expect(views.map((view) => view.count)).toEqual([1, 2, 0]);
    expect(new Histogram(words, Histogram.words).count).toBe(2);
    views[1].reset();
    expect(views.map((view) => view.count)).toEqual([1, 0, 0]);
  });

  test('need room', () => {
    const words = new Int32Array(Histogram.words + 16);
    expect(new Histogram(words, 16).count).toBe(0);
    expect(() => new Histogram(words, 17)).toThrow('no room');
    expect(() => new Histogram(words, -1)).toThrow('no room');
  });
});

describe('counts beyond 32 bits', () => {
  const VALUE = 7;
  const LOW = VALUE;
  const HIGH = BUCKETS + VALUE;
  const HALF = 2 ** 31;
  const near = fc.integer({ min: -3, max: 3 });

  /** As if that many had been recorded. */
  function countedTo(count: number, words = new Int32Array(Histogram.words)): Histogram {
    words[LOW] = count | 0;
    words[HIGH] = Math.floor(count / HALF);
    return new Histogram(words, 0);
  }

  test('go on, across every border of the two words', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), near, fc.nat(6), (halves, offset, more) => {
        const start = halves * HALF + offset;
        const histogram = countedTo(start);
        for (let i = 0; i < more; i++) histogram.record(VALUE);
        expect(histogram.count).toBe(start + more);
        expect(histogram.mean).toBe(VALUE);
      }),
    );
  });

  test('are merged and subtracted', () => {
    const histogram = countedTo(3 * HALF - 1);
    const earlier = histogram.snapshot();
    histogram.add(countedTo(5 * HALF));
    histogram.record(VALUE);
    expect(histogram.count).toBe(8 * HALF);
    expect(histogram.since(earlier).count).toBe(5 * HALF + 1);
    expect(histogram.percentile(50)).toBe(VALUE);
  });

  test('are right between the two stores of a carry', () => {
    for (const halves of [1, 2, 3, 4]) {
      const words = new Int32Array(Histogram.words);
      countedTo(halves * HALF, words);
      words[HIGH] = halves - 1;
      expect(new Histogram(words, 0).count).toBe(halves * HALF);
    }
  });
});

test('a reader sees counts that only grow while another thread records across a border', async () => {
  const words = new Int32Array(new SharedArrayBuffer(4 * Histogram.words));
  const values = 10_000_000;
  const start = 2 ** 32 - values / 2;
  words[3] = start | 0;
  words[BUCKETS + 3] = Math.floor(start / 2 ** 31);
  const module = new URL('../../dist/hosting/histogram.js', import.meta.url).href;
  const writer = new Worker(
    `const { workerData } = require('node:worker_threads');
     import(workerData.module).then(({ Histogram }) => {
       const histogram = new Histogram(workerData.words, 0);
       for (let i = 0; i < workerData.values; i++) histogram.record(3);
     });`,
    { eval: true, workerData: { module, words, values } },
  );
  let isRecording = true;
  const ended = new Promise<void>((resolve, reject) => {
    writer.once('error', reject).once('exit', () => resolve());
  }).finally(() => {
    isRecording = false;
  });
  const histogram = new Histogram(words, 0);
  let last = start;
  while (isRecording) {
    for (let i = 0; i < 100; i++) {
      const count = histogram.count;
      expect(count).toBeGreaterThanOrEqual(last);
      expect(count).toBeLessThanOrEqual(start + values);
      last = count;
    }
    await new Promise(setImmediate);
  }
  await ended;
  expect(histogram.count).toBe(start + values);
});
