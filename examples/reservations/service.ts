/**
 * A warehouse in each group. An order may need items of several warehouses: all of them, or none.
 *
 * One message can't decide that. Each warehouse knows only its own stock, so two warehouses that deliver the same order
 * may answer differently. An order therefore takes two messages, each to all warehouses of the order:
 *
 * 1. `hold`: each warehouse sets its items aside if it has them, and replies whether it has. This is its vote.
 * 2. `confirm` if all warehouses have voted yes, otherwise `release`.
 *
 * If the client disappears between the two, its items would stay on hold. So every hold has a deadline, and a client
 * multicasts the time to all warehouses now and then (`expire`). No warehouse looks at a clock. All warehouses of an
 * order deliver its `confirm` and an `expire` in the same order, so either all of them confirm it, or all of them have
 * let it go.
 */
import { defineService } from 'tram-multicast';

export type Command =
  | { readonly type: 'stock'; readonly count: number }
  | {
      readonly type: 'hold';
      readonly order: string;
      /** How many items the order needs from each of its warehouses. */
      readonly count: number;
      readonly untilMs: number;
    }
  | { readonly type: 'confirm' | 'release'; readonly order: string }
  | { readonly type: 'expire'; readonly nowMs: number };

export interface Reply {
  /** False if the warehouse has not enough items for a `hold`, or no longer holds those of a `confirm`. */
  readonly accepted: boolean;
  /** What the warehouse has now: items that nobody holds, orders on hold, items sold. */
  readonly free: number;
  readonly held: number;
  readonly sold: number;
}

interface Hold {
  readonly count: number;
  readonly untilMs: number;
}

interface State {
  free: number;
  sold: number;
  readonly holds: Record<string, Hold>;
}

export default defineService<Command, Reply, State>({
  initial: () => ({ free: 0, sold: 0, holds: {} }),

  deliver(state, command) {
    const accepted = apply(state, command);
    const { free, sold, holds } = state;
    return { accepted, free, sold, held: Object.keys(holds).length };
  },
});

function apply(state: State, command: Command): boolean {
  switch (command.type) {
    case 'stock':
      state.free += command.count;
      return true;
    case 'hold': {
      const { order, count, untilMs } = command;
      if (state.free < count) return false;
      state.free -= count;
      state.holds[order] = { count, untilMs };
      return true;
    }
    case 'confirm': {
      const hold = state.holds[command.order];
      if (hold === undefined) return false;
      state.sold += hold.count;
      delete state.holds[command.order];
      return true;
    }
    case 'release':
      release(state, command.order);
      return true;
    case 'expire':
      for (const [order, { untilMs }] of Object.entries(state.holds)) {
        if (untilMs < command.nowMs) release(state, order);
      }
      return true;
  }
}

/** Does nothing for an order that is not on hold. */
function release(state: State, order: string): void {
  state.free += state.holds[order]?.count ?? 0;
  delete state.holds[order];
}
