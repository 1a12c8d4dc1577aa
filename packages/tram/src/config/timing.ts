/** The timing of a cluster: heartbeats, suspicion, resending. */
import type { Timing } from '../protocol/edges.js';
import { ConfigError } from './mistakes.js';
import { type ClusterOptions, OPTIONS } from './options.js';

const DEFAULT_SUSPECT_AFTER_HEARTBEATS = 20;
/** An idle replica sends heartbeats this many times more slowly. */
const IDLE_HEARTBEATS = 20;
/** Followers learn so much later what is decided, if nothing else happens. */
const QUICK_US = 250;
const QUICK_STEPS_PER_HEARTBEAT = 4;

export function resolveTiming(options: ClusterOptions): Timing {
  const {
    heartbeatMs = OPTIONS.heartbeatMs.default,
    resendAfterMs = OPTIONS.resendAfterMs.default,
    suspectAfterMs = Math.max(
      OPTIONS.suspectAfterMs.default,
      DEFAULT_SUSPECT_AFTER_HEARTBEATS * heartbeatMs,
    ),
  } = options;
  if (suspectAfterMs < 2 * heartbeatMs) {
    throw new ConfigError(
      ['suspectAfterMs'],
      `suspectAfterMs must be at least twice heartbeatMs, ${2 * heartbeatMs}, not ${suspectAfterMs}`,
      { hint: 'With less, one late heartbeat is enough to suspect a leader that is alive.' },
    );
  }
  const heartbeatUs = microseconds(heartbeatMs);
  const suspectAfterUs = microseconds(suspectAfterMs);
  return {
    heartbeatUs,
    // Half of the suspicion timeout at most: a busy host must not suspect an idle one.
    restUs: Math.max(heartbeatUs, Math.min(heartbeatUs * IDLE_HEARTBEATS, suspectAfterUs / 2)),
    quickUs: Math.min(QUICK_US, heartbeatUs / QUICK_STEPS_PER_HEARTBEAT),
    suspectAfterUs,
    askAgainUs: 2 * heartbeatUs,
    backOffUs: 2 * heartbeatUs,
    resendAfterUs: microseconds(resendAfterMs),
  };
}

function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000);
}
