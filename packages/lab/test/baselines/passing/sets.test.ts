/** Sets of groups as bit masks. */
import fc from 'fast-check';
import { highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import { expect, test } from 'vitest';
import { memberAfter, sizeOf } from '../../../src/baselines/passing/sets.js';

test('a set has the size and the members that it was made of', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(63)), (groups) => {
      const low = groups.reduce((mask, group) => mask | lowMask(group), 0);
      const high = groups.reduce((mask, group) => mask | highMask(group), 0);
      const found: number[] = [];
      for (let g = memberAfter(low, high, -1); g >= 0; g = memberAfter(low, high, g)) {
        found.push(g);
      }
      expect(found).toEqual(groups.sort((a, b) => a - b));
      expect(sizeOf(low, high)).toBe(groups.length);
    }),
  );
});
