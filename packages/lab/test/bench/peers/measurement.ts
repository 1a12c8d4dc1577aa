/** A made-up measurement, for tests of `bench/peers`. */
import type { Measurement } from '../../../src/bench/systems/system.js';

export function measurement(messagesPerSecond: number, latencyNs: number): Measurement {
  return {
    ...{ messages: messagesPerSecond * 2, seconds: 2, unanswered: 0, coresUsed: 1 },
    ...{ latencyNsP50: latencyNs, latencyNsP90: 2 * latencyNs, latencyNsP99: 3 * latencyNs },
    ...{ latencyNsP999: 4 * latencyNs, latencyNsMax: 5 * latencyNs },
  };
}
