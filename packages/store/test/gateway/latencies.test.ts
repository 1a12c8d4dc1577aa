import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Latencies, POWER_MAX } from '../../src/gateway/latencies.js';

const durations = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 100 }),
    fc.double({ min: 0, max: 1e7, noNaN: true }),
    fc.integer({ min: 0, max: POWER_MAX }).map((power) => 2 ** power),
  ),
  { minLength: 1, maxLength: 200 },
);

function recorded(us: readonly number[]): Latencies {
  const latencies = new Latencies();
  for (const one of us) latencies.record(one);
  return latencies;
}

it('counts exactly what took at most a power of two of microseconds', () => {
  fc.assert(
    fc.property(durations, fc.integer({ min: 2, max: POWER_MAX }), (us, power) => {
      const expected = us.filter((one) => one <= 2 ** power).length;
      expect(recorded(us).countUpTo(power)).toBe(expected);
    }),
  );
});

it('gives percentiles that are at most a quarter too great', () => {
  fc.assert(
    fc.property(durations, fc.constantFrom(1, 50, 99, 99.9, 100), (us, percent) => {
      const sorted = us.toSorted((a, b) => a - b);
      const exact = sorted[Math.max(0, Math.ceil((percent / 100) * us.length) - 1)];
      const told = recorded(us).percentileUs(percent);
      expect(told).toBeGreaterThanOrEqual(exact);
      expect(told).toBeLessThanOrEqual(Math.max(exact + 1, 1.25 * exact + 1));
    }),
  );
});

it('has no percentiles of nothing, and forgets nothing that takes very long', () => {
  expect(new Latencies().percentileUs(50)).toBe(0);
  const latencies = recorded([1e12]);
  expect([latencies.count, latencies.countUpTo(POWER_MAX - 1)]).toEqual([1, 0]);
});
