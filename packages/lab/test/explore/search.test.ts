/** The explorer exhausts a scope, and what it claims about itself holds. */
import { describe, expect, test } from 'vitest';
import type { Scope } from '../../src/explore/scope.js';
import { SCOPES } from '../../src/explore/scopes.js';
import { Search } from '../../src/explore/search.js';
import { Verification } from '../../src/explore/verify.js';

/** One candidate against a leader that does nothing: small enough for every variant of the search. */
const TINY: Scope = {
  name: 'tiny',
  title: 'one candidate',
  groups: 1,
  placed: [{ names: 'b', to: [0], at: 'B' }],
  campaigns: 'B',
  directLinks: ['AC', 'CA'],
};
const TINY_STATES = 934;

test('a scope of seconds is exhausted, and holds', () => {
  const result = new Search(TINY).run();
  expect(result).toMatchObject({ isExhausted: true, found: undefined });
  expect(result.states).toBe(TINY_STATES);
});

test('sleep sets leave out transitions, and no state', () => {
  const all = new Search(TINY, { usesSleepSets: false }).run();
  const some = new Search(TINY).run();
  expect(some.states).toBe(all.states);
  expect(some.transitions).toBeLessThan(all.transitions);
});

test('a search that is stopped is not exhausted', () => {
  const result = new Search(SCOPES.get('small')!, { mustStop: () => true }).run();
  expect(result).toMatchObject({ isExhausted: false, wasStopped: true });
});

test('a search for short scripts is not exhausted', () => {
  const result = new Search(TINY, { actionsMax: 3 }).run();
  expect(result).toMatchObject({ isExhausted: false, wasStopped: false, depth: 3 });
});

describe('undo is exact, merged states have one future, and independent actions commute', () => {
  test.each([...SCOPES])('%s', (_, scope) => {
    const { states, transitions } = new Verification(scope, 1).run(3);
    expect(states).toBeGreaterThan(20);
    expect(transitions).toBeGreaterThan(states);
  });
});
