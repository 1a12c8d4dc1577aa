/**
 * Finds the throughput of a saturated system: raises the load until throughput stops growing. The load is a
 * ladder of rungs, each of clients and of messages that each of them keeps under way.
 */

export interface Rung {
  readonly clients: number;
  readonly outstanding: number;
}

export interface Climb<Outcome> {
  /** The best, and where it was found. */
  readonly rung: Rung;
  readonly outcome: Outcome;
  /** All that were tried, in turn. */
  readonly tried: readonly { readonly rung: Rung; readonly rate: number }[];
  /** False if the ladder ended while throughput still grew. */
  readonly isSaturated: boolean;
}

/** Less than this is no growth. */
const GROWTH = 1.05;

/** @param patience  how many rungs without growth, one after the other, are enough */
export async function climb<Outcome>(
  ladder: readonly Rung[],
  patience: number,
  measure: (rung: Rung) => Promise<Outcome>,
  rateOf: (outcome: Outcome) => number,
): Promise<Climb<Outcome>> {
  const tried: { rung: Rung; rate: number }[] = [];
  let best: { rung: Rung; outcome: Outcome; rate: number } | undefined;
  let flat = 0;
  for (const rung of ladder) {
    const outcome = await measure(rung);
    const rate = rateOf(outcome);
    tried.push({ rung, rate });
    flat = best === undefined || rate > best.rate * GROWTH ? 0 : flat + 1;
    if (best === undefined || rate > best.rate) best = { rung, outcome, rate };
    if (flat >= patience) break;
  }
  if (best === undefined) throw new Error('a ladder without rungs');
  return { rung: best.rung, outcome: best.outcome, tried, isSaturated: flat > 0 };
}
