/** The target of a load, from what its process was told: whatever system it is, and wherever. */
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { openArena } from 'tram-multicast/internal/hosting/open-arena.js';
import { ramcastTarget } from '../systems/ramcast/target.js';
import { type LoadTarget, tramTarget } from './target.js';

export interface TargetAddress {
  /** Its memory or, of TRAM across machines, the file with its configuration. */
  readonly address: ArrayBufferLike | string;
  /** TRAM in shared memory, unless it is said. */
  readonly system?: 'ramcast' | 'machines';
  /** Of the processes that run the replicas, where memory can't tell. */
  readonly pids?: readonly number[];
}

/** @param clients  how many seats will be taken */
export async function openTarget(
  { address, system, pids = [] }: TargetAddress,
  clients: number,
): Promise<LoadTarget> {
  if (system === 'machines') {
    const { machinesTarget } = await import('../machines/target.js');
    return machinesTarget(address as string, clients, pids);
  }
  const arena = openArena(address);
  return system === 'ramcast' ? ramcastTarget(arena) : tramTarget(ClusterContext.attach(arena));
}
