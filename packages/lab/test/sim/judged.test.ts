/** What the judge sees of the holes: `judged.ts` says in which runs, or why it sees nothing. */
import { judge } from 'tram-multicast/internal/check/judge.js';
import { parseTrace } from 'tram-multicast/internal/check/trace.js';
import { expect, test } from 'vitest';
import { HOLES } from '../../src/sim/mutations/holes.js';
import { NO_VIOLATION, VIOLATIONS } from '../../src/sim/mutations/judged.js';
import { loadMutant, loadUnassertedMutant, type Subject } from '../../src/sim/mutations/mutant.js';
import type { BySeed } from '../../src/sim/mutations/mutation.js';
import type { Options } from '../../src/sim/plan.js';

/** Run a seed, write its history and judge it, as `tram-lab sim --trace` and `tram check` do. */
function historyOf({ runSeed }: Subject, seed: number, options: Options) {
  const { failure, details } = runSeed(seed, options, true);
  const { properties } = judge(parseTrace(details!.trace));
  const violated = properties.filter(({ outcome }) => outcome === 'violated');
  return { kind: failure?.kind, violated: violated.map(({ property }) => property) };
}

test('every hole is listed once', () => {
  const named = [...Object.keys(VIOLATIONS), ...Object.keys(NO_VIOLATION)];
  expect(named.sort()).toEqual(Object.keys(HOLES).sort());
});

test.each(Object.entries(VIOLATIONS))('the history of %s is violated', async (name, shown) => {
  const { property, seed, options, isUnasserted } = shown;
  const mutant = await (isUnasserted ? loadUnassertedMutant(name) : loadMutant(name));
  const { kind, violated } = historyOf(mutant, seed, options);
  expect(kind).toBeDefined();
  expect(violated).toContain(property);
});

test.each(Object.entries(NO_VIOLATION))('the history of %s is not: %s', async (name) => {
  const { seed, as, options = {} } = HOLES[name].caughtBy as BySeed;
  const { kind, violated } = historyOf(await loadMutant(name), seed, options);
  expect(kind).toBe(as);
  expect(violated).toEqual([]);
});
