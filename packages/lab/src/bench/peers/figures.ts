/**
 * The latency of a system with one message at a time, and its throughput at saturation. Called by `peers.ts`, for TRAM and for
 * its peers alike.
 */
import type { LoadOptions } from '../load/load.js';
import { measure, rateOf } from '../load/measure.js';
import { climb } from '../load/saturation.js';
import type { Measurement, RunningSystem } from '../systems/system.js';

export interface Figures {
  /** At saturation, and the number of messages in flight there. */
  readonly messagesPerSecond: number;
  readonly outstanding: number;
  readonly loaded: Measurement;
  /** One message at a time. */
  readonly alone: Measurement;
  readonly tried: readonly Try[];
}

interface Try {
  readonly outstanding: number;
  readonly messagesPerSecond: number;
}

export interface FiguresOptions extends Pick<LoadOptions, 'sets' | 'payloadBytes'> {
  readonly seconds: number;
  readonly outstandingMax: number;
}

const WARM_UP_SECONDS_MAX = 0.5;
/** Each rung has this many times the messages in flight of the one before. */
const STEP = 8;
/** One rung without growth may be noise. */
const PATIENCE = 2;

export async function measureFigures(
  system: Pick<RunningSystem, 'measure'>,
  options: FiguresOptions,
  progress: (outstanding: number) => void,
): Promise<Figures> {
  const { sets, payloadBytes, seconds, outstandingMax } = options;
  const warmUpSeconds = Math.min(seconds, WARM_UP_SECONDS_MAX);
  const ladder = [];
  for (let outstanding = 1; outstanding <= outstandingMax; outstanding *= STEP) {
    ladder.push({ clients: 1, outstanding });
  }
  let alone: Measurement | undefined;
  const { rung, outcome, tried } = await climb(
    ladder,
    PATIENCE,
    async (next) => {
      progress(next.outstanding);
      const load = { ...next, sets, payloadBytes, seconds, warmUpSeconds };
      const measurement = await measure(system, load);
      alone ??= measurement;
      return measurement;
    },
    rateOf,
  );
  return {
    messagesPerSecond: rateOf(outcome),
    outstanding: rung.outstanding,
    loaded: outcome,
    alone: alone ?? outcome,
    tried: tried.map(({ rung: { outstanding }, rate }) => ({
      outstanding,
      messagesPerSecond: rate,
    })),
  };
}
