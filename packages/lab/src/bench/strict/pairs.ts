/**
 * Compares the two orders, `multicast` and `strict`, pair by pair: multicast, strict, strict, multicast, … So a disturbance
 * from outside affects both alike, whether it comes suddenly or grows.
 */
import type { Order } from 'tram-multicast/internal/protocol/edges.js';
import { type Spread, spreadOf } from '../load/spread.js';

export type Pair<Outcome> = Readonly<Record<Order, Outcome>>;

export interface Comparison {
  readonly multicast: Spread;
  readonly strict: Spread;
  /** Of the pairs: strict divided by multicast. */
  readonly ratio: Spread;
}

export async function inPairs<Outcome>(
  count: number,
  measure: (order: Order) => Promise<Outcome>,
): Promise<Pair<Outcome>[]> {
  const pairs: Pair<Outcome>[] = [];
  for (let number = 0; number < count; number++) {
    const multicastFirst = number % 2 === 0;
    const first = await measure(multicastFirst ? 'multicast' : 'strict');
    const second = await measure(multicastFirst ? 'strict' : 'multicast');
    pairs.push(
      multicastFirst ? { multicast: first, strict: second } : { multicast: second, strict: first },
    );
  }
  return pairs;
}

/** @param read  the figure to compare */
export function compare<Outcome>(
  pairs: readonly Pair<Outcome>[],
  read: (outcome: Outcome) => number,
): Comparison {
  const spread = (value: (pair: Pair<Outcome>) => number): Spread => spreadOf(pairs.map(value))!;
  return {
    multicast: spread(({ multicast }) => read(multicast)),
    strict: spread(({ strict }) => read(strict)),
    ratio: spread(({ multicast, strict }) => read(strict) / read(multicast)),
  };
}
