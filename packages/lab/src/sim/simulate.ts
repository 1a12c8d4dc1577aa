/** Runs one seed. Called by `outcome.ts`, and by tests that look at the world afterwards. */
import { newLedger, SimulationFailure } from './ledger.js';
import { drawPlan, type Options, type Plan } from './plan.js';
import { Power } from './power.js';
import { Random } from './random.js';
import { Tally } from './tally.js';
import { type Lasting, type Settings, World } from './world.js';

export interface SeedResult {
  readonly seed: number;
  readonly plan: Plan;
  /** With durability, the one of its last era. */
  readonly world: World;
  readonly failure: SimulationFailure | undefined;
}

export function simulate(seed: number, options: Options, settings: Settings = {}): SeedResult {
  const plan = drawPlan(seed, options);
  const lasting = plan.durability && lastingOf(plan, settings);
  let world = new World(plan, settings, lasting);
  let failure: SimulationFailure | undefined;
  try {
    world.run();
    while (world.isOver) {
      world = new World(world.rest, settings, lasting);
      world.run();
    }
  } catch (error) {
    if (!(error instanceof SimulationFailure)) throw error;
    failure = error;
  }
  return { seed, plan, world, failure };
}

/** With durability: what all eras of the run have in common. */
export function lastingOf(plan: Plan, settings: Settings): Lasting {
  const random = new Random(plan.seed * 2 + 1);
  const tally = new Tally(plan);
  const ledger = newLedger(plan, settings, () => power.nowUs);
  const power = new Power(plan, ledger, random, tally);
  return { ledger, tally, random, power };
}
