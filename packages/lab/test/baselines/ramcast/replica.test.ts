/** RamCast under late and torn writes: all properties hold, and the judge finds planted errors. */

import type { Verdict } from 'tram-multicast/check';
import { expect, test } from 'vitest';
import { Clock } from '../../../src/baselines/ramcast/clock.js';
import type { Edges } from '../../../src/baselines/ramcast/edges.js';
import { Ordering } from '../../../src/baselines/ramcast/ordering.js';
import { type Parts, soundParts } from '../../../src/baselines/ramcast/replica.js';
import { RamcastWorld } from './world.js';

const SEEDS = 200;
const CHUNK = 50;
const PLANTED_SEEDS = 60;

/** RamCast promises neither FIFO nor real-time order, and a history without entry groups cannot decide the first. */
function failures(verdict: Verdict): string[] {
  return verdict.properties
    .filter(
      ({ property, outcome }) =>
        property !== 'fifo-order' && outcome !== 'holds' && outcome !== 'not-promised',
    )
    .map((found) => JSON.stringify(found));
}

test.each(Array.from({ length: SEEDS / CHUNK }, (_, i) => 1 + i * CHUNK))(
  `${CHUNK} seeds from %i on hold all properties`,
  (first) => {
    for (let seed = first; seed < first + CHUNK; seed++) {
      const world = new RamcastWorld(seed);
      expect(failures(world.run()), `seed ${seed}`).toEqual([]);
    }
  },
);

test('the same seed gives the same history', () => {
  const [one, other] = [new RamcastWorld(7), new RamcastWorld(7)];
  expect(one.run()).toEqual(other.run());
});

/** Uses the own group's timestamp as the final one. */
class HastyOrdering extends Ordering {
  override propose(...[slot, sequence, , ...rest]: Parameters<Ordering['propose']>): number {
    return super.propose(slot, sequence, 1, ...rest);
  }

  override stamp(): void {}
}

/** Ignores observed timestamps. */
class DeafClock extends Clock {
  override observe(): void {}
}

/** Delivers the latest final message, not the one with the lowest timestamp. */
class CarelessOrdering extends Ordering {
  private readonly kept: number[] = [];

  override next(bound: number): number {
    for (let next = super.next(bound); next >= 0; next = super.next(bound)) this.kept.push(next);
    return this.kept.pop() ?? -1;
  }
}

type Plant = (edges: Edges, group: number, member: number) => Parts;

const planted: Record<string, Plant> = {
  'delivery without the timestamps of other groups': (edges, group, member) => ({
    ...soundParts(edges, group, member),
    ordering: new HastyOrdering(edges.layout.slots),
  }),
  'a clock that ignores the timestamps of others': (edges, group, member) => ({
    ...soundParts(edges, group, member),
    clock: new DeafClock(group, edges.layout.sizes.firstIndex),
  }),
  'delivery in the wrong order': (edges, group, member) => ({
    ...soundParts(edges, group, member),
    ordering: new CarelessOrdering(edges.layout.slots),
  }),
};

test.each(Object.entries(planted))('a planted error is found: %s', (_, parts) => {
  const isFound = (seed: number): boolean =>
    new RamcastWorld(seed, parts)
      .run()
      .properties.some(
        ({ property, outcome }) => property === 'uniform-acyclic-order' && outcome === 'violated',
      );
  const seeds = Array.from({ length: PLANTED_SEEDS }, (_, i) => i + 1);
  expect(seeds.some(isFound)).toBe(true);
});
