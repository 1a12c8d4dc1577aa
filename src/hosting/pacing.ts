/** How busily a host waits. */
import type { ClusterConfig } from '../config.js';
import type { Pacing } from '../runtime/duty.js';

const LATER_US = 300;
/** About what it costs to wake a sleeper. */
const SPIN_US = 60;
const QUIET_FACTOR = 20;

export function pacingOf({ timing }: Pick<ClusterConfig, 'timing'>): Pacing {
  const { heartbeatUs, suspectAfterUs } = timing;
  // Never so slowly that a host which is busy takes us for dead.
  const quietUs = Math.min(heartbeatUs * QUIET_FACTOR, suspectAfterUs / 2);
  return {
    heartbeatUs,
    quietHeartbeatUs: Math.max(heartbeatUs, quietUs),
    laterUs: Math.min(LATER_US, heartbeatUs),
    spinUs: SPIN_US,
    relax: () => undefined,
  };
}
