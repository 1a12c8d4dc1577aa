/** The search for saturation, on made-up throughputs. */
import { describe, expect, test } from 'vitest';
import { climb } from '../../../src/bench/load/saturation.js';

/** Rungs of 1, 2, 4, … messages in flight. */
const LADDER = Array.from({ length: 10 }, (_, i) => ({ clients: 1, outstanding: 2 ** i }));

describe('saturation', () => {
  const climbOn = (patience: number, rateOf: (outstanding: number) => number) =>
    climb(
      LADDER,
      patience,
      async ({ outstanding }) => rateOf(outstanding),
      (rate) => rate,
    );

  test('is found where throughput stops growing', async () => {
    const found = await climbOn(1, (outstanding) => Math.min(outstanding, 16) * 1000);
    expect(found).toMatchObject({ rung: { outstanding: 16 }, outcome: 16_000, isSaturated: true });
    expect(found.tried).toHaveLength(6);
  });

  test('growth of less than five per cent ends the search, and the best is reported', async () => {
    const found = await climbOn(1, (outstanding) => 1000 + outstanding);
    expect(found.tried).toHaveLength(2);
    expect(found).toMatchObject({ outcome: 1002, rung: { outstanding: 2 } });
  });

  test('patience tolerates one bad measurement', async () => {
    const dip = (outstanding: number) => (outstanding === 4 ? 1 : Math.min(outstanding, 64));
    expect((await climbOn(1, dip)).outcome).toBe(2);
    expect((await climbOn(2, dip)).outcome).toBe(64);
  });

  test('a ladder that is too short is reported', async () => {
    const found = await climbOn(1, (outstanding) => outstanding);
    expect(found).toMatchObject({ isSaturated: false, rung: { outstanding: 512 } });
  });

  test('throughput that drops under overload does not count', async () => {
    const found = await climbOn(2, (outstanding) => 1000 / Math.abs(outstanding - 8.5));
    expect(found).toMatchObject({ rung: { outstanding: 8 }, isSaturated: true });
  });
});
