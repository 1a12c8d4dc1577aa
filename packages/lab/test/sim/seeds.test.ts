/**
 * Seeds under faults: a few hundred that differ with each commit, so that the search never stops, and all seeds that
 * have found a bug.
 */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { loadMutant } from '../../src/sim/mutations/mutant.js';
import type { Options } from '../../src/sim/plan.js';
import { REGRESSIONS } from './regressions.js';

const SEEDS = 200;
const CHUNK = 20;
const DURABLE_SEEDS = 10;

/** Derived from the commit, so that every commit tries other seeds. Without git, the seeds are always the same. */
function firstSeed(): number {
  try {
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' });
    return Number.parseInt(commit.slice(0, 6), 16);
  } catch {
    return 1;
  }
}

/** The protocol as it is, instrumented. */
const { simulate } = await loadMutant();

function expectToHold(seed: number, options: Options = {}): void {
  const { failure } = simulate(seed, options);
  const story = `${failure?.kind}: ${failure?.message}\nreplay: npx tram-lab sim --seed ${seed}${durabilityOption(options)}`;
  expect(failure, story).toBeUndefined();
}

function durabilityOption({ durability }: Options): string {
  return durability === undefined ? '' : ` --durability ${durability}`;
}

const first = firstSeed();

test.each(Array.from({ length: SEEDS / CHUNK }, (_, i) => first + i * CHUNK))(
  `${CHUNK} seeds from %i on hold`,
  (from) => {
    for (let seed = from; seed < from + CHUNK; seed++) expectToHold(seed);
  },
);

test.each(['always', 'everySecond'] as const)(
  `${DURABLE_SEEDS} seeds with power cuts hold: %s`,
  (durability) => {
    for (let seed = first; seed < first + DURABLE_SEEDS; seed++) expectToHold(seed, { durability });
  },
);

test.each(REGRESSIONS)('seed $seed still holds: $found', ({ seed, options }) => {
  expectToHold(seed, options);
});

test('runs that do not promise real-time order violate it; the same runs with the promise hold', () => {
  const seeds = Array.from({ length: 20 }, (_, i) => i + 1);
  const violating = seeds.filter((seed) => {
    const { world, failure } = simulate(seed, { order: 'multicast' });
    expect(failure).toBeUndefined();
    return world.violatesRealTime;
  });
  expect(violating).not.toEqual([]);
  for (const seed of violating) expectToHold(seed, { order: 'strict' });
});
