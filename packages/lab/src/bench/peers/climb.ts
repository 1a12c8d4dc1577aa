/** How much a system can do and how soon, whatever the system: one message at a time, then more and more. */
import type { LoadOptions } from '../load/load.js';
import type { Measurement, RunningSystem } from '../systems/system.js';

export interface Figures {
  /** The best of all numbers of messages under way that were tried, and that number. */
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

export interface ClimbOptions extends Pick<LoadOptions, 'sets' | 'payloadBytes'> {
  readonly seconds: number;
  readonly outstandingMax: number;
}

const WARM_UP_SECONDS_MAX = 0.5;
const STEP = 8;
/** A step up that brings less than this is none. */
const GROWTH = 1.05;
/** One step that brings nothing may be the machine's fault. */
const FLAT_STEPS_MAX = 2;

/** Eight times as many under way as before, until that brings nothing more, twice in a row. */
export async function climb(
  system: Pick<RunningSystem, 'measure'>,
  options: ClimbOptions,
  progress: (outstanding: number) => void,
): Promise<Figures> {
  const alone = await measureAt(1);
  let best = { outstanding: 1, loaded: alone };
  const tried: Try[] = [{ outstanding: 1, messagesPerSecond: rateOf(alone) }];
  let flatSteps = 0;
  for (let outstanding = STEP; outstanding <= options.outstandingMax; outstanding *= STEP) {
    const loaded = await measureAt(outstanding);
    const rate = rateOf(loaded);
    const bestRate = rateOf(best.loaded);
    tried.push({ outstanding, messagesPerSecond: rate });
    if (rate > bestRate) best = { outstanding, loaded };
    flatSteps = rate < GROWTH * bestRate ? flatSteps + 1 : 0;
    if (flatSteps === FLAT_STEPS_MAX) break;
  }
  return { messagesPerSecond: rateOf(best.loaded), ...best, alone, tried };

  async function measureAt(outstanding: number): Promise<Measurement> {
    progress(outstanding);
    const { sets, payloadBytes, seconds } = options;
    const warmUpSeconds = Math.min(seconds, WARM_UP_SECONDS_MAX);
    const load = { clients: 1, outstanding, sets, payloadBytes, seconds, warmUpSeconds };
    const measurement = await system.measure(load);
    const { messages, unanswered } = measurement;
    if (messages === 0) throw new Error(`no message was acknowledged within ${seconds} s`);
    if (unanswered > 0) throw new Error(`${unanswered} messages were never acknowledged`);
    return measurement;
  }
}

function rateOf({ messages, seconds }: Measurement): number {
  return messages / seconds;
}
