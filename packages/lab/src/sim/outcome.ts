/**
 * The outcome of a run as plain data, which a worker can send to the pool, and the totals of many runs. The order in
 * which outcomes are added does not matter.
 */
import { judge, type Verdict } from 'tram-multicast/internal/check/judge.js';
import { TRANSITIONS, type Transition } from 'tram-multicast/internal/protocol/edges.js';
import type { SimulationFailure } from './ledger.js';
import { FAULTS, type Fault, type Options } from './plan.js';
import { simulate } from './simulate.js';
import type { World } from './world.js';

export interface SeedFailure {
  readonly seed: number;
  /** `error`: an unexpected exception. `hang`: the run took too long and was ended. */
  readonly kind: SimulationFailure['kind'] | 'error' | 'hang';
  readonly message: string;
}

export interface SeedOutcome {
  readonly seed: number;
  readonly messages: number;
  readonly deliveries: number;
  readonly simulatedUs: number;
  readonly faults: ReadonlyMap<Fault, number>;
  readonly transitions: ReadonlyMap<Transition, number>;
  /** Does the history violate real-time order? That is a failure only if the run promises it. */
  readonly violatesRealTime: boolean;
  readonly failure: SeedFailure | undefined;
  /** Only if the caller asked for details. */
  readonly details: SeedDetails | undefined;
}

export interface SeedDetails {
  readonly verdict: Verdict;
  /** The history as JSON Lines. */
  readonly trace: string;
}

export function runSeed(seed: number, options: Options, wantsDetails: boolean): SeedOutcome {
  try {
    const { world, failure } = simulate(seed, options, { keepsTrace: wantsDetails });
    return {
      seed,
      messages: world.ledger.messages,
      deliveries: world.ledger.deliveries,
      simulatedUs: world.nowUs,
      faults: world.tally.faults,
      transitions: world.tally.transitions,
      violatesRealTime: world.violatesRealTime,
      failure: failure && { seed, kind: failure.kind, message: failure.message },
      details: wantsDetails ? detailsOf(world) : undefined,
    };
  } catch (error) {
    return failedOutcome(
      seed,
      'error',
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
  }
}

/** The outcome of a run that failed without a result. */
export function failedOutcome(
  seed: number,
  kind: SeedFailure['kind'],
  message: string,
): SeedOutcome {
  return {
    seed,
    messages: 0,
    deliveries: 0,
    simulatedUs: 0,
    faults: new Map(),
    transitions: new Map(),
    violatesRealTime: false,
    failure: { seed, kind, message },
    details: undefined,
  };
}

function detailsOf(world: World): SeedDetails {
  const { ledger } = world;
  if (ledger.trace?.at(-1)?.event !== 'end') ledger.record({ event: 'end', quiescent: false });
  return {
    verdict: judge(ledger.history),
    trace: ledger.trace!.map((event) => `${JSON.stringify(event)}\n`).join(''),
  };
}

const FAILURES_KEPT = 10;

export class Totals {
  seeds = 0;
  messages = 0;
  deliveries = 0;
  simulatedUs = 0;
  violateRealTime = 0;
  failed = 0;
  readonly faults = new Map<Fault, number>(FAULTS.map((fault) => [fault, 0]));
  readonly transitions = new Map<Transition, number>(
    TRANSITIONS.map((transition) => [transition, 0]),
  );
  /** The failures of the lowest seeds, in order. */
  readonly failures: SeedFailure[] = [];

  add(outcome: SeedOutcome): void {
    this.seeds++;
    this.messages += outcome.messages;
    this.deliveries += outcome.deliveries;
    this.simulatedUs += outcome.simulatedUs;
    if (outcome.violatesRealTime) this.violateRealTime++;
    addCounts(this.faults, outcome.faults);
    addCounts(this.transitions, outcome.transitions);
    if (outcome.failure) this.addFailure(outcome.failure);
  }

  private addFailure(failure: SeedFailure): void {
    this.failed++;
    this.failures.push(failure);
    this.failures.sort((a, b) => a.seed - b.seed);
    this.failures.splice(FAILURES_KEPT);
  }

  get faultCount(): number {
    return [...this.faults.values()].reduce((sum, count) => sum + count, 0);
  }
}

function addCounts<Key>(sums: Map<Key, number>, counts: ReadonlyMap<Key, number>): void {
  for (const [key, count] of counts) sums.set(key, (sums.get(key) ?? 0) + count);
}
