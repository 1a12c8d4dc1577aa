/** How busily a host waits. The figures were measured on two cores (docs/operating.md). */
import type { ClusterConfig } from '../config.js';
import type { Pacing } from '../runtime/duty.js';

const LATER_US = 300;
const SPIN_US = 60;

export function pacingOf({ timing }: ClusterConfig): Pacing {
  return {
    heartbeatUs: timing.heartbeatUs,
    laterUs: Math.min(LATER_US, timing.heartbeatUs),
    spinUs: SPIN_US,
    relax: () => undefined,
  };
}
