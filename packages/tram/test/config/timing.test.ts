/** Heartbeats, suspicion and resending. */
import { expect, test } from 'vitest';
import { resolveTiming } from '../../src/config/timing.js';
import { errorOf } from './given.js';

test('the defaults', () => {
  expect(resolveTiming({ groups: 1 })).toEqual({
    heartbeatUs: 5000,
    restUs: 100_000,
    quickUs: 250,
    suspectAfterUs: 500_000,
    askAgainUs: 10_000,
    backOffUs: 10_000,
    resendAfterUs: 50_000,
  });
});

test('fractions of a millisecond count', () => {
  const options = { groups: 1, heartbeatMs: 0.5, suspectAfterMs: 2.5, resendAfterMs: 7 };
  expect(resolveTiming(options)).toMatchObject({
    heartbeatUs: 500,
    suspectAfterUs: 2500,
    resendAfterUs: 7000,
  });
});

test('a longer heartbeat makes suspicion more patient', () => {
  expect(resolveTiming({ groups: 1, heartbeatMs: 50 }).suspectAfterUs).toBe(1_000_000);
});

test('an idle host is not suspected', () => {
  for (const suspectAfterMs of [10, 20, 100, 1000]) {
    const { restUs, suspectAfterUs } = resolveTiming({ groups: 1, suspectAfterMs });
    expect(restUs).toBeLessThanOrEqual(suspectAfterUs / 2);
  }
});

test('one late heartbeat is not enough for a suspicion', () => {
  expect(errorOf({ groups: 2, suspectAfterMs: 9 })).toMatchObject({
    path: ['suspectAfterMs'],
    message: 'suspectAfterMs must be at least twice heartbeatMs, 10, not 9',
  });
});
