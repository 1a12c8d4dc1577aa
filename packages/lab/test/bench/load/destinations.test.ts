/** The destination sets of the workloads. */
import { contains, Overlay, SHAPES } from 'tram-multicast/internal/protocol/overlay.js';
import { describe, expect, it } from 'vitest';
import { destinationSets, mixedSets } from '../../../src/bench/load/destinations.js';

const groupsIn = ({ low, high }: { low: number; high: number }): number[] =>
  Array.from({ length: 64 }, (_, group) => group).filter((group) => contains(low, high, group));

describe('destination sets', () => {
  const overlay = new Overlay(SHAPES.base(8));

  for (const pattern of ['rotating', 'random', 'adjacent'] as const) {
    it(`${pattern}: each set has the given number of groups, and every group occurs`, () => {
      for (let count = 1; count <= 8; count++) {
        const sets = destinationSets(overlay, pattern, count).map(groupsIn);
        expect(new Set(sets.map((set) => set.length))).toEqual(new Set([count]));
        expect(new Set(sets.flat()).size).toBe(8);
      }
    });
  }

  it('adjacent: the entry group and all groups on the path are destinations', () => {
    for (const set of destinationSets(overlay, 'adjacent', 4)) {
      const groups = groupsIn(set);
      const top = overlay.entryGroup(set.low, set.high);
      expect(groups).toContain(top);
      for (const group of groups) {
        if (group !== top) expect(groups).toContain(overlay.parent(group));
      }
    }
  });

  it('mix: one of ten sets has two groups, and every group occurs as often in sets of either size', () => {
    const sets = mixedSets(overlay).map(groupsIn);
    for (const [size, times] of [
      [1, 9],
      [2, 2],
    ]) {
      const groups = sets.filter((set) => set.length === size).flat();
      for (let group = 0; group < 8; group++) {
        expect(groups.filter((other) => other === group)).toHaveLength(times);
      }
    }
    expect(sets).toHaveLength(80);
  });

  it('random sets are the same in every run', () => {
    expect(destinationSets(overlay, 'random', 3)).toEqual(destinationSets(overlay, 'random', 3));
  });
});
