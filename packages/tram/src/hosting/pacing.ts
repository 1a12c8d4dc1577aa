/** How long a host spins before it parks, and how often its agents run. */
import type { ClusterConfig } from '../config/config.js';
import type { Pacing } from './duty.js';

const LATER_US = 300;
/** About the cost of waking a parked host. */
const SPIN_US = 60;

/** @param spinUs  without `durability: 'always'`: with it, replies wait for disks, and journal threads need the cores */
export function pacingOf(
  { timing, durability }: Pick<ClusterConfig, 'timing' | 'durability'>,
  spinUs = SPIN_US,
): Pacing {
  const { heartbeatUs, restUs } = timing;
  return {
    heartbeatUs,
    quietHeartbeatUs: restUs,
    laterUs: Math.min(LATER_US, heartbeatUs),
    spinUs: durability === 'always' ? 0 : spinUs,
    relax: () => undefined,
  };
}
