/** How long a host spins before it parks, and how often its agents run. */
import type { ClusterConfig } from '../config/config.js';
import type { Pacing } from './duty.js';

const LATER_US = 300;
/** About the cost of waking a parked host. */
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
