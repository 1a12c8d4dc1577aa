/**
 * Finds the throughput of a saturated system: raises the load until throughput stops growing. Called by all benchmarks that
 * measure saturation. The loads are a ladder; a rung is a number of clients and the number of messages that each keeps in
 * flight.
 */

export interface Rung {
  readonly clients: number;
  readonly outstanding: number;
}

export interface Climb<Outcome> {
  /** The rung with the highest throughput, and its outcome. */
  readonly rung: Rung;
  readonly outcome: Outcome;
  /** All rungs that were tried, in order. */
  readonly tried: readonly { readonly rung: Rung; readonly rate: number }[];
  /** False if the ladder ended while throughput still grew. */
  readonly isSaturated: boolean;
}

/** A smaller factor does not count as growth. */
const GROWTH = 1.05;

/** @param patience  the search ends after this many consecutive rungs without growth */
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
  if (best === undefined) throw new Error('the ladder has no rungs');
  return { rung: best.rung, outcome: best.outcome, tried, isSaturated: flat > 0 };
}
