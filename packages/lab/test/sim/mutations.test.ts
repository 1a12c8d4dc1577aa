/**
 * Every mutation fits the built library, a run detects it, and the same run holds without it. The test files of scripts
 * try the mutations that a script detects.
 */
import { existsSync, readFileSync } from 'node:fs';
import { TRANSITIONS } from 'tram-multicast/internal/protocol/edges.js';
import { describe, expect, test } from 'vitest';
import { builtText, loadMutant } from '../../src/sim/mutations/mutant.js';
import { applyEdit, type BySeed, MutationError } from '../../src/sim/mutations/mutation.js';
import { MUTATIONS } from '../../src/sim/mutations/table.js';
import { FAULTS, FAULTS_OF_DISKS, type Options } from '../../src/sim/plan.js';
import { canOccur, DURABLE_TRANSITIONS } from '../../src/sim/tally.js';

const SEEDS_MAX = 500;

/** All seeds. The first ones have taken the rarest transitions, or suffered the rarest faults, so others are seldom needed. */
function seedsFrom(...first: readonly number[]): Set<number> {
  return new Set([...first, ...Array.from({ length: SEEDS_MAX }, (_, i) => i + 1)]);
}

/** Small runs: a new journal seldom has to wait for lost ones in large ones. */
const SMALL_AND_DURABLE: Options = { durability: 'always', groups: 2, messages: 60 };

const all = Object.entries(MUTATIONS);
const bySeed = all.flatMap(([name, { title, caughtBy }]) =>
  'seed' in caughtBy ? [[name, title, caughtBy] as const] : [],
);
const byScript = all.flatMap(([name, { caughtBy }]) =>
  'script' in caughtBy ? [[name, caughtBy.script] as const] : [],
);

/** The protocol as it is, instrumented. */
const { simulate } = await loadMutant();

const known = new Map<string, boolean>();

/** Does the unchanged protocol hold? Cached, because one run may detect several mutations. */
function holds(seed: number, options: Options): boolean {
  const run = JSON.stringify([seed, options]);
  const held = known.get(run) ?? simulate(seed, options).failure === undefined;
  known.set(run, held);
  return held;
}

test.each(all)('%s changes text that occurs exactly once: $title', (_, { edits }) => {
  expect(edits.length).toBeGreaterThan(0);
  for (const edit of edits) {
    expect(builtText(edit.file).split(edit.find)).toHaveLength(2);
    expect(edit.replace).not.toBe(edit.find);
  }
});

test('text that is missing, or occurs twice, is refused', () => {
  const edit = { file: 'x.js', find: 'b', replace: 'c' };
  expect(applyEdit('abd', edit)).toBe('acd');
  expect(() => applyEdit('a', edit)).toThrow(MutationError);
  expect(() => applyEdit('abab', edit)).toThrow(MutationError);
});

test('mutations that change the same text are refused together', async () => {
  await expect(loadMutant('H13', 'H28')).rejects.toThrow(MutationError);
});

test('a mutant is a separate module graph: the protocol itself does not change', async () => {
  const [broken, intact] = await Promise.all([loadMutant('H1'), loadMutant()]);
  const { seed } = MUTATIONS.H1.caughtBy as BySeed;
  expect(broken.simulate).not.toBe(intact.simulate);
  expect(broken.simulate(seed, {}).failure).toBeDefined();
  expect(intact.simulate(seed, {}).failure).toBeUndefined();
});

describe.each(bySeed)('%s: %s', (name, _, { seed, as, options = {} }: BySeed) => {
  test(`seed ${seed} fails with it: ${as}`, async () => {
    expect(seed).toBeLessThanOrEqual(SEEDS_MAX);
    const mutant = await loadMutant(name);
    expect(mutant.simulate(seed, options).failure?.kind).toBe(as);
  });

  test(`seed ${seed} holds without it`, () => {
    expect(holds(seed, options)).toBe(true);
  });
});

test.each(byScript)('%s is caught by a script of %s', (name, script) => {
  const files = ['protocol', 'journal'].map(
    (folder) => new URL(`../${folder}/${script}.test.ts`, import.meta.url),
  );
  const found = files.filter((file) => existsSync(file));
  expect(found).toHaveLength(1);
  expect(readFileSync(found[0], 'utf8')).toContain(`'${name}'`);
});

test('a few hundred seeds take every transition and suffer every fault', {
  timeout: 300_000,
}, () => {
  const unseen = new Set<string>([...TRANSITIONS, ...FAULTS].filter((name) => canOccur(name)));
  // Interrupted steps and small rings take the rarest transitions.
  const rare: Options = { groups: 1, replicas: 3, ringBytes: 2048, memory: 'shared' };
  for (const seed of seedsFrom(18, 28, 45, 92)) {
    if (unseen.size === 0) break;
    for (const options of [{}, rare]) {
      const { tally } = simulate(seed, options).world;
      for (const name of [...tally.transitions.keys(), ...tally.faults.keys()]) unseen.delete(name);
    }
  }
  expect([...unseen]).toEqual([]);
});

test('some seeds with durability suffer everything that happens to disks', {
  timeout: 300_000,
}, () => {
  const unseen = new Set<string>([...DURABLE_TRANSITIONS, ...FAULTS_OF_DISKS]);
  for (const seed of seedsFrom(12, 13, 20, 27, 42)) {
    if (unseen.size === 0) break;
    const { tally } = simulate(seed, SMALL_AND_DURABLE).world;
    for (const name of [...tally.transitions.keys(), ...tally.faults.keys()]) unseen.delete(name);
  }
  expect([...unseen]).toEqual([]);
});
