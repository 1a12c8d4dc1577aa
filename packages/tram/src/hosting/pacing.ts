/** How long a host spins before it parks, and how often its agents run. */
import { availableParallelism } from 'node:os';
import type { ClusterConfig } from '../config/config.js';
import type { Pacing } from './duty.js';

const LATER_US = 300;
/**
 * More than it takes to wake a parked host, which is 30 to 130 µs on a virtual machine, and to answer. With less, two hosts that
 * wait for each other would park in turn, each while the other one is being woken.
 */
const SPIN_US = 200;

/** For threads that leave no core to their program: it may wait for the one on which a host spins. */
const CROWDED_SPIN_US = 60;

/** For hosts that are threads of a program. */
export function pacingOfThreads(config: ClusterConfig): Pacing {
  return config.hosts < availableParallelism()
    ? pacingOf(config)
    : pacingOf(config, CROWDED_SPIN_US);
}

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
    cores: availableParallelism(),
    relax: () => undefined,
  };
}
