/**
 * Makes the script of a violation as short as possible: first by leaving out actions while a violation remains, then by
 * searching for shorter scripts until there is none.
 */
import { type Action, format, isSame, ScriptError } from './action.js';
import { Violation } from './orders.js';
import type { Scope } from './scope.js';
import { type Counts, type Found, Search } from './search.js';
import { SmallWorld, type Watcher } from './small-world.js';

/** The actions of a script, one after the other. @returns the violation, if there is one, and what led to it */
export function replay(
  scope: Scope,
  actions: readonly Action[],
  { isLenient = false, watcher }: { isLenient?: boolean; watcher?: Watcher } = {},
): Found | undefined {
  const world = new SmallWorld(scope, watcher);
  const done: Action[] = [];
  for (const action of actions) {
    if (!world.choices().some((choice) => isSame(choice, action))) {
      if (isLenient) continue;
      throw new ScriptError(
        `"${format(action)}", action ${done.length + 1}, is not possible there`,
      );
    }
    done.push(action);
    try {
      watcher?.event(action, world);
      world.act(action);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return { actions: done, message: error.message };
    }
  }
  return undefined;
}

/** Leave out actions, one at a time, as long as a violation remains. */
export function reduce(scope: Scope, found: Found): Found {
  let best = found;
  for (let i = best.actions.length - 1; i >= 0; i--) {
    if (i >= best.actions.length) continue;
    const without = best.actions.toSpliced(i, 1);
    best = replay(scope, without, { isLenient: true }) ?? best;
  }
  return best.actions.length < found.actions.length ? reduce(scope, best) : best;
}

export interface Shortest {
  readonly found: Found;
  /** Has the search shown that there is no shorter one? */
  readonly isShortest: boolean;
}

export function shorten(
  scope: Scope,
  found: Found,
  mustStop: (counts: Counts) => boolean,
): Shortest {
  let best = reduce(scope, found);
  for (;;) {
    const actionsMax = best.actions.length - 1;
    const result = new Search(scope, { actionsMax, mustStop }).run();
    if (result.found === undefined) return { found: best, isShortest: !result.wasStopped };
    best = reduce(scope, result.found);
  }
}
