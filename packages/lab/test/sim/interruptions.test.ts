/** Steps are interrupted at any load or store, in the same way for the same seed. */
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { instrument, isToBeInstrumented } from '../../src/sim/mutations/instrument.js';
import { builtText, loadMutant } from '../../src/sim/mutations/mutant.js';
import { drawPlan, MEMORIES, type MemoryKind } from '../../src/sim/plan.js';
import { at, copyWithin, fill, handlePoints, set, stored } from '../../src/sim/points.js';
import { simulate } from '../../src/sim/simulate.js';

/** The protocol as it is, instrumented. */
const subject = await loadMutant();

const DIST = new URL('../../../tram/dist/', import.meta.url);
const SEEDS_MAX = 100;

/** The code that is instrumented, without the line of imports. */
const bodyOf = (text: string): string => instrument(text, 'p').split('$markInstrumented(); ')[1]!;

/** How many points an action passes. */
function countPoints(action: () => void): number {
  let points = 0;
  handlePoints(() => points++);
  try {
    action();
  } finally {
    handlePoints(undefined);
  }
  return points;
}

/** The lowest seed that interrupts steps on this memory. */
function interruptedSeed(memory: MemoryKind): number {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    if (drawPlan(seed, { memory }).interruptions !== undefined) return seed;
  }
  throw new Error(`no seed up to ${SEEDS_MAX} interrupts steps`);
}

describe('instrumented code has a point', () => {
  test.each([
    ['before a load', 'return words[at + i];', 'return $at(words)[at + i];'],
    ['before each of several', 'a[i] === b.c[d[j]]', '$at(a)[i] === $at(b.c)[$at(d)[j]]'],
    ['before and in a store', 'this.w[i] = x;', '$at(this.w)[i] = $stored(x);'],
    ['between load and store', 'to[i] |= from[j];', '$at(to)[i] |= $stored($at(from)[j]);'],
    ['before an atomic access', 'Atomics.load(words, at)', '$at(Atomics).load(words, at)'],
    ['in a copy', 'w.copyWithin(a, b, c)', '$copyWithin(w, a, b, c)'],
    ['in a bulk store', 'x.words.set(y, 4)', '$set(x.words, y, 4)'],
  ])('%s', (_, text, expected) => {
    expect(bodyOf(text)).toBe(expected);
  });

  test('and otherwise stays as it is, line for line', () => {
    expect(bodyOf('const [a, b] = [1, 2];\nif (x) [y]\n')).toBe(
      'const [a, b] = $stored([1, 2]);\nif (x) [y]\n',
    );
    const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter(
      isToBeInstrumented,
    );
    expect(files).toContain('memory/shared.js');
    for (const file of files) {
      const text = builtText(file);
      expect(instrument(text, 'p').split('\n')).toHaveLength(text.split('\n').length);
    }
  });
});

test('bulk copies have a point at every word, and copy the same words', () => {
  const words = Int32Array.of(1, 2, 3, 4, 5, 6);
  expect(countPoints(() => copyWithin(words, 1, 0, 4))).toBe(8);
  expect([...words]).toEqual([1, 1, 2, 3, 4, 6]);
  expect(countPoints(() => set(words, Int32Array.of(7, 8), 3))).toBe(4);
  expect([...words]).toEqual([1, 1, 2, 7, 8, 6]);
  expect(countPoints(() => fill(words, 0 as never, 4, 6))).toBe(2);
  expect([...words]).toEqual([1, 1, 2, 7, 0, 0]);
  const map = new Map<string, number>();
  expect(countPoints(() => set(map as never, 'key', 1))).toBe(0);
  expect(map.get('key')).toBe(1);
  expect(countPoints(() => stored(at(words)[0]))).toBe(2);
});

describe.each(MEMORIES)('on %s memory', (memory) => {
  test('a seed gives the same run twice, interruptions included', () => {
    const seed = interruptedSeed(memory);
    const traces = [1, 2].map(() => {
      const { world, failure } = subject.simulate(seed, { memory }, { keepsTrace: true });
      expect(failure).toBeUndefined();
      return world.ledger.trace!.map((event) => JSON.stringify(event));
    });
    expect(traces[0]!.length).toBeGreaterThan(100);
    expect(traces[1]).toEqual(traces[0]);
  });
});

test('a library without points is refused: its steps would seem to be interrupted', () => {
  expect(() => simulate(interruptedSeed('shared'), { memory: 'shared' })).toThrow(/instrumented/);
});
