/** Every hole that can be put back is noticed by the simulator, and only because of the hole. */

import { TRANSITIONS } from 'tram-multicast/internal/protocol/edges.js';
import { describe, expect, test } from 'vitest';
import { HOLES } from '../../src/sim/holes.js';
import { FAULTS } from '../../src/sim/plan.js';
import { simulate } from '../../src/sim/simulate.js';

const SEEDS_MAX = 500;

describe.each(Object.entries(HOLES))('%s: $title', (name, { options, caughtBy }) => {
  test(`seed ${caughtBy} breaks with it`, () => {
    expect(caughtBy).toBeLessThanOrEqual(SEEDS_MAX);
    expect(simulate(caughtBy, { ...options, holes: [name] }).failure).toBeDefined();
  });

  test(`seed ${caughtBy} holds without it`, () => {
    expect(simulate(caughtBy, { ...options }).failure).toBeUndefined();
  });
});

test('a few hundred seeds take every transition and suffer every fault', () => {
  const unseen = new Set<string>([...TRANSITIONS, ...FAULTS]);
  for (let seed = 1; unseen.size > 0 && seed <= SEEDS_MAX; seed++) {
    const { tally } = simulate(seed, {}).world;
    for (const name of [...tally.transitions.keys(), ...tally.faults.keys()]) unseen.delete(name);
  }
  expect([...unseen]).toEqual([]);
});
