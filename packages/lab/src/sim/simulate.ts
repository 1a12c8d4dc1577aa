/** Runs one seed. Called by `outcome.ts`, and by tests that look at the world afterwards. */
import { SimulationFailure } from './ledger.js';
import { drawPlan, type Options, type Plan } from './plan.js';
import { type Settings, World } from './world.js';

export interface SeedResult {
  readonly seed: number;
  readonly plan: Plan;
  readonly world: World;
  readonly failure: SimulationFailure | undefined;
}

export function simulate(seed: number, options: Options, settings: Settings = {}): SeedResult {
  const plan = drawPlan(seed, options);
  const world = new World(plan, settings);
  let failure: SimulationFailure | undefined;
  try {
    world.run();
  } catch (error) {
    if (!(error instanceof SimulationFailure)) throw error;
    failure = error;
  }
  return { seed, plan, world, failure };
}
