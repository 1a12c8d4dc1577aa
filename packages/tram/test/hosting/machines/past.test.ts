/** What a host on a machine that has lost its memory begins with: nothing that its earlier incarnations had. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pastAt } from '../../../src/hosting/machines/past.js';
import { isSince, keyAfter } from '../../../src/protocol/leadership/key.js';

const STARTS = fc.date({
  min: new Date('2026-01-02'),
  max: new Date('2040-01-01'),
  noInvalidDate: true,
});
const HOUR_MS = 3_600_000;
const HALF_A_YEAR_MS = 180 * 24 * HOUR_MS;

test.each([4096, 2 * 4096, 10 * 4096])('keys that are made %d s later differ', (seconds) => {
  const ms = Date.UTC(2026, 6);
  expect(pastAt(ms + seconds * 1000).firstKey).not.toBe(pastAt(ms).firstKey);
});

test('keys are later than all keys of the earlier incarnation, which makes at most 32 a second', () => {
  fc.assert(
    fc.property(STARTS, fc.integer({ min: 500, max: HALF_A_YEAR_MS }), (start, later) => {
      const ms = start.getTime();
      const { firstKey } = pastAt(ms);
      const last = keyAfter(firstKey, Math.floor((later * 32) / 1000));
      const next = pastAt(ms + later).firstKey;
      expect(next).not.toBe(last);
      expect(isSince(next, last)).toBe(true);
    }),
  );
});

test('incarnations grow', () => {
  fc.assert(
    fc.property(STARTS, fc.integer({ min: 250, max: HALF_A_YEAR_MS }), (start, later) => {
      const ms = start.getTime();
      const { leastIncarnation } = pastAt(ms);
      expect(pastAt(ms + later).leastIncarnation).toBeGreaterThan(leastIncarnation);
      expect(leastIncarnation).toBe(leastIncarnation | 0);
    }),
  );
});
