/** How busily a host waits. */
import type { ClusterConfig } from '../config/config.js';
import type { Pacing } from './duty.js';

const LATER_US = 300;
/** About what it costs to wake a sleeper. */
const SPIN_US = 60;

export function pacingOf({ timing }: Pick<ClusterConfig, 'timing'>): Pacing {
  const { heartbeatUs, restUs } = timing;
  return {
    heartbeatUs,
    quietHeartbeatUs: restUs,
    laterUs: Math.min(LATER_US, heartbeatUs),
    spinUs: SPIN_US,
    relax: () => undefined,
  };
}
