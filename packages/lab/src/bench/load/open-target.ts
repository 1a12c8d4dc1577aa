/** Opens the target of a load from its address: TRAM in shared memory or across machines, or RamCast. */
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { openArena } from 'tram-multicast/internal/hosting/open-arena.js';
import { ramcastTarget } from '../systems/ramcast/target.js';
import { type LoadTarget, tramTarget } from './target.js';

export interface TargetAddress {
  /** The memory of the system or, for TRAM across machines, its cluster file. */
  readonly address: ArrayBufferLike | string;
  /** Default: TRAM in shared memory. */
  readonly system?: 'ramcast' | 'machines';
  /** Of the processes that run the replicas, if they are not in the memory. */
  readonly pids?: readonly number[];
}

/** @param clients  the number of seats that will be taken */
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
