import { describe, expect, test } from 'vitest';
import { MUTATIONS, plant, TIGHT } from './mutants.js';
import { loadBuild, Simulation } from './simulation.js';

const SEEDS = Number(process.env['TRAM_STORE_SEEDS'] ?? 40);
/** Within so many seeds an error has to show. */
const SEEDS_OF_MUTANTS = 200;

describe('transactions over shards, simulated', () => {
  test(`${SEEDS} seeds are strictly serializable`, async () => {
    const build = await loadBuild(new URL('../../dist/', import.meta.url));
    for (let seed = 1; seed <= SEEDS; seed++) {
      const violation = await new Simulation(build, seed).run();
      expect(violation, `seed ${seed}`).toBeUndefined();
    }
  });

  test(`${SEEDS} seeds with messages that are too short are strictly serializable`, async () => {
    const { folder, remove } = plant(TIGHT);
    try {
      const build = await loadBuild(folder);
      for (let seed = 1; seed <= SEEDS; seed++) {
        const violation = await new Simulation(build, seed).run();
        expect(violation, `seed ${seed}`).toBeUndefined();
      }
    } finally {
      remove();
    }
  });

  test.each(MUTATIONS)('the error is found: $name', async (mutation) => {
    const { folder, remove } = plant([...TIGHT, mutation]);
    try {
      const build = await loadBuild(folder);
      let violation: string | undefined;
      for (let seed = 1; seed <= SEEDS_OF_MUTANTS && violation === undefined; seed++) {
        violation = await new Simulation(build, seed).run().catch(String);
      }
      expect(violation).toBeDefined();
    } finally {
      remove();
    }
  });
});
