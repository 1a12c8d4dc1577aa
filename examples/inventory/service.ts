/**
 * An inventory, sharded by item: every group keeps the stock of its items. A group decides alone whether it has enough
 * of an item, and all its replicas decide alike.
 */
import { defineService } from 'tram-multicast';

export type Command =
  | { readonly type: 'add'; readonly item: string; readonly count: number }
  | { readonly type: 'take'; readonly item: string; readonly count: number }
  | { readonly type: 'total' };

export interface Reply {
  /** False if there was not enough to take. Nothing was taken then. */
  readonly accepted: boolean;
  /** How many are left: of the item, or for `total` of all items of the group. */
  readonly left: number;
}

export interface State {
  readonly stock: Record<string, number>;
}

export default defineService<Command, Reply, State>({
  initial: () => ({ stock: {} }),

  deliver({ stock }, command) {
    if (command.type === 'total') {
      const left = Object.values(stock).reduce((sum, count) => sum + count, 0);
      return { accepted: true, left };
    }
    const { type, item, count } = command;
    const had = stock[item] ?? 0;
    const left = type === 'add' ? had + count : had - count;
    if (left < 0) return { accepted: false, left: had };
    stock[item] = left;
    return { accepted: true, left };
  },
});
