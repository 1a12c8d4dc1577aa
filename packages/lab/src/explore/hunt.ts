/**
 * Looks for a violation without visiting all states: random walks, which find in seconds what an exhaustive search meets
 * late. What they find is made as short as possible. Used for mutations.
 */
import { Random } from '../sim/random.js';
import type { Action } from './action.js';
import { Violation } from './orders.js';
import type { Scope } from './scope.js';
import type { Found } from './search.js';
import { SmallWorld } from './small-world.js';

const WALK_ACTIONS_MAX = 60;

/** @param mustStop  asked after every walk */
export function hunt(scope: Scope, seed: number, mustStop: () => boolean): Found | undefined {
  const world = new SmallWorld(scope);
  const { journal, print } = world;
  const random = new Random(seed);
  const { low, high } = print;
  while (!mustStop()) {
    const actions: Action[] = [];
    try {
      while (actions.length < WALK_ACTIONS_MAX) {
        const choices = world.choices();
        if (choices.length === 0) break;
        actions.push(random.pick(choices));
        world.act(actions[actions.length - 1]);
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return { actions, message: error.message };
    }
    journal.undo(0);
    print.low = low;
    print.high = high;
  }
  return undefined;
}
